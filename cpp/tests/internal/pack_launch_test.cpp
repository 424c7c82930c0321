// The packing pass on a GPU, one operand or two in a launch, element by element against the
// source. Without a GPU there is nothing to test.
#include <cstdint>
#include <cstring>
#include <vector>

#include "../check.hpp"
#include "kernels/host/convert.hpp"
#include "pack/pack.hpp"
#include "tcgemm/tcgemm.hpp"

using namespace tcgemm;

namespace {

constexpr Device kDevice = Device::cuda(0);

// An operand in memory that holds it and, to the end of 16 aligned bytes, nothing else: such
// blocks are read whole. Strides and offset count elements.
struct Source {
    DType from, to;
    std::int64_t rows, cols, row_stride, col_stride;
    std::int64_t offset = 0;  // from the allocation to the lowest element
    std::vector<std::int64_t> batch = {}, batch_stride = {};
    pack::Order order = pack::Order::either;
};

// Whole numbers that every dtype holds, different for neighbours, rows and batches.
int value_at(std::int64_t index) {
    const auto mixed = static_cast<std::uint64_t>(index + 1) * 0x9e3779b97f4a7c15u;
    return static_cast<int>(mixed >> 57) - 64;
}

template <class T>
void put(void* memory, std::int64_t index, T element) {
    std::memcpy(static_cast<char*>(memory) + index * static_cast<std::int64_t>(sizeof(T)), &element,
                sizeof(T));
}
template <class T>
T get(const void* memory, std::int64_t index) {
    T element;
    std::memcpy(&element,
                static_cast<const char*>(memory) + index * static_cast<std::int64_t>(sizeof(T)),
                sizeof(T));
    return element;
}

void write(DType dtype, void* memory, std::int64_t index, int value) {
    switch (dtype) {
        case DType::f16: return put(memory, index, host::to_half(static_cast<float>(value)));
        case DType::bf16: return put(memory, index, host::to_bfloat16(static_cast<float>(value)));
        case DType::f32: return put(memory, index, static_cast<float>(value));
        case DType::f64: return put(memory, index, static_cast<double>(value));
        default: return put(memory, index, static_cast<std::int8_t>(value));
    }
}
double read(DType dtype, const void* memory, std::int64_t index) {
    switch (dtype) {
        case DType::f16: return host::to_float(get<host::Half>(memory, index));
        case DType::bf16: return host::to_float(get<host::BFloat16>(memory, index));
        case DType::f32: return get<float>(memory, index);
        case DType::f64: return get<double>(memory, index);
        default: return get<std::int8_t>(memory, index);
    }
}

constexpr std::size_t kGuard = 256;  // bytes behind a packed operand that stay as they are
constexpr unsigned char kGuardByte = 0x5a;

// A source on the device, and what the pass made of it.
class Packed {
   public:
    Packed(const Source& source, StreamView stream) : source_(source), stream_(stream) {
        BatchShape batch;
        batch.rank = static_cast<int>(source.batch.size());
        task.source.dtype = source.from;
        task.source.row_stride = source.row_stride;
        task.source.col_stride = source.col_stride;
        task.rows = source.rows;
        task.cols = source.cols;
        std::int64_t low = 0, high = 1;
        const auto reach = [&](std::int64_t extent, std::int64_t stride) {
            if (extent > 1) (stride < 0 ? low : high) += (extent - 1) * stride;
        };
        reach(source.rows, source.row_stride);
        reach(source.cols, source.col_stride);
        for (int dim = 0; dim < batch.rank; ++dim) {
            const auto at = static_cast<std::size_t>(dim);
            batch.extent[dim] = source.batch[at];
            batch.count *= source.batch[at];
            task.source.batch_stride[dim] = source.batch_stride[at];
            reach(source.batch[at], source.batch_stride[at]);
        }
        batch_ = batch;
        first_ = source.offset - low;
        const std::int64_t block = 16 / size_of(source.from);
        const std::int64_t elements = (source.offset + high - low + block - 1) / block * block;
        std::vector<char> memory(static_cast<std::size_t>(elements * size_of(source.from)));
        for (std::int64_t i = 0; i < elements; ++i) {
            write(source.from, memory.data(), i, value_at(i));
        }
        from_ = DeviceBuffer(memory.size(), kDevice, stream);
        copy_async(from_.data(), memory.data(), memory.size(), stream);
        task.source.data = static_cast<char*>(from_.data()) + first_ * size_of(source.from);
        task.target = pack::packed_layout(task.source, source.rows, source.cols, batch, source.to,
                                          16, source.order);
        const std::vector<unsigned char> guards(task.target.bytes + kGuard, kGuardByte);
        to_ = DeviceBuffer(guards.size(), kDevice, stream);
        copy_async(to_.data(), guards.data(), guards.size(), stream);
        task.target.view.data = to_.data();
        stream.synchronize();
    }

    // Elements that are not what the source holds, and guards that were written.
    int wrong() const {
        std::vector<unsigned char> result(task.target.bytes + kGuard);
        copy_async(result.data(), to_.data(), result.size(), stream_);
        stream_.synchronize();
        int count = 0;
        const MatrixView& target = task.target.view;
        for (std::int64_t index = 0; index < batch_.count; ++index) {
            const std::int64_t from =
                first_ + batch_offset(batch_, task.source.batch_stride, index);
            const std::int64_t to = batch_offset(batch_, target.batch_stride, index);
            for (std::int64_t row = 0; row < source_.rows; ++row) {
                for (std::int64_t col = 0; col < source_.cols; ++col) {
                    const std::int64_t at =
                        from + row * source_.row_stride + col * source_.col_stride;
                    count += read(source_.to, result.data(),
                                  to + row * target.row_stride + col * target.col_stride) !=
                             value_at(at);
                }
            }
        }
        for (std::size_t i = task.target.bytes; i < result.size(); ++i) {
            count += result[i] != kGuardByte;
        }
        return count;
    }

    pack::Task task;

   private:
    Source source_;
    StreamView stream_;
    BatchShape batch_;
    std::int64_t first_ = 0;
    DeviceBuffer from_, to_;
};

void check_one(const Source& source) {
    const Stream stream(kDevice);
    const Packed packed(source, stream);
    pack::launch(&packed.task, 1, stream);
    CHECK_EQ(packed.wrong(), 0);
}

void check_two(const Source& first, const Source& second) {
    const Stream stream(kDevice);
    const Packed a(first, stream), b(second, stream);
    const pack::Task tasks[] = {a.task, b.task};
    pack::launch(tasks, 2, stream);
    CHECK_EQ(a.wrong(), 0);
    CHECK_EQ(b.wrong(), 0);
}

bool no_gpu() { return cuda_device_count() == 0; }

constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64,
                i8 = DType::i8;

template <class Check>
void for_each_conversion(const Check& check) {
    const DType dtypes[] = {f16, bf16, f32, f64, i8};
    for (const DType from : dtypes) {
        for (const DType to : dtypes) {
            if (pack::converts(from, to)) check(from, to);
        }
    }
}

TEST(rows_at_every_address_in_every_conversion) {
    if (no_gpu()) return;
    for_each_conversion([](DType from, DType to) {
        for (std::int64_t offset = 0; offset < 16 / size_of(from) + 1; ++offset) {
            check_one({from, to, 37, 101, 101, 1, offset});
        }
        check_one({from, to, 16, 64, 80, 1});    // whole vectors
        check_one({from, to, 45, 67, 1, 45});    // column-major
        check_one({from, to, 70, 131, 263, 2});  // gathered
        check_one({from, to, 70, 131, 3, 217});  // gathered by columns
    });
}

TEST(rows_of_every_length) {
    if (no_gpu()) return;
    for (std::int64_t cols = 1; cols < 40; ++cols) {
        check_one({f16, f16, 300, cols, cols, 1, 1});
        check_one({f32, f16, 77, cols, cols + 1, 1, 3});
    }
    check_one({f16, f16, 3, 40001, 40001, 1, 1});  // longer than a tile
    check_one({f32, f16, 1, 99999, 99999, 1, 1});
    check_one({f16, f16, 2049, 513, 513, 1});  // many tiles
    check_one({f32, bf16, 1500, 1500, 1500, 1});
}

TEST(any_strides) {
    if (no_gpu()) return;
    check_one({f16, f16, 33, 50, -51, 1, 3});  // rows in reverse
    check_one({f32, f16, 33, 50, 51, -1, 3});  // columns in reverse
    check_one({f16, f16, 20, 30, 0, 1, 1});    // the same row again
    check_one({f16, f16, 20, 30, 7, 0});       // the same column again
    check_one({f16, f16, 60, 70, 3, 1});       // rows that overlap
    check_one({f16, f16, 1000, 1, 1, 1, 1});   // a column, a row, an element
    check_one({f16, f16, 1000, 1, 5, 9});
    check_one({f16, f16, 1, 1000, 1, 5});
    check_one({f32, f16, 1, 1, 1000000, 1000000});
}

// Column-major to row-major: through tiles of as many columns of memory as hold the rows.
TEST(operands_that_change_their_order) {
    if (no_gpu()) return;
    for_each_conversion([](DType from, DType to) {
        for (const std::int64_t rows : {2, 7, 16, 17, 33, 64, 65, 130}) {
            const std::int64_t ld = rows % 2 == 0 ? rows : rows + 2;
            const auto transposed = [&](std::int64_t cols, std::int64_t offset) {
                check_one(
                    {from, to, rows, cols, 1, ld, offset, {3}, {ld * cols}, pack::Order::row});
            };
            transposed(19, 0);
            transposed(1029, 3);
        }
    });
    check_one({i8, i8, 300, 2500, 1, 304, 0, {}, {}, pack::Order::row});
    check_one({f32, f16, 300, 2500, 2500, 1, 1, {}, {}, pack::Order::col});
}

TEST(batches_and_their_broadcasts) {
    if (no_gpu()) return;
    check_one({f16, f16, 17, 19, 19, 1, 1, {5}, {17 * 19}});
    check_one({f16, f16, 17, 19, 19, 1, 1, {5}, {0}});
    check_one({f32, f16, 9, 24, 24, 1, 0, {3, 4, 5}, {-9 * 24 * 5, 0, 9 * 24}});
    check_one({f16, f16, 9, 13, 2 * 13, 2, 0, {2, 700}, {1, 9 * 26}});
    check_one({f16, f16, 8, 64, 64, 1, 0, {3}, {8 * 64 + 4}});  // only the batches are odd
}

TEST(two_operands_in_one_launch) {
    if (no_gpu()) return;
    check_two({f16, f16, 33, 70, 71, 1, 1}, {f16, f16, 70, 513, 513, 1});
    check_two({f32, f16, 2000, 64, 64, 1}, {f32, f16, 64, 3, 3, 1, 1});
    check_two({f16, f16, 33, 70, 71, 1, 1}, {f16, f16, 70, 50, 200, 3});   // gathered
    check_two({f16, f16, 33, 70, -500, 2, 1}, {f16, f16, 70, 50, 1, 77});  // column-major
    check_two({f16, f16, 33, 70, 70, 1, 1, {4, 3}, {33 * 70, 0}},          // each broadcast
              {f16, f16, 70, 20, 21, 1, 0, {4, 3}, {0, -70 * 21}});        // elsewhere
    check_two({f16, f16, 1, 1, 1, 1, 1}, {f16, f16, 1, 1, 1, 1, 3});
}

TEST(two_operands_of_different_dtypes) {
    if (no_gpu()) return;
    check_two({f32, f16, 33, 70, 71, 1, 1}, {f16, f16, 70, 51, 51, 1, 1});
    check_two({i8, f64, 33, 70, 71, 1, 1}, {f32, f64, 70, 51, 51, 1, 1});
}

TEST(an_operand_without_elements_does_not_keep_the_other_from_work) {
    if (no_gpu()) return;
    const Stream stream(kDevice);
    const Packed packed({f16, f16, 33, 70, 71, 1, 1}, stream);
    pack::Task nothing = packed.task;
    nothing.rows = 0;
    nothing.source.data = nothing.target.view.data = nullptr;
    const pack::Task first[] = {nothing, packed.task}, last[] = {packed.task, nothing};
    pack::launch(first, 2, stream);
    CHECK_EQ(packed.wrong(), 0);
    pack::launch(last, 2, stream);
    CHECK_EQ(packed.wrong(), 0);
    const pack::Task none[] = {nothing, nothing};
    pack::launch(none, 2, stream);
    pack::launch(none, 0, stream);
    stream.view().synchronize();
}

// Passes that overlap the end of the one before still see all that it wrote: a chain of copies,
// each the source of the next, through memory that holds other values of the round before.
TEST(a_pass_waits_for_the_one_before) {
    if (no_gpu()) return;
    const Stream stream(kDevice);
    const std::int64_t rows = 1001, cols = 1003;
    const Packed chains[] = {{{f16, f16, rows, cols, cols, 1, 1}, stream},
                             {{f16, f16, rows, cols, cols, 1, 2}, stream}};
    std::vector<DeviceBuffer> links;
    for (int i = 0; i < 4; ++i) links.emplace_back(chains[0].task.target.bytes, kDevice, stream);
    for (int round = 0; round < 20; ++round) {
        const Packed& chain = chains[round % 2];
        pack::Task step = chain.task;
        for (const DeviceBuffer& link : links) {
            step.target.view.data = link.data();
            pack::launch(&step, 1, stream);
            step.source = step.target.view;
        }
        step.target = chain.task.target;
        pack::launch(&step, 1, stream);
        CHECK_EQ(chain.wrong(), 0);
    }
}

}  // namespace

int main() { return check::run(); }
