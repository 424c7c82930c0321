// Bandwidth of the packing pass against a device copy, in one process, alternating. Prints JSON.
//   pack_bench [repeats]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "pack/pack.hpp"
#include "tcgemm/tcgemm.hpp"

using namespace tcgemm;

namespace {

struct Case {
    const char* name;
    std::int64_t rows, cols, leading_dimension;  // elements; the source is row-major
    DType from, to;
};

constexpr Case kCases[] = {
    {"float32 to float16, 8192 x 8192", 8192, 8192, 8192, DType::f32, DType::f16},
    {"float32 to float16, 16384 x 16384", 16384, 16384, 16384, DType::f32, DType::f16},
    {"float32 to bfloat16, 8192 x 8192", 8192, 8192, 8192, DType::f32, DType::bf16},
    {"float32 to float16, 8191 x 8193", 8191, 8193, 8193, DType::f32, DType::f16},
    {"float16 padded, 8191 x 8193", 8191, 8193, 8193, DType::f16, DType::f16},
    {"float16 padded, 16383 x 16381", 16383, 16381, 16381, DType::f16, DType::f16},
    {"float32 to float16, 4096 x 4096", 4096, 4096, 4096, DType::f32, DType::f16},
    {"float32 to float16, 4097 x 4097", 4097, 4097, 4097, DType::f32, DType::f16},
};

template <class Launch>
float median_ms(const Launch& launch, StreamView stream, int repeats) {
    std::vector<float> times;
    for (int i = 0; i < repeats + 2; ++i) {
        Event start(0, true), stop(0, true);
        start.record(stream);
        launch();
        stop.record(stream);
        stop.synchronize();
        if (i >= 2) times.push_back(stop.milliseconds_since(start));
    }
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    return times[static_cast<std::size_t>(repeats / 2)];
}

// Bytes read and written per second. Sources and targets rotate, so that no pass finds its data in
// the L2 cache (60 MB on an H200).
void measure(const Case& c, int repeats, bool last) {
    const Stream stream(0);
    MatrixView source;
    source.dtype = c.from;
    source.row_stride = c.leading_dimension;
    source.col_stride = 1;
    BatchShape one;
    pack::PackLayout target = pack::packed_layout(source, c.rows, c.cols, one, c.to, 16);
    const std::size_t read = static_cast<std::size_t>(c.rows * c.cols) * size_of(c.from);
    const std::size_t written = static_cast<std::size_t>(c.rows * c.cols) * size_of(c.to);
    const std::size_t footprint =
        static_cast<std::size_t>(c.rows * c.leading_dimension) * size_of(c.from);
    const int sets =
        static_cast<int>(std::max<std::size_t>(2, (std::size_t{512} << 20) / footprint));

    std::vector<unsigned> noise(footprint / sizeof(unsigned) + 1);
    unsigned seed = 12345;  // finite floats between 2^-7 and 2^8, or halves of any value
    for (unsigned& word : noise) {
        seed = seed * 1664525u + 1013904223u;
        word = (seed & 0x87ffffffu) | 0x3c000000u;
    }
    std::vector<DeviceBuffer> from, to, copy;
    for (int i = 0; i < sets; ++i) {
        from.emplace_back(footprint, 0, stream);
        copy_async(from.back().data(), noise.data(), footprint, stream);
        to.emplace_back(target.bytes, 0, stream);
        copy.emplace_back(footprint, 0, stream);
    }
    stream.view().synchronize();
    int turn = 0;
    const auto set = [&] { return static_cast<std::size_t>(turn++ % sets); };
    const float pack_ms = median_ms(
        [&] {
            const std::size_t i = set();
            source.data = from[i].data();
            target.view.data = to[i].data();
            pack::launch(source, c.rows, c.cols, target, stream);
        },
        stream, repeats);
    const float copy_ms = median_ms(
        [&] {
            const std::size_t i = set();
            copy_async(copy[i].data(), from[i].data(), footprint, stream);
        },
        stream, repeats);
    const double pack_gbps = static_cast<double>(read + written) / pack_ms / 1e6;
    const double copy_gbps = 2.0 * static_cast<double>(footprint) / copy_ms / 1e6;
    std::printf(
        "  {\"case\": \"%s\", \"pack_us\": %.2f, \"pack_gb_per_s\": %.0f, "
        "\"copy_gb_per_s\": %.0f, \"ratio\": %.3f}%s\n",
        c.name, 1e3 * pack_ms, pack_gbps, copy_gbps, pack_gbps / copy_gbps, last ? "" : ",");
}

}  // namespace

int main(int argc, char** argv) {
    const int repeats = argc > 1 ? std::atoi(argv[1]) : 30;
    try {
        std::printf("{\"gpu\": \"%s\", \"commit\": \"%s\", \"cuda\": \"%s\", \"rows\": [\n",
                    properties(Device::cuda(0)).name.c_str(), build_info().commit.c_str(),
                    build_info().cuda_version.c_str());
        const int count = static_cast<int>(std::size(kCases));
        for (int i = 0; i < count; ++i) measure(kCases[i], repeats, i + 1 == count);
        std::printf("]}\n");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pack_bench: %s\n", error.what());
        return 1;
    }
    return 0;
}
