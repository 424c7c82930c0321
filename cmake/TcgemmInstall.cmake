# Installs libraries, headers and the CMake package. The Python wheel is this same tree under tcgemm/.
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tcgemm)

install(TARGETS tcgemm EXPORT tcgemm-targets)
install(EXPORT tcgemm-targets NAMESPACE tcgemm:: DESTINATION ${config_dir})
# The static library has its own file: its consumers need a CUDA toolkit for the static runtime, those of the shared
# library need none.
if(TCGEMM_BUILD_STATIC)
    install(TARGETS tcgemm_static EXPORT tcgemm-static-targets)
    install(EXPORT tcgemm-static-targets NAMESPACE tcgemm:: DESTINATION ${config_dir})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp/include/tcgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tcgemm-config.cmake.in
    ${PROJECT_BINARY_DIR}/tcgemm-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tcgemm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tcgemm-config.cmake ${PROJECT_BINARY_DIR}/tcgemm-config-version.cmake
        DESTINATION ${config_dir})
