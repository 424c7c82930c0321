// The floating-point settings that results are defined for, whatever the calling thread has set:
// rounding to nearest, subnormal numbers, no traps.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace tcgemm {

// Has them for as long as it lives, and gives the thread back its own settings and flags.
class DefaultFloatingPoint {
   public:
#if defined(__SSE2__)  // all arithmetic is SSE's: fegetenv, which saves x87's too, takes 300 ns
    DefaultFloatingPoint() : saved_(_mm_getcsr()) { _mm_setcsr(kMasked); }
    ~DefaultFloatingPoint() { _mm_setcsr(saved_); }
#else
    DefaultFloatingPoint() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatingPoint() { std::fesetenv(&saved_); }
#endif
    DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
    DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

   private:
#if defined(__SSE2__)
    static constexpr unsigned kMasked = 0x1f80;  // MXCSR after reset: all exceptions masked
    unsigned saved_;
#else
    std::fenv_t saved_;
#endif
};

}  // namespace tcgemm
