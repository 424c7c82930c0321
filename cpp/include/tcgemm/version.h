/* The one place of the version: CMake and the Python package read it from this file. */
#ifndef TCGEMM_VERSION_H
#define TCGEMM_VERSION_H

#define TCGEMM_VERSION_MAJOR 0
#define TCGEMM_VERSION_MINOR 1
#define TCGEMM_VERSION_PATCH 0
#define TCGEMM_VERSION "0.1.0"

#endif
