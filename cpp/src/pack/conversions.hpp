// The pack table: a row for each conversion that packing can make. Equal dtypes: a copy, for the
// strides. Nothing is rounded to int8: validation refuses it.
#pragma once

#include "tcgemm/dtype.hpp"

// ROW(from, to)
#define TCGEMM_CONVERSIONS(ROW) \
    ROW(f16, f16)               \
    ROW(bf16, f16)              \
    ROW(f32, f16)               \
    ROW(f64, f16)               \
    ROW(i8, f16)                \
    ROW(e4m3, f16)              \
    ROW(e5m2, f16)              \
    ROW(f16, bf16)              \
    ROW(bf16, bf16)             \
    ROW(f32, bf16)              \
    ROW(f64, bf16)              \
    ROW(i8, bf16)               \
    ROW(f16, f32)               \
    ROW(bf16, f32)              \
    ROW(f32, f32)               \
    ROW(f64, f32)               \
    ROW(i8, f32)                \
    ROW(f16, f64)               \
    ROW(bf16, f64)              \
    ROW(f32, f64)               \
    ROW(f64, f64)               \
    ROW(i8, f64)                \
    ROW(i8, i8)
