// An element of 16 bits of a float32 operand in halves; see kernels/halves.hpp.
#pragma once

namespace tcgemm::device {

struct F32Halves {
    short bits;
};

}  // namespace tcgemm::device
