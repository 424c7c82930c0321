# Warnings of the project's own sources, on a target that is linked privately: no consumer inherits them.
add_library(tcgemm_warnings INTERFACE)
set(tcgemm_warning_flags -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 finds accesses out of bounds that are not there (std::sort of ten elements, a table of one).
    list(APPEND tcgemm_warning_flags -Wno-array-bounds)
endif()
if(TCGEMM_WERROR)
    list(APPEND tcgemm_warning_flags -Werror)
endif()
list(JOIN tcgemm_warning_flags "," tcgemm_host_warning_flags)
target_compile_options(tcgemm_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${tcgemm_warning_flags}>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${tcgemm_host_warning_flags}>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TCGEMM_WERROR}>>:-Werror=all-warnings>)
