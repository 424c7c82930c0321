// Neighbouring elements that a thread moves together.
#pragma once

namespace tcgemm::device {

// One machine access moves at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
    T element[N];
};

}  // namespace tcgemm::device
