# Run after libtcgemm is linked: prints how many kernels it holds, because each costs build time and size.
execute_process(COMMAND ${NM} ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]*__device_stub__[^\n]*" kernels "${symbols}")
list(LENGTH kernels count)
message(STATUS "tcgemm: ${count} kernels")
