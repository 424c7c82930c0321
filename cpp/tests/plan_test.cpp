// The public interface end to end, on the CPU and, where there is one, on the first GPU.
#include "tcgemm/plan.hpp"

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "check.hpp"
#include "row_major.hpp"
#include "tcgemm/tcgemm.hpp"

using namespace tcgemm;

namespace {

// Row-major, at addresses that are aligned to their elements alone.
GemmProblem loose(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::f32) {
    GemmProblem p = row_major(m, n, k, dtype, dtype);
    p.a.alignment = p.b.alignment = p.c.alignment = p.d.alignment = 4;
    return p;
}

std::vector<float> small_integers(std::size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<int>(seed >> 28) - 8);
    }
    return values;
}

// Small integers: every sum is exact, so any order gives the same bits.
std::vector<float> reference(const GemmProblem& p, const std::vector<float>& a,
                             const std::vector<float>& b) {
    std::vector<float> d(static_cast<std::size_t>(p.m * p.n));
    for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
            float sum = 0;
            for (std::int64_t k = 0; k < p.k; ++k) sum += a[i * p.k + k] * b[k * p.n + j];
            d[i * p.n + j] = sum;
        }
    }
    return d;
}

// Computes on `device`, through device memory where that is a GPU.
std::vector<float> product(const GemmProblem& p, Device device, const std::vector<float>& a,
                           const std::vector<float>& b) {
    std::vector<float> d(static_cast<std::size_t>(p.m * p.n),
                         std::numeric_limits<float>::quiet_NaN());
    if (device.is_cpu()) {
        gemm(p, device, {a.data(), b.data(), nullptr, d.data()});
        return d;
    }
    const Stream stream(device);
    const auto upload = [&](const std::vector<float>& host) {
        DeviceBuffer buffer(host.size() * sizeof(float), device, stream);
        copy_async(buffer.data(), host.data(), buffer.bytes(), stream);
        return buffer;
    };
    const DeviceBuffer da = upload(a), db = upload(b), dd = upload(d);
    gemm(p, device, {da.data(), db.data(), nullptr, dd.data()}, {}, stream);
    copy_async(d.data(), dd.data(), dd.bytes(), stream);
    stream.view().synchronize();
    return d;
}

std::vector<Device> all_devices() {
    std::vector<Device> devices = {Device::cpu()};
    for (int i = 0; i < cuda_device_count(); ++i) devices.push_back(Device::cuda(i));
    return devices;
}

TEST(the_cpu_has_no_compute_capability) {
    const DeviceProperties& cpu = properties(Device::cpu());
    CHECK_EQ(cpu.device.ordinal, -1);
    CHECK_EQ(cpu.cc(), 0);
    CHECK(!cpu.name.empty());
    CHECK(cpu.sm_count > 0);
}

TEST(products_of_integers_are_exact_on_every_device) {
    for (const Device device : all_devices()) {
        for (const std::int64_t size : {1, 7, 33, 130}) {
            const GemmProblem p = loose(size, size + 3, size + 1);
            const auto a = small_integers(static_cast<std::size_t>(p.m * p.k), 1);
            const auto b = small_integers(static_cast<std::size_t>(p.k * p.n), 2);
            CHECK(product(p, device, a, b) == reference(p, a, b));
        }
    }
}

TEST(alpha_and_beta_follow_blas) {
    const GemmProblem p = loose(2, 2, 2);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 0, 1}, nans(4, nan);
    std::vector<float> d = {10, 20, 30, 40};
    gemm(p, Device::cpu(), {a.data(), b.data(), d.data(), d.data()}, {2, 1});
    CHECK((d == std::vector<float>{12, 24, 36, 48}));
    gemm(p, Device::cpu(), {nullptr, nullptr, d.data(), d.data()}, {0, 0.5});
    CHECK((d == std::vector<float>{6, 12, 18, 24}));
    gemm(p, Device::cpu(), {a.data(), b.data(), nans.data(), d.data()}, {1, 0});
    CHECK(d == a);
    gemm(p, Device::cpu(), {nans.data(), b.data(), nans.data(), d.data()}, {1e-60, 1e-60});
    CHECK((d == std::vector<float>(4)));  // both round to 0 in FP32: neither A nor C is read
    gemm(p, Device::cpu(), {a.data(), b.data(), nullptr, d.data()}, {nan, 0});
    for (const float value : d) CHECK(std::isnan(value));
}

// Rounding upwards, and on x86-64 with subnormals flushed to zero and traps for overflow.
TEST(the_callers_floating_point_settings_do_not_reach_alpha_and_beta) {
    const GemmProblem p = loose(1, 1, 1);
    const float one = 1e30f, nan = std::numeric_limits<float>::quiet_NaN();
    const auto with = [&](const float* a, GemmScalars scalars) {
        float d = -1;
        std::fenv_t callers;
        std::fegetenv(&callers);
        std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
        _mm_setcsr((_mm_getcsr() | 0x8040) & ~0x0400u);
#endif
        gemm(p, Device::cpu(), {a, &one, &one, &d}, scalars);
        std::fesetenv(&callers);
        return d;
    };
    CHECK_EQ(with(&nan, {1e-46, 0.0}), 0.0f);  // what FP32 rounds to 0 is 0: A is not read
    CHECK_EQ(with(&one, {0.0, 1e-40}), 1e30f * 1e-40f);
    CHECK(with(&one, {1e-40, 0.0}) > 1e38f);  // 1e60, out of range, times a subnormal factor
    CHECK(std::isinf(with(&one, {1e300, 0.0})));
}

std::string text_of(const void* address) {
    std::ostringstream text;
    text << address;
    return text.str();
}

TEST(refuses_pointers_before_it_writes) {
    const GemmProblem p = loose(2, 2, 2);
    std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<float> before = x;
    float* const d = x.data() + 4;
    const Plan plan(p, Device::cpu());
    CHECK_THROWS(LayoutError, plan.run({nullptr, d, nullptr, d}), "operand A is a null pointer");
    CHECK_THROWS(LayoutError, plan.run({x.data(), d, nullptr, d}), "D overlaps operand B");
    CHECK_THROWS(LayoutError, plan.run({x.data(), x.data(), d + 1, d}, {1, 1}),
                 "D overlaps operand C");
    CHECK_THROWS(LayoutError, plan.run({x.data(), x.data(), nullptr, d}, {1, 1}),
                 "operand C is a null pointer");
    const auto* odd = reinterpret_cast<const char*>(x.data()) + 1;
    CHECK_THROWS(LayoutError, plan.run({odd, x.data(), nullptr, d}),
                 text_of(odd) + ", not aligned to 4 bytes, as its description says");
    CHECK(x == before);
}

// Nothing describes their alignment.
TEST(refuses_scales_that_are_not_aligned) {
    GemmProblem p = loose(2, 2, 2, DType::e4m3);
    p.c = p.d = Operand::row_major(DType::f32, 2);
    p.scale_a.kind = ScaleKind::tensor;
    p.a.alignment = p.b.alignment = 1;
    p.c.alignment = p.d.alignment = 4;
    const std::vector<char> x(4), scales(8);
    std::vector<float> d(4);
    const auto* odd = reinterpret_cast<const float*>(scales.data() + 1);
    CHECK_THROWS(LayoutError,
                 Plan(p, Device::cpu()).run({x.data(), x.data(), nullptr, d.data(), odd}),
                 "operand scale_a is at " + text_of(odd) +
                     ", not aligned to 4 bytes, as float32 numbers are; copy it");
}

TEST(a_plan_says_what_was_chosen) {
    const Plan plan(loose(5, 6, 7), Device::cpu());
    CHECK_EQ(plan.family(), "host");
    CHECK_EQ(plan.kernel(), "host_float32");
    CHECK_EQ(plan.workspace_bytes(), std::size_t{0});
    CHECK(plan.precision() == Precision::fp32);
    CHECK(plan.describe().find("5 x 6 x 7") != std::string::npos);
}

TEST(a_workspace_that_is_not_needed_may_be_any) {
    const GemmProblem p = loose(1, 1, 1);
    const float two = 2;
    float d = 0;
    char memory[2];
    const Plan plan(p, Device::cpu());
    for (char* const workspace : {memory, memory + 1}) {
        plan.run({&two, &two, nullptr, &d}, {}, {}, workspace, 1);
        CHECK_EQ(d, 4.0f);
    }
}

TEST(a_workspace_that_is_needed_is_refused_with_its_address) {
    if (cuda_device_count() == 0) return;  // on the CPU no plan needs one
    GemmProblem p = loose(256, 256, 256, DType::f16);
    p.a = Operand::row_major(DType::f16, 512);
    p.a.col_stride = 2;  // packed by every kernel
    p.precision = Precision::fp16;
    for (Operand* operand : {&p.a, &p.b, &p.c, &p.d}) operand->alignment = 16;
    const Plan plan(p, Device::cuda(0));
    CHECK(plan.workspace_bytes() > 0);
    const DeviceBuffer memory(1 << 20, plan.device(), {}),
        workspace(plan.workspace_bytes() + 16, plan.device(), {});
    void* const data = memory.data();
    const auto run_in = [&](void* at, std::size_t bytes) {
        plan.run({data, data, nullptr, static_cast<char*>(data) + (1 << 19)}, {}, {}, at, bytes);
    };
    void* const odd = static_cast<char*>(workspace.data()) + 16;
    CHECK_THROWS(InvalidArgument, run_in(odd, plan.workspace_bytes()),
                 text_of(odd) + "; the plan needs");
    CHECK_THROWS(InvalidArgument, run_in(nullptr, plan.workspace_bytes()), "at a null pointer");
    CHECK_THROWS(InvalidArgument, run_in(workspace.data(), 1), "has 1 bytes at");
    run_in(workspace.data(), plan.workspace_bytes());
    StreamView().synchronize();
}

TEST(empty_problems_succeed_and_touch_nothing) {
    for (const Device device : all_devices()) {
        gemm(loose(0, 5, 3), device, {});
        gemm(loose(5, 0, 3), device, {});
        GemmProblem p = loose(5, 5, 3);
        p.batch_rank = 1;
        gemm(p, device, {});
    }
}

TEST(the_cache_gives_equal_problems_one_plan) {
    const GemmProblem p = loose(5, 6, 7);
    const auto first = cached_plan(p, Device::cpu());
    CHECK(first == cached_plan(p, Device::cpu()));
    GemmProblem other = p;
    other.n = 5;
    other.d = other.c = other.b = Operand::row_major(DType::f32, 5);
    CHECK(first != cached_plan(other, Device::cpu()));
    const std::uint64_t generation = plan_cache_generation();
    CHECK(plan_cache_generation() == generation);
    setenv("TCGEMM_FORCE_FAMILY", "host", 1);
    CHECK(plan_cache_generation() != generation);
    CHECK(first != cached_plan(p, Device::cpu()));
    unsetenv("TCGEMM_FORCE_FAMILY");
    CHECK(plan_cache_generation() == generation);
    CHECK(first == cached_plan(p, Device::cpu()));
    clear_plan_cache();
    CHECK(plan_cache_generation() != generation);
    CHECK(first != cached_plan(p, Device::cpu()));
}

TEST(many_threads_share_the_cache) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(8, 0);
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([t, &wrong] {
            for (int round = 0; round < 20; ++round) {
                const GemmProblem p = loose(1 + (round + t) % 9, 17, 5);
                const auto a = small_integers(static_cast<std::size_t>(p.m * p.k), 3);
                const auto b = small_integers(static_cast<std::size_t>(p.k * p.n), 4);
                wrong[static_cast<std::size_t>(t)] +=
                    product(p, Device::cpu(), a, b) == reference(p, a, b) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : wrong) CHECK_EQ(count, 0);
}

TEST(a_device_that_is_not_there_is_named) {
    CHECK_THROWS(DeviceError, Plan(loose(2, 2, 2), Device::cuda(63)), "cuda:63 does not exist");
    CHECK_THROWS(DeviceError, properties(Device::cuda(-3)),
                 "cuda:2147483647, which stands for a negative ordinal, does not exist");
}

TEST(owners_are_moved_not_copied) {
    if (cuda_device_count() == 0) return;
    const Device gpu = Device::cuda(0);
    Stream stream(gpu);
    Stream taken = std::move(stream);
    DeviceBuffer buffer(1024, gpu, taken);
    void* const data = buffer.data();
    CHECK(buffer.device() == gpu);
    DeviceBuffer other = std::move(buffer);
    CHECK(buffer.data() == nullptr);  // NOLINT(bugprone-use-after-move): that is the point
    CHECK(other.data() == data);
    std::vector<float> sent = small_integers(256, 1), received(256);
    copy_async(other.data(), sent.data(), 1024, taken);
    copy_async(received.data(), other.data(), 1024, taken);
    taken.view().synchronize();
    CHECK(received == sent);
    Event start(gpu, true), stop(gpu, true);
    start.record(taken);
    stop.record(taken);
    stop.synchronize();
    CHECK(stop.milliseconds_since(start) >= 0);
    CHECK_THROWS(OutOfMemory, DeviceBuffer(std::size_t{1} << 60, gpu, taken), "bytes left");
    DeviceBuffer after(1024, gpu, taken);  // a failed allocation leaves no trace
    CHECK(after.data() != nullptr);
    release_unused_memory(gpu);
}

TEST(owners_name_a_device_that_is_not_there) {
    const auto refuse = [](Device device, const char* words) {
        CHECK_THROWS(DeviceError, DeviceBuffer(8, device, {}), words);
        CHECK_THROWS(DeviceError, DeviceBuffer(0, device, {}), words);
        CHECK_THROWS(DeviceError, Stream(device), words);
        CHECK_THROWS(DeviceError, Event(device), words);
        CHECK_THROWS(DeviceError, release_unused_memory(device), words);
    };
    refuse(Device::cpu(), "device is the CPU");
    refuse(Device::cuda(-1), "which stands for a negative ordinal, does not exist");
    refuse(Device::cuda(64), "device cuda:64 does not exist");
    refuse(Device::cuda(1 << 20), "device cuda:1048576 does not exist");
    CHECK(DeviceBuffer().device().is_cpu());
}

// The legacy default stream is another one on each device.
TEST(a_buffer_is_freed_on_its_own_device) {
    if (cuda_device_count() < 2) return;
    const DeviceGuard elsewhere(Device::cuda(0));
    {
        DeviceBuffer buffer(1024, Device::cuda(1), {});
    }
    const DeviceBuffer other(1024, Device::cuda(0), {});
    CHECK(other.data() != nullptr);
}

}  // namespace

int main() { return check::run(); }
