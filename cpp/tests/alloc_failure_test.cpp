// Every host allocation fails in turn: each call has to end in a status or an OutOfMemory, and the
// next has to work.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "check.hpp"
#include "tcgemm/tcgemm.h"
#include "tcgemm/tcgemm.hpp"

namespace {
// Counts down on the test's own thread; the allocation that finds 0 fails. -1: none fails.
thread_local long allocations_left = -1;

void* allocate(std::size_t bytes, std::size_t alignment) {
    if (allocations_left == 0) {
        allocations_left = -1;
        return nullptr;
    }
    if (allocations_left > 0) --allocations_left;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    return std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
    if (void* memory = allocate(bytes, alignment)) return memory;
    throw std::bad_alloc();
}
}  // namespace

// These replace the program's, and so libtcgemm's, allocation functions.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes, 16);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

tcgemm_status multiply(std::int64_t size, const std::vector<float>& a, std::vector<float>& d) {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, size, size, size, TCGEMM_FLOAT32);
    problem.a.alignment = problem.b.alignment = problem.c.alignment = problem.d.alignment = 4;
    tcgemm_plan* plan = nullptr;
    tcgemm_status status = tcgemm_plan_create(&problem, TCGEMM_CPU, &plan);
    if (status == TCGEMM_OK) {
        tcgemm_pointers at = {};
        at.a = at.b = a.data();
        at.d = d.data();
        status = tcgemm_plan_run(plan, &at, 1, 0, nullptr, nullptr, 0);
    }
    tcgemm_plan_destroy(plan);
    return status;
}

constexpr long kAtMost = 10000;  // allocations of a product

// Not where libtcgemm.so was linked with a C++ library, and so an allocator, of its own.
bool sees_the_librarys_allocations() {
    const std::vector<float> a(1, 1.0f);
    std::vector<float> d(1);
    allocations_left = kAtMost;
    CHECK_EQ(multiply(1, a, d), TCGEMM_OK);
    const bool seen = allocations_left < kAtMost;
    allocations_left = -1;
    if (!seen) std::printf("not run: this program's allocator is not the library's\n");
    return seen;
}

// With more threads than one.
TEST(each_failing_allocation_of_a_run_is_an_out_of_memory) {
    if (!sees_the_librarys_allocations()) return;
    constexpr std::int64_t kSize = 256;
    const std::vector<float> a(kSize * kSize, 1.0f);
    std::vector<float> d(kSize * kSize);
    tcgemm::GemmProblem p;
    p.m = p.n = p.k = kSize;
    p.a = p.b = p.c = p.d = tcgemm::Operand::row_major(tcgemm::DType::f32, kSize);
    p.a.alignment = p.b.alignment = p.c.alignment = p.d.alignment = 4;
    const tcgemm::Plan plan(p, tcgemm::Device::cpu());
    setenv("TCGEMM_NUM_THREADS", "4", 1);
    int failures = 0, others = 0;
    bool all_done = false;
    for (long n = 0; n < kAtMost && !all_done; ++n) {
        allocations_left = n;
        try {
            plan.run({a.data(), a.data(), nullptr, d.data()});
        } catch (const tcgemm::OutOfMemory&) {
            ++failures;
        } catch (const std::bad_alloc&) {
            ++others;
        }
        all_done = allocations_left > 0;
        allocations_left = -1;
    }
    unsetenv("TCGEMM_NUM_THREADS");
    CHECK(all_done);
    CHECK(failures > 0);
    CHECK_EQ(others, 0);
    CHECK_EQ(d[0], static_cast<float>(kSize));
}

TEST(each_failing_allocation_gives_a_status) {
    if (!sees_the_librarys_allocations()) return;
    constexpr std::int64_t kSize = 96;
    const std::vector<float> a(kSize * kSize, 1.0f);
    std::vector<float> d(kSize * kSize);
    int failures = 0;
    for (long n = 0; n < kAtMost; ++n) {
        allocations_left = n;
        const tcgemm_status status = multiply(kSize, a, d);
        const bool all_done = allocations_left > 0;
        allocations_left = -1;
        if (all_done) {
            CHECK_EQ(status, TCGEMM_OK);
            break;
        }
        CHECK(status == TCGEMM_OUT_OF_MEMORY || status == TCGEMM_OK);
        failures += status == TCGEMM_OUT_OF_MEMORY ? 1 : 0;
        CHECK_EQ(multiply(kSize, a, d), TCGEMM_OK);
        CHECK_EQ(d[0], static_cast<float>(kSize));
    }
    CHECK(failures > 0);
}

}  // namespace

int main() { return check::run(); }
