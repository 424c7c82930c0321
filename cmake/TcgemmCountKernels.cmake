# Run after libtcgemm is linked: prints how many kernels it holds, because each costs build time and size.
execute_process(COMMAND ${CUOBJDUMP} --dump-resource-usage ${LIBRARY} OUTPUT_VARIABLE usage COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Function [A-Za-z0-9_]+" kernels "${usage}")
list(REMOVE_DUPLICATES kernels)  # one for each architecture
list(LENGTH kernels count)
message(STATUS "tcgemm: ${count} kernels")
