#include "tcgemm/tcgemm.h"

#include <cstring>
#include <vector>

#include "check.hpp"

namespace {

std::string last_error() { return tcgemm_last_error(); }

tcgemm_pointers pointers(const void* a, const void* b, void* d) {
    tcgemm_pointers at = {};
    at.a = a;
    at.b = b;
    at.d = d;
    return at;
}

TEST(multiplies_through_the_c_interface) {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, 2, 2, 3, TCGEMM_FLOAT32);
    problem.a.alignment = problem.b.alignment = problem.c.alignment = problem.d.alignment = 4;
    const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 0, 1, 1, 1};
    std::vector<float> d(4);
    tcgemm_pointers at = pointers(a.data(), b.data(), d.data());
    CHECK_EQ(tcgemm_gemm(&problem, TCGEMM_CPU, &at, 1, 0, nullptr), TCGEMM_OK);
    CHECK((d == std::vector<float>{4, 5, 10, 11}));

    tcgemm_plan* plan = nullptr;
    CHECK_EQ(tcgemm_plan_create(&problem, TCGEMM_CPU, &plan), TCGEMM_OK);
    CHECK_EQ(std::string(tcgemm_plan_kernel(plan)), "host_float32");
    CHECK_EQ(tcgemm_plan_workspace_bytes(plan), std::size_t{0});
    at.c = d.data();
    CHECK_EQ(tcgemm_plan_run(plan, &at, 1, 1, nullptr, nullptr, 0), TCGEMM_OK);
    CHECK((d == std::vector<float>{8, 10, 20, 22}));
    tcgemm_plan_destroy(plan);
}

TEST(modes_that_are_asked_for) {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, 2, 2, 3, TCGEMM_FLOAT32);
    problem.a.alignment = problem.b.alignment = problem.c.alignment = problem.d.alignment = 4;
    problem.precision = TCGEMM_PRECISION_FP16;
    problem.accumulate = TCGEMM_ACCUMULATE_PROMOTED;
    problem.determinism = TCGEMM_BATCH_INVARIANT;
    const std::vector<float> a = {2049, 2, 3, 4, 5, 6},
                             b = {1, 0, 0, 1, 1, 1};  // 2049 goes to 2048
    std::vector<float> d(4);
    const tcgemm_pointers at = pointers(a.data(), b.data(), d.data());
    CHECK_EQ(tcgemm_gemm(&problem, TCGEMM_CPU, &at, 1, 0, nullptr), TCGEMM_OK);
    CHECK((d == std::vector<float>{2051, 5, 10, 11}));
}

TEST(scales_of_fp8_operands) {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, 2, 2, 3, TCGEMM_FLOAT8_E4M3FN);
    problem.c.dtype = problem.d.dtype = TCGEMM_FLOAT32;
    problem.c.alignment = problem.d.alignment = 4;
    problem.scale_a.kind = TCGEMM_SCALE_VECTOR;
    problem.scale_a.outer_stride = 1;
    problem.scale_b.kind = TCGEMM_SCALE_TENSOR;
    problem.scale_d = 1;
    tcgemm_plan* plan = nullptr;
    CHECK_EQ(tcgemm_plan_create(&problem, TCGEMM_CPU, &plan), TCGEMM_OK);
    const std::vector<unsigned char> a = {0x38, 0x40, 0x00, 0x00, 0x38, 0x38};  // 1 2 0, 0 1 1
    const std::vector<unsigned char> b = {0x38, 0x00, 0x38, 0x38, 0x00, 0x40};  // 1 0, 1 1, 0 2
    const std::vector<float> scale_a = {2, 3}, scale_b = {10}, scale_d = {0.5f};
    std::vector<float> d(4);
    alignas(16) unsigned char a_memory[8], b_memory[8];
    std::copy(a.begin(), a.end(), a_memory);
    std::copy(b.begin(), b.end(), b_memory);
    tcgemm_pointers at = pointers(a_memory, b_memory, d.data());
    at.scale_a = scale_a.data();
    at.scale_b = scale_b.data();
    at.scale_d = scale_d.data();
    const std::vector<float> expected = {30, 20, 15, 45};
    CHECK_EQ(tcgemm_plan_run(plan, &at, 1, 0, nullptr, nullptr, 0), TCGEMM_OK);
    CHECK(d == expected);
    d.assign(4, -1);
    CHECK_EQ(tcgemm_gemm(&problem, TCGEMM_CPU, &at, 1, 0, nullptr), TCGEMM_OK);
    CHECK(d == expected);
    const auto both_refuse = [&](const char* words) {
        CHECK_EQ(tcgemm_plan_run(plan, &at, 1, 0, nullptr, nullptr, 0), TCGEMM_INVALID_LAYOUT);
        CHECK(last_error().find(words) != std::string::npos);
        CHECK_EQ(tcgemm_gemm(&problem, TCGEMM_CPU, &at, 1, 0, nullptr), TCGEMM_INVALID_LAYOUT);
        CHECK(last_error().find(words) != std::string::npos);
        CHECK(d == expected);
    };
    at.scale_a = nullptr;
    both_refuse("scale_a is a null pointer");
    at.scale_a = d.data() + 1;
    both_refuse("D overlaps operand scale_a");
    at = pointers(a_memory, b_memory, d.data());
    both_refuse("scale_a is a null pointer");
    tcgemm_plan_destroy(plan);
}

TEST(every_failure_has_its_status_and_a_message) {
    tcgemm_problem problem;
    tcgemm_plan* plan = nullptr;
    const auto create = [&](auto change, int device = TCGEMM_CPU) {
        tcgemm_problem_init(&problem, 2, 2, 3, TCGEMM_FLOAT32);
        change(problem);
        return tcgemm_plan_create(&problem, device, &plan);
    };
    const auto as_is = [](tcgemm_problem&) {};
    CHECK_EQ(create([](tcgemm_problem& p) { p.m = -5; }), TCGEMM_INVALID_SHAPE);
    CHECK(last_error().find("m is -5") != std::string::npos);
    CHECK_EQ(create([](tcgemm_problem& p) { p.a.dtype = static_cast<tcgemm_dtype>(256); }),
             TCGEMM_INVALID_ARGUMENT);
    CHECK(last_error().find("operand A has the value 256") != std::string::npos);
    CHECK_EQ(create([](tcgemm_problem& p) { p.d.dtype = static_cast<tcgemm_dtype>(-1); }),
             TCGEMM_INVALID_ARGUMENT);
    CHECK(last_error().find("operand D has the value -1") != std::string::npos);
    CHECK_EQ(create([](tcgemm_problem& p) { p.precision = static_cast<tcgemm_precision>(258); }),
             TCGEMM_INVALID_ARGUMENT);
    CHECK(last_error().find("precision has the value 258") != std::string::npos);
    CHECK_EQ(create([](tcgemm_problem& p) { p.a.dtype = TCGEMM_INT8; }), TCGEMM_INVALID_DTYPE);
    CHECK_EQ(create([](tcgemm_problem& p) { p.d.row_stride = 0; }), TCGEMM_INVALID_LAYOUT);
    CHECK_EQ(create([](tcgemm_problem& p) { p.precision = TCGEMM_PRECISION_FP8_E4M3; }),
             TCGEMM_INVALID_DTYPE);
    CHECK_EQ(create([](tcgemm_problem& p) { p.overflow = static_cast<tcgemm_overflow>(256); }),
             TCGEMM_INVALID_ARGUMENT);
    CHECK(last_error().find("overflow has the value 256") != std::string::npos);
    CHECK_EQ(create([](tcgemm_problem& p) { p.scale_d = 1; }), TCGEMM_INVALID_ARGUMENT);
    CHECK_EQ(create(as_is, 63), TCGEMM_DEVICE_ERROR);
    CHECK_EQ(create(as_is, -2), TCGEMM_DEVICE_ERROR);
    CHECK_EQ(tcgemm_plan_create(nullptr, TCGEMM_CPU, &plan), TCGEMM_INVALID_ARGUMENT);
    CHECK_EQ(tcgemm_plan_create(&problem, TCGEMM_CPU, nullptr), TCGEMM_INVALID_ARGUMENT);
    CHECK(plan == nullptr);
    tcgemm_plan_destroy(nullptr);
}

TEST(null_structures) {
    tcgemm_problem problem;
    tcgemm_problem_init(&problem, 2, 2, 3, TCGEMM_FLOAT32);
    const tcgemm_pointers none = {};
    const auto refuses = [](tcgemm_status status, const char* words) {
        CHECK_EQ(status, TCGEMM_INVALID_ARGUMENT);
        CHECK(last_error().find(words) != std::string::npos);
    };
    tcgemm_plan* plan = nullptr;
    CHECK_EQ(tcgemm_plan_create(&problem, TCGEMM_CPU, &plan), TCGEMM_OK);
    refuses(tcgemm_plan_run(nullptr, &none, 1, 0, nullptr, nullptr, 0), "plan is NULL");
    refuses(tcgemm_plan_run(plan, nullptr, 1, 0, nullptr, nullptr, 0), "pointers is NULL");
    refuses(tcgemm_gemm(nullptr, TCGEMM_CPU, &none, 1, 0, nullptr), "problem is NULL");
    refuses(tcgemm_gemm(&problem, TCGEMM_CPU, nullptr, 1, 0, nullptr), "pointers is NULL");
    // Zeros are no addresses, and no product reads them by mistake.
    CHECK_EQ(tcgemm_plan_run(plan, &none, 1, 0, nullptr, nullptr, 0), TCGEMM_INVALID_LAYOUT);
    CHECK(last_error().find("operand D is a null pointer") != std::string::npos);
    tcgemm_plan_destroy(plan);
}

TEST(speaks_of_itself) {
    CHECK_EQ(std::string(tcgemm_version()), TCGEMM_VERSION);
    CHECK_EQ(std::string(tcgemm_status_name(TCGEMM_NO_KERNEL)), "no kernel");
    CHECK(tcgemm_device_count() >= 0);
    for (int device = 0; device < tcgemm_device_count(); ++device) {
        CHECK_EQ(tcgemm_release_unused_memory(device), TCGEMM_OK);
    }
    CHECK_EQ(tcgemm_release_unused_memory(63), TCGEMM_DEVICE_ERROR);
    CHECK_EQ(tcgemm_release_unused_memory(TCGEMM_CPU), TCGEMM_DEVICE_ERROR);
    CHECK(last_error().find("device is the CPU") != std::string::npos);
    CHECK_EQ(tcgemm_release_unused_memory(-2), TCGEMM_DEVICE_ERROR);
    CHECK(last_error().find("device is -2") != std::string::npos);
}

}  // namespace

int main() { return check::run(); }
