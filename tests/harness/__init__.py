"""Oracle, data sets and guards, and `Lab.check`, the one entry of every numeric test."""

from . import c_api, cuda, data, dlpack, families, oracle, scaled
from .check import WORST, Evidence, Lab, Run
from .formats import FORMATS, bits_of, round_to, wide
from .layout import COL, ROW, Layout
from .modes import (
    FAMILY_MODES,
    FP8_IN_FP32,
    FP8_IN_FP32_K,
    FP8_MODES,
    HALVES_MODES,
    HALVES_PAY,
    INT8_SCALING_FAMILIES,
    LEAST_CAPABILITY,
    MODES,
    SCALING_FAMILIES,
    SIXTEEN_BIT_FAMILIES,
    Mode,
    in_halves,
    takes,
)

__all__ = [
    "COL",
    "FAMILY_MODES",
    "FORMATS",
    "FP8_IN_FP32",
    "FP8_IN_FP32_K",
    "FP8_MODES",
    "HALVES_MODES",
    "HALVES_PAY",
    "INT8_SCALING_FAMILIES",
    "LEAST_CAPABILITY",
    "MODES",
    "ROW",
    "SCALING_FAMILIES",
    "SIXTEEN_BIT_FAMILIES",
    "WORST",
    "Evidence",
    "Lab",
    "Layout",
    "Mode",
    "Run",
    "bits_of",
    "c_api",
    "cuda",
    "data",
    "dlpack",
    "families",
    "in_halves",
    "oracle",
    "round_to",
    "scaled",
    "takes",
    "wide",
]
