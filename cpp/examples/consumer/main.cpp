// Multiplies two matrices through libtcgemm, on the CPU and on the first GPU where there is one,
// and checks every element of both results against a sum in double precision.
#include <cmath>
#include <cstdio>
#include <exception>
#include <tcgemm/tcgemm.hpp>
#include <vector>

namespace {

constexpr std::int64_t kM = 150, kN = 70, kK = 90;

// D = A B with all three matrices row-major float32.
tcgemm::GemmProblem row_major_problem() {
    tcgemm::GemmProblem problem;
    problem.m = kM;
    problem.n = kN;
    problem.k = kK;
    problem.a = tcgemm::Operand::row_major(tcgemm::DType::f32, kK);
    problem.b = tcgemm::Operand::row_major(tcgemm::DType::f32, kN);
    problem.c = problem.d = tcgemm::Operand::row_major(tcgemm::DType::f32, kN);
    return problem;
}

std::vector<float> matrix(std::int64_t elements, unsigned seed) {
    std::vector<float> values(elements);
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(seed >> 8) / (1 << 23) - 1.0f;  // uniform in [-1, 1)
    }
    return values;
}

// Whether each element is within the bound of an FP32 sum of kK products, in any order.
bool right(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& d) {
    for (std::int64_t i = 0; i < kM; ++i) {
        for (std::int64_t j = 0; j < kN; ++j) {
            double sum = 0, magnitude = 0;
            for (std::int64_t k = 0; k < kK; ++k) {
                const double product = double(a[i * kK + k]) * b[k * kN + j];
                sum += product;
                magnitude += std::fabs(product);
            }
            const double unit_roundoff = std::ldexp(1.0, -24);
            if (!(std::fabs(d[i * kN + j] - sum) <= (kK + 1) * unit_roundoff * magnitude)) {
                std::printf("D(%d, %d) = %.9g, expected %.9g\n", int(i), int(j), d[i * kN + j],
                            sum);
                return false;
            }
        }
    }
    return true;
}

std::vector<float> multiply_on_cpu(const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> d(kM * kN, NAN);
    tcgemm::gemm(row_major_problem(), tcgemm::Device::cpu(),
                 {a.data(), b.data(), nullptr, d.data()});
    return d;
}

std::vector<float> multiply_on_gpu(const std::vector<float>& a, const std::vector<float>& b) {
    const tcgemm::Plan plan(row_major_problem(), tcgemm::Device::cuda(0));
    std::printf("GPU kernel: %s\n", plan.kernel().c_str());
    const tcgemm::DeviceGuard guard(plan.device());
    const tcgemm::Stream stream(plan.device());
    const auto upload = [&stream](const std::vector<float>& values) {
        tcgemm::DeviceBuffer buffer(values.size() * sizeof(float), stream.device(), stream);
        tcgemm::copy_async(buffer.data(), values.data(), buffer.bytes(), stream);
        return buffer;
    };
    std::vector<float> d(kM * kN, NAN);
    const tcgemm::DeviceBuffer device_a = upload(a), device_b = upload(b), device_d = upload(d);
    plan.run({device_a.data(), device_b.data(), nullptr, device_d.data()}, {}, stream);
    tcgemm::copy_async(d.data(), device_d.data(), device_d.bytes(), stream);
    stream.view().synchronize();
    return d;
}

}  // namespace

int main() try {
    const std::vector<float> a = matrix(kM * kK, 1), b = matrix(kK * kN, 2);
    bool good = right(a, b, multiply_on_cpu(a, b));
    std::printf("CPU: %s\n", good ? "right" : "WRONG");
    if (tcgemm::cuda_device_count() > 0) {
        const bool gpu_good = right(a, b, multiply_on_gpu(a, b));
        std::printf("GPU: %s\n", gpu_good ? "right" : "WRONG");
        good = good && gpu_good;
    } else {
        std::printf("no GPU: %s\n", tcgemm::cuda_unavailable_reason().c_str());
    }
    return good ? 0 : 1;
} catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
}
