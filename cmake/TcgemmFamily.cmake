# Object libraries of kernels, each with its own architectures.
#
#   tcgemm_add_kernel_family(<name> SOURCES <file>... [ARCHS <architecture>...])
#       adds the family <name>; the order of the calls is the priority of selection. A family without ARCHS runs on the
#       CPU. The registry includes the generated families.inc, a line TCGEMM_FAMILY(<name>, "<architectures>") for each.
#   tcgemm_add_cuda_objects(<target> SOURCES <file>... ARCHS <architecture>...)
#       the same for device code that is no family.
#   tcgemm_write_families_inc()
#       writes families.inc; called once, after the last family.
#
# ARCHS are CMake's words (70-real: a cubin, 90-virtual: PTX). CUDA 13 has no compute capability 7.0.

set(tcgemm_generated_dir ${PROJECT_BINARY_DIR}/generated)
define_property(GLOBAL PROPERTY TCGEMM_OBJECTS BRIEF_DOCS "Object libraries that make up libtcgemm")
define_property(GLOBAL PROPERTY TCGEMM_FAMILIES_INC BRIEF_DOCS "Lines of families.inc")

# What the compiler at hand can build out of `archs`, after the user's limit and the sm_90 test option.
function(tcgemm_effective_archs result)
    set(archs ${ARGN})
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0 AND "70-real" IN_LIST archs)
        list(REMOVE_ITEM archs 70-real)
        get_property(told GLOBAL PROPERTY TCGEMM_SM70_TOLD)
        if(NOT told)
            message(STATUS "tcgemm: CUDA ${CMAKE_CUDA_COMPILER_VERSION} cannot build for sm_70 (Volta): left out")
            set_property(GLOBAL PROPERTY TCGEMM_SM70_TOLD ON)
        endif()
    endif()
    if(TCGEMM_ONLY_ARCHITECTURES)
        set(kept)
        foreach(wanted IN LISTS TCGEMM_ONLY_ARCHITECTURES)
            string(REGEX MATCH "^[0-9]+" wanted "${wanted}")
            set(matches ${archs})
            list(FILTER matches INCLUDE REGEX "^${wanted}a?-real$")
            if(NOT matches)  # no cubin for it: the family's PTX, if it has one
                set(matches ${archs})
                list(FILTER matches INCLUDE REGEX "-virtual$")
            endif()
            list(APPEND kept ${matches})
        endforeach()
        list(REMOVE_DUPLICATES kept)
        set(archs ${kept})
    endif()
    if(TCGEMM_TEST_SM90 AND NOT "90-real" IN_LIST archs AND NOT "90a-real" IN_LIST archs)
        list(APPEND archs 90-real)
    endif()
    set(${result} "${archs}" PARENT_SCOPE)
endfunction()

function(tcgemm_add_objects target)
    add_library(${target} OBJECT ${ARGN})
    set_target_properties(${target} PROPERTIES
        CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/cpp/include ${PROJECT_SOURCE_DIR}/cpp/src ${tcgemm_generated_dir})
    target_link_libraries(${target} PRIVATE tcgemm_warnings)
    if(TCGEMM_CUDA)
        target_link_libraries(${target} PRIVATE tcgemm_cuda_flags CUDA::cudart_static)
    endif()
    set_property(GLOBAL APPEND PROPERTY TCGEMM_OBJECTS ${target})
endfunction()

function(tcgemm_add_cuda_objects target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ARCHS")
    tcgemm_effective_archs(archs ${arg_ARCHS})
    tcgemm_add_objects(${target} ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${archs}")
endfunction()

function(tcgemm_add_kernel_family name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;ARCHS")
    set(archs)
    if(arg_ARCHS)
        if(NOT TCGEMM_CUDA)
            return()
        endif()
        tcgemm_effective_archs(archs ${arg_ARCHS})
        if(NOT archs)
            message(STATUS "tcgemm: family ${name} has nothing for ${TCGEMM_ONLY_ARCHITECTURES}: left out")
            return()
        endif()
        tcgemm_add_cuda_objects(tcgemm_${name} SOURCES ${arg_SOURCES} ARCHS ${arg_ARCHS})
    else()
        tcgemm_add_objects(tcgemm_${name} ${arg_SOURCES})
    endif()
    string(REPLACE "-real" "" shown "${archs}")
    message(STATUS "tcgemm: family ${name} [${shown}]")
    set_property(GLOBAL APPEND_STRING PROPERTY TCGEMM_FAMILIES_INC "TCGEMM_FAMILY(${name}, \"${shown}\")\n")
endfunction()

function(tcgemm_write_families_inc)
    get_property(lines GLOBAL PROPERTY TCGEMM_FAMILIES_INC)
    file(CONFIGURE OUTPUT ${tcgemm_generated_dir}/families.inc CONTENT "${lines}" @ONLY)
endfunction()
