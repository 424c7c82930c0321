/* TCGEMM_API marks what libtcgemm.so exports; everything else in it is hidden. */
#ifndef TCGEMM_EXPORT_H
#define TCGEMM_EXPORT_H

#if defined(__GNUC__)
#define TCGEMM_API __attribute__((visibility("default")))
#else
#define TCGEMM_API
#endif

#endif
