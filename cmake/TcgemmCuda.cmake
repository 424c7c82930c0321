# Finds nvcc, enables the CUDA language and sets what every CUDA source is compiled with.
#
# Order: CMAKE_CUDA_COMPILER, CUDACXX, CUDA_HOME, PATH, the usual folders. `pip install` comes with CUDACXX already set
# (see build_backend/tcgemm_build.py, which may also fetch a compiler from PyPI).

set(tcgemm_cuda_minimum 12.4)

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    file(GLOB tcgemm_cuda_folders LIST_DIRECTORIES true /usr/local/cuda-* /opt/cuda-*)
    list(SORT tcgemm_cuda_folders COMPARE NATURAL ORDER DESCENDING)
    find_program(TCGEMM_NVCC nvcc
                 HINTS ENV CUDA_HOME ENV CUDA_PATH
                 PATHS /usr/local/cuda /opt/cuda ${tcgemm_cuda_folders}
                 PATH_SUFFIXES bin
                 DOC "The CUDA compiler")
    if(NOT TCGEMM_NVCC)
        message(FATAL_ERROR
            "No nvcc found. Set CUDACXX or CUDA_HOME to a CUDA ${tcgemm_cuda_minimum}+ toolkit, configure with "
            "-DTCGEMM_CUDA=OFF for the host family only, or use `pip install .`, which fetches a compiler.")
    endif()
    set(CMAKE_CUDA_COMPILER ${TCGEMM_NVCC} CACHE FILEPATH "The CUDA compiler")
endif()

# Without a request by the user each family states its own architectures; with one, families keep only what it names.
set(TCGEMM_ONLY_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}" CACHE STRING
    "Limit every kernel family to these architectures (empty: all that the family lists)")
set(CMAKE_CUDA_ARCHITECTURES OFF)

# The PyPI toolkit (nvidia/cu13) has lib instead of lib64 and no unversioned libcudart.so; nvcc 13.0's own profile and
# FindCUDAToolkit look for both.
set(tcgemm_nvcc ${CMAKE_CUDA_COMPILER})
if(NOT tcgemm_nvcc)
    set(tcgemm_nvcc $ENV{CUDACXX})
endif()
get_filename_component(tcgemm_cuda_root "${tcgemm_nvcc}" REALPATH)
cmake_path(GET tcgemm_cuda_root PARENT_PATH tcgemm_cuda_root)
cmake_path(GET tcgemm_cuda_root PARENT_PATH tcgemm_cuda_root)
if(EXISTS ${tcgemm_cuda_root}/lib/libcudart_static.a AND NOT EXISTS ${tcgemm_cuda_root}/lib64)
    set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -L${tcgemm_cuda_root}/lib")
    file(GLOB tcgemm_cudart ${tcgemm_cuda_root}/lib/libcudart.so.*)
    set(CUDA_CUDART "${tcgemm_cudart}" CACHE FILEPATH "The shared CUDA runtime (found, never linked)")
endif()

enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS tcgemm_cuda_minimum)
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}; tcgemm needs "
                        "${tcgemm_cuda_minimum} or newer. Set CUDACXX to a newer nvcc.")
endif()
find_package(CUDAToolkit ${tcgemm_cuda_minimum} REQUIRED)
message(STATUS "tcgemm: CUDA ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER})")

set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)

# What every CUDA object is compiled with. -compress-all keeps the floor of CUDA 12 builds at driver 525;
# --compress-mode=size packs better, but needs driver 550, below which CUDA 13 does not run anyway.
add_library(tcgemm_cuda_flags INTERFACE)
target_compile_options(tcgemm_cuda_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xfatbin=-compress-all>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<VERSION_GREATER_EQUAL:${CMAKE_CUDA_COMPILER_VERSION},13.0>>:--compress-mode=size>)
