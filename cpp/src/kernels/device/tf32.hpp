// An element of 32 bits that tensor cores read as TF32: of a float the upper 19 bits.
#pragma once

namespace tcgemm::device {

struct Tf32 {
    float value;
};

}  // namespace tcgemm::device
