// The CPUs that this process may run on.
#pragma once

#include <sched.h>

#include <algorithm>
#include <thread>

namespace tcgemm {

inline int usable_cpus() {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    const bool known = sched_getaffinity(0, sizeof(usable), &usable) == 0;
    return std::max(
        1, known ? CPU_COUNT(&usable) : static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace tcgemm
