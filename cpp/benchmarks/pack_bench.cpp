// The packing pass: time and bandwidth, against a device copy of as many bytes in one process.
//   pack_bench [repeats] [file.json]      prints a table; writes the rows as JSON
//
// cold    between events, a launch each; sources and targets rotate through more than the L2 cache
// stream  a CUDA graph of launches on the same operands, as products in a row make them
// apart   the same graph with a launch for each operand (where there are two)
// copy    cudaMemcpyAsync of the bytes that `cold` reads and writes, timed in turn with it
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pack/pack.hpp"
#include "tcgemm/tcgemm.hpp"

using namespace tcgemm;

namespace {

constexpr Device kDevice = Device::cuda(0);

struct Case {
    int operands;
    std::int64_t rows, cols;  // row-major, without gaps between rows
    DType from, to;
    int step = 1;             // elements from column to column
    int batch = 1;            // matrices, one behind the other
    bool transposes = false;  // column-major, and packed row-major
};

constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32, i8 = DType::i8;
constexpr Case kCases[] = {
    {1, 8192, 8192, f32, f16},
    {1, 16384, 16384, f32, f16},
    {1, 8192, 8192, f32, bf16},
    {1, 8191, 8193, f32, f16},
    {1, 8191, 8193, f16, f16},
    {1, 16383, 16381, f16, f16},
    {1, 4096, 4096, f32, f16},
    {1, 4097, 4097, f32, f16},
    {2, 513, 513, f16, f16},
    {2, 1025, 1025, f16, f16},
    {2, 2049, 2049, f16, f16},
    {2, 4097, 4097, f16, f16},
    {2, 8193, 8193, f16, f16},
    {2, 513, 513, f32, f16},
    {2, 1024, 1024, f32, f16},
    {2, 2048, 2048, f32, f16},
    {2, 4096, 4096, f32, f16},
    {2, 4097, 4097, f32, f16},
    {2, 8192, 8192, f32, f16},
    {2, 16384, 16384, f32, f16},
    {1, 8192, 8192, f16, f16, 2},
    {1, 8192, 8192, f32, f16, 2},
    // Transposed: of large and small matrices, and batches of small and narrow ones.
    {1, 64, 64, i8, i8, 1, 1, true},
    {1, 1024, 1024, i8, i8, 1, 1, true},
    {1, 8192, 8192, i8, i8, 1, 1, true},
    {1, 8191, 8193, i8, i8, 1, 1, true},
    {1, 64, 64, i8, i8, 1, 500, true},
    {1, 8, 440, i8, i8, 1, 500, true},
    {1, 440, 8, i8, i8, 1, 500, true},
    {1, 4096, 4096, f16, f16, 1, 1, true},
    {1, 4096, 4096, f32, f16, 1, 1, true},
};

void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        throw CudaError(std::string(what) + ": " + cudaGetErrorString(status), status);
    }
}

double median(std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
}

template <class Launch>
double microseconds(const Launch& launch, StreamView stream) {
    Event start(kDevice, true), stop(kDevice, true);
    start.record(stream);
    launch();
    stop.record(stream);
    stop.synchronize();
    return 1e3 * static_cast<double>(stop.milliseconds_since(start));
}

// The time of one of many launches in a graph.
template <class Launch>
double graph_microseconds(const Launch& launch, StreamView stream, int repeats) {
    constexpr int kLaunches = 20;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < kLaunches; ++i) launch();
    check(cudaStreamEndCapture(stream.get(), &graph), "capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    std::vector<double> times;
    for (int i = 0; i < repeats / 3 + 3; ++i) {
        times.push_back(microseconds(
            [&] { check(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch"); }, stream));
    }
    check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return median(times) / kLaunches;
}

struct Row {
    double cold_us, stream_us, apart_us, cold_gbps, copy_gbps;
};

Row measure(const Case& c, int repeats) {
    const Stream stream(kDevice);
    pack::Task task;
    task.rows = c.rows;
    task.cols = c.cols;
    task.source.dtype = c.from;
    task.source.row_stride = c.transposes ? c.step : c.cols * c.step;
    task.source.col_stride = c.transposes ? c.rows * c.step : c.step;
    BatchShape batch;
    if (c.batch > 1) {
        batch.rank = 1;
        batch.count = batch.extent[0] = c.batch;
        task.source.batch_stride[0] = c.rows * c.cols * c.step;
    }
    const pack::Order order = c.transposes ? pack::Order::row : pack::Order::either;
    task.target = pack::packed_layout(task.source, c.rows, c.cols, batch, c.to, 16, order);
    const auto elements = static_cast<std::size_t>(c.rows * c.cols * c.batch);
    const std::size_t read = elements * static_cast<std::size_t>(size_of(c.from) * c.step);
    const std::size_t moved = read + elements * static_cast<std::size_t>(size_of(c.to));

    std::vector<unsigned> noise(read / sizeof(unsigned) + 1);
    unsigned seed = 12345;  // finite floats between 2^-7 and 2^8, or halves of any value
    for (unsigned& word : noise) {
        seed = seed * 1664525u + 1013904223u;
        word = (seed & 0x87ffffffu) | 0x3c000000u;
    }
    const auto turns = std::clamp<std::size_t>((std::size_t{512} << 20) / read, 2, 64);
    const std::size_t sets = std::max(turns, static_cast<std::size_t>(c.operands));
    std::vector<DeviceBuffer> from, to, copy;
    for (std::size_t i = 0; i < sets; ++i) {
        from.emplace_back(read, kDevice, stream);
        copy_async(from.back().data(), noise.data(), read, stream);
        to.emplace_back(task.target.bytes, kDevice, stream);
        copy.emplace_back(moved / 2, kDevice, stream);
    }
    stream.view().synchronize();

    std::size_t turn = 0;
    std::vector<pack::Task> tasks(static_cast<std::size_t>(c.operands), task);
    const auto next_operands = [&] {
        for (pack::Task& t : tasks) {
            t.source.data = from[turn % sets].data();
            t.target.view.data = to[turn % sets].data();
            ++turn;
        }
    };
    std::vector<double> cold, copied;
    for (int i = 0; i < repeats + 2; ++i) {
        next_operands();
        const double pack_us =
            microseconds([&] { pack::launch(tasks.data(), c.operands, stream); }, stream);
        const double copy_us = microseconds(
            [&] {
                for (int k = 0; k < c.operands; ++k, ++turn) {
                    const DeviceBuffer& target = copy[turn % sets];
                    const DeviceBuffer& source = copy[(turn + sets / 2) % sets];
                    copy_async(target.data(), source.data(), moved / 2, stream);
                }
            },
            stream);
        if (i < 2) continue;
        cold.push_back(pack_us);
        copied.push_back(copy_us);
    }
    next_operands();
    Row row{};
    row.cold_us = median(cold);
    row.stream_us = graph_microseconds([&] { pack::launch(tasks.data(), c.operands, stream); },
                                       stream, repeats);
    row.apart_us = c.operands == 1 ? row.stream_us
                                   : graph_microseconds(
                                         [&] {
                                             for (const pack::Task& one : tasks)
                                                 pack::launch(&one, 1, stream);
                                         },
                                         stream, repeats);
    const double bytes = static_cast<double>(moved) * c.operands;
    row.cold_gbps = bytes / row.cold_us / 1e3;
    row.copy_gbps = bytes / median(copied) / 1e3;
    return row;
}

}  // namespace

int main(int argc, char** argv) {
    const int repeats = argc > 1 ? std::atoi(argv[1]) : 30;
    try {
        std::string json = "{\"gpu\": \"" + properties(Device::cuda(0)).name +
                           "\", \"commit\": \"" + build_info().commit + "\", \"cuda\": \"" +
                           build_info().cuda_version + "\", \"rows\": [";
        std::printf("%-42s %9s %9s %9s %9s %9s %6s\n", "operands", "cold us", "stream us",
                    "apart us", "cold GB/s", "copy GB/s", "ratio");
        for (const Case& c : kCases) {
            const Row row = measure(c, repeats);
            const std::string batch = c.batch > 1 ? std::to_string(c.batch) + " of " : "";
            const std::string what = std::to_string(c.operands) + " x " + batch +
                                     std::to_string(c.rows) + " x " + std::to_string(c.cols) +
                                     ", " + name(c.from) + " to " + name(c.to) +
                                     (c.step > 1 ? ", step " + std::to_string(c.step) : "") +
                                     (c.transposes ? ", transposed" : "");
            std::printf("%-42s %9.2f %9.2f %9.2f %9.0f %9.0f %6.3f\n", what.c_str(), row.cold_us,
                        row.stream_us, row.apart_us, row.cold_gbps, row.copy_gbps,
                        row.cold_gbps / row.copy_gbps);
            std::fflush(stdout);
            char text[400];
            std::snprintf(text, sizeof text,
                          "%s\n  {\"case\": \"%s\", \"cold_us\": %.2f, \"stream_us\": %.2f, "
                          "\"apart_us\": %.2f, \"cold_gb_per_s\": %.0f, \"copy_gb_per_s\": %.0f, "
                          "\"ratio\": %.3f}",
                          &c == kCases ? "" : ",", what.c_str(), row.cold_us, row.stream_us,
                          row.apart_us, row.cold_gbps, row.copy_gbps,
                          row.cold_gbps / row.copy_gbps);
            json += text;
        }
        json += "\n]}\n";
        if (argc > 2) {
            std::FILE* const file = std::fopen(argv[2], "w");
            if (file == nullptr || std::fputs(json.c_str(), file) < 0 || std::fclose(file) != 0) {
                throw std::runtime_error(std::string("cannot write ") + argv[2]);
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pack_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
