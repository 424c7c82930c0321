// A block of D in three steps, accumulate, add and finish (instruction_set.hpp says what each
// promises), written in a vocabulary. Included once for each instruction set.
#pragma once

#include <type_traits>

#include "kernels/host/instruction_set.hpp"
#include "kernels/host/micro_kernel.hpp"
#include "kernels/host/pack.hpp"

namespace tcgemm::host {

// V: the vocabulary. S: its arithmetic for this mode. Compute: what A and B are rounded to.
// kScales: whether products of the mode may have the epilogue `scaled`.
template <class V, class S, class Compute, bool kScales = false>
struct BlockKernel {
    using Lane = typename S::Lane;
    using Pack = Packer<V, S, Compute>;
    static constexpr int kTileCols = S::kVectors * S::kWidth;
    static constexpr int kTile = S::kRows * kTileCols;
    // Lanes of K that are summed at a time: a panel of A (kRows x 128 lanes) stays in the L1 cache.
    // Part of the result's definition: the sum of such a block is rounded before it is added, which
    // is what Accumulate::promoted asks for.
    static constexpr int kBlockLanes = kPromotedK;

    static std::int64_t round_up(std::int64_t value, std::int64_t step) {
        return (value + step - 1) / step * step;
    }

    static std::size_t scratch_bytes(std::int64_t cols, std::int64_t k) {
        const std::int64_t lanes = (k + S::kLaneK - 1) / S::kLaneK;
        const std::int64_t b_lanes = lanes < kBlockLanes ? lanes : kBlockLanes;
        return sizeof(Lane) * static_cast<std::size_t>(Pack::kAcross * kBlockLanes +
                                                       b_lanes * round_up(cols, kTileCols));
    }

    template <int Rows, bool kInPlace>
    static void tile_rows(int cols, int lanes, const Lane* a, const Lane* b, std::int64_t b_step,
                          Lane* tile, bool first) {
        if (!kInPlace && cols <= S::kWidth) {
            micro_kernel<S, kBlockLanes, Rows, 1>(lanes, a, b, b_step, tile, first);
        } else {
            micro_kernel<S, kBlockLanes, Rows, S::kVectors, kInPlace>(lanes, a, b, b_step, tile,
                                                                      first);
        }
    }

    // Rows of a tile that are multiplied where `rows` are left.
    static int used_rows(int rows) {
        return rows == 1 ? 1 : rows <= S::kRows / 2 ? S::kRows / 2 : S::kRows;
    }

    // body(std::integral_constant<int, rows>) for that number.
    template <class Body>
    static void with_rows(int rows, const Body& body) {
        if (used_rows(rows) == 1) {
            body(std::integral_constant<int, 1>{});
        } else if (used_rows(rows) == S::kRows / 2) {
            body(std::integral_constant<int, S::kRows / 2>{});
        } else {
            body(std::integral_constant<int, S::kRows>{});
        }
    }

    template <bool kInPlace = false>
    static void tile_of(int rows, int cols, int lanes, const Lane* a, const Lane* b,
                        std::int64_t b_step, Lane* tile, bool first) {
        with_rows(rows,
                  [&](auto n) { tile_rows<n, kInPlace>(cols, lanes, a, b, b_step, tile, first); });
    }

    // Columns of B that are multiplied where they lie: those of whole tiles, where B is read once,
    // lies row by row and needs no conversion.
    static constexpr bool kMayStay = Pack::kMayBeLanes;
    // Of one row so many tiles together: the longer the pieces of B's rows, the faster they come.
    static constexpr int kStrip = 4;
    static std::int64_t columns_in_place(const ConstMatrix& b, std::int64_t rows,
                                         std::int64_t cols) {
        const bool stays = Pack::are_lanes(b.dtype) && b.col_stride == 1 && rows <= S::kRows;
        return stays ? cols / kTileCols * kTileCols : 0;
    }

    // Those `cols`, of some rows. Returns the tile behind theirs.
    static Lane* tiles_in_place(int rows, std::int64_t cols, int lanes, const Lane* a,
                                const Lane* b, std::int64_t b_step, Lane* tile, bool first) {
        if constexpr (kMayStay) {
            constexpr int kStripCols = kStrip * kTileCols;
            std::int64_t j = 0;
            for (; rows == 1 && j + kStripCols <= cols; j += kStripCols, tile += kStrip * kTile) {
                micro_kernel<S, kBlockLanes, 1, kStrip * S::kVectors, true>(lanes, a, b + j, b_step,
                                                                            tile, first);
            }
            for (; j < cols; j += kTileCols, tile += kTile) {
                tile_of<true>(rows, kTileCols, lanes, a, b + j, b_step, tile, first);
            }
        }
        return tile;
    }

    static bool is_in_rows(const ConstMatrix& a) {
        return Pack::are_lanes(a.dtype) && a.col_stride == 1;
    }
    // Columns of B that are multiplied where they lie, one after the other along K: of the rows of
    // one register tile, which would read the packed ones once.
    static std::int64_t lines_in_place(const ConstMatrix& a, const ConstMatrix& b,
                                       std::int64_t rows, std::int64_t cols) {
        const bool few = rows == 1 || (rows <= S::kRows && is_in_rows(a));
        return few && Pack::are_lanes(b.dtype) && b.row_stride == 1 ? cols / kTileCols * kTileCols
                                                                    : 0;
    }

    // Those `cols`. A is read where it lies, or packed for each vector of columns.
    template <int Rows>
    static void multiply_lines(const ConstMatrix& a, const ConstMatrix& b, int rows,
                               std::int64_t cols, std::int64_t k, Lane* lanes_out, Lane* a_panel) {
        const Lines a_line{a.data, a.dtype, a.row_stride, a.col_stride, k};
        for (std::int64_t j = 0; j < cols; j += S::Lines::kWidth) {
            const Lane* const from = static_cast<const Lane*>(b.data) + j * b.col_stride;
            Lane* const tile = lanes_out + j / kTileCols * kTile + j % kTileCols;
            for (std::int64_t lane = 0; lane < k; lane += kBlockLanes) {
                const int n = k - lane < kBlockLanes ? static_cast<int>(k - lane) : kBlockLanes;
                const Lane* a_lanes = a_panel;
                if (is_in_rows(a)) {
                    a_lanes = static_cast<const Lane*>(a.data) + lane;
                } else {
                    Pack::pack_a(a_line, 0, 1, 1, lane, n, a_panel, kBlockLanes);
                }
                lines_kernel<typename S::Lines, kTileCols, Rows>(
                    n, a_lanes, a.row_stride, rows - 1, from + lane, b.col_stride, tile, lane == 0);
            }
        }
    }

    // Whether D is so few products of two vectors, each along K in memory, that blocks of K are
    // summed side by side sooner than elements of D, which fill a part of a register.
    static bool are_vectors(const ConstMatrix& a, const ConstMatrix& b, std::int64_t rows,
                            std::int64_t cols, std::int64_t k) {
        constexpr int kFew = S::Lines::kWidth / 2;  // measured with AVX2: four floats, two doubles
        constexpr int kLeastLanes = S::Lines::kWidth * kBlockLanes;
        static_assert(kFew <= S::kRows && kFew <= kTileCols, "one register tile has them all");
        const bool few = rows * cols == 1 || (rows * cols <= kFew && k >= kLeastLanes);
        return few && is_in_rows(a) && Pack::are_lanes(b.dtype) && b.row_stride == 1;
    }
    static Lane product_of_vectors(const Lane* a, const Lane* b, std::int64_t k) {
        constexpr int kTogether = S::Lines::kWidth, kLanes = kTogether * kBlockLanes;
        Lane total = 0;
        std::int64_t lane = 0;
        const auto add = [&](Lane sum) { total = lane == 0 ? sum : total + sum; };
        for (std::int64_t end = kLanes; end <= k; end += kLanes) {
            alignas(64) Lane sums[kTogether];
            line_products<typename S::Lines, kBlockLanes>(a + lane, b + lane, sums);
            for (int i = 0; i < kTogether; ++i, lane += kBlockLanes) add(sums[i]);
        }
        for (; lane < k; lane += kBlockLanes) {
            const int n = k - lane < kBlockLanes ? static_cast<int>(k - lane) : kBlockLanes;
            add(line_product<typename S::Lines>(n, a + lane, b + lane));
        }
        return total;
    }
    static void multiply_vectors(const ConstMatrix& a, const ConstMatrix& b, std::int64_t rows,
                                 std::int64_t cols, std::int64_t k, Lane* tile) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
                tile[i * kTileCols + j] =
                    product_of_vectors(static_cast<const Lane*>(a.data) + i * a.row_stride,
                                       static_cast<const Lane*>(b.data) + j * b.col_stride, k);
            }
        }
    }

    static float scale_of(const LineScales& scales, std::int64_t line, std::int64_t k_block) {
        if (scales.data == nullptr) return 1.0f;
        const std::int64_t number = (scales.first + line) / scales.lines_per_scale;
        return scales.data[number * scales.line_stride + k_block * scales.k_stride];
    }

    // tile (+)= the sums of one k-block, each times the scales of its row and its column.
    static void add_scaled(const LineScales& a, std::int64_t row, int rows, const LineScales& b,
                           std::int64_t col, int cols, std::int64_t k_block, const Lane* sums,
                           Lane* tile) {
        Lane b_scales[kTileCols];
        for (int j = 0; j < cols; ++j) {
            b_scales[j] = static_cast<Lane>(scale_of(b, col + j, k_block));
        }
        for (int i = 0; i < rows; ++i, sums += kTileCols, tile += kTileCols) {
            const Lane a_scale = static_cast<Lane>(scale_of(a, row + i, k_block));
            for (int j = 0; j < cols; ++j) {
                const Lane sum = sums[j] * (a_scale * b_scales[j]);
                tile[j] = k_block == 0 ? sum : tile[j] + sum;
            }
        }
    }

    static void accumulate(const ConstMatrix& a, const ConstMatrix& b, std::int64_t rows,
                           std::int64_t cols, std::int64_t k, void* lanes_out, void* scratch) {
        const std::int64_t lines = lines_in_place(a, b, rows, cols);
        Lane* const tiles = static_cast<Lane*>(lanes_out);
        if constexpr (kMayStay) {
            if (are_vectors(a, b, rows, cols, k)) {
                return multiply_vectors(a, b, rows, cols, k, tiles);
            }
            const int n = static_cast<int>(rows);
            with_rows(n, [&](auto rows_of_tile) {
                multiply_lines<rows_of_tile>(a, b, n, lines, k, tiles, static_cast<Lane*>(scratch));
            });
            if (lines == cols) return;
        }
        ConstMatrix rest = b;
        rest.data = static_cast<const Lane*>(b.data) + lines * b.col_stride;
        accumulate_packed(a, rest, rows, cols - lines, k, tiles + lines / kTileCols * kTile,
                          scratch);
    }

    static void accumulate_packed(const ConstMatrix& a, const ConstMatrix& b, std::int64_t rows,
                                  std::int64_t cols, std::int64_t k, void* lanes_out,
                                  void* scratch) {
        const std::int64_t in_place = columns_in_place(b, rows, cols);
        const Lane* const b_data = static_cast<const Lane*>(b.data);  // of those
        const Lines a_lines{a.data, a.dtype, a.row_stride, a.col_stride, k};
        const Lines b_lines{b_data + in_place, b.dtype, b.col_stride, b.row_stride, k};
        Lane* const a_panels = static_cast<Lane*>(scratch);
        Lane* const b_block = a_panels + Pack::kAcross * kBlockLanes;
        const int a_together = a_lines.along_k() ? S::kRows : Pack::kAcross;
        const std::int64_t all_lanes = (k + S::kLaneK - 1) / S::kLaneK;

        for (std::int64_t lane = 0; lane < all_lanes; lane += kBlockLanes) {
            const std::int64_t rest = all_lanes - lane;
            const int lanes = rest < kBlockLanes ? static_cast<int>(rest) : kBlockLanes;
            Pack::pack_b(b_lines, cols - in_place, lane, lanes, b_block);
            const std::int64_t k_block = lane / kBlockLanes;
            Lane* tile = static_cast<Lane*>(lanes_out);
            for (std::int64_t i = 0; i < rows; i += S::kRows) {
                const int n = rows - i < S::kRows ? static_cast<int>(rows - i) : S::kRows;
                const int in_panels = static_cast<int>(i % a_together);
                if (in_panels == 0) {
                    const int count =
                        rows - i < a_together ? static_cast<int>(rows - i) : a_together;
                    const int whole = (count - 1) / S::kRows * S::kRows;
                    Pack::pack_a(a_lines, i, count, whole + used_rows(count - whole), lane, lanes,
                                 a_panels, kBlockLanes);
                }
                const Lane* const a_panel = a_panels + in_panels * kBlockLanes;
                const Lane* panel = b_block;
                tile = tiles_in_place(n, in_place, lanes, a_panel, b_data + lane * b.row_stride,
                                      b.row_stride, tile, lane == 0);
                for (std::int64_t j = in_place; j < cols; j += kTileCols) {
                    const int m = cols - j < kTileCols ? static_cast<int>(cols - j) : kTileCols;
                    if (kScales && (a.scales.data != nullptr || b.scales.data != nullptr)) {
                        alignas(64) Lane sums[kTile];
                        tile_of(n, m, lanes, a_panel, panel, kTileCols, sums, true);
                        add_scaled(a.scales, i, n, b.scales, j, m, k_block, sums, tile);
                    } else {
                        tile_of(n, m, lanes, a_panel, panel, kTileCols, tile, lane == 0);
                    }
                    panel += lanes * kTileCols;
                    tile += kTile;
                }
            }
        }
    }

    static void add(void* to, const void* from, std::int64_t count) {
        Lane* sum = static_cast<Lane*>(to);
        const Lane* more = static_cast<const Lane*>(from);
        for (std::int64_t i = 0; i < count; i += S::kWidth) {
            S::store(sum + i, S::add(S::load(sum + i), S::load(more + i)));
        }
    }

    // v = alpha * acc, then v = fma(beta, C, v), each rounded to the accumulator's precision. C is
    // absent where beta is 0. A sum that is not there (`acc` is null) is +0.
    static void epilogue(const float* acc, const float* c, float alpha, float beta, int count,
                         float* v) {
        if (acc == nullptr) {
            for (int i = 0; i < count; ++i)
                v[i] = c == nullptr ? 0.0f : __builtin_fmaf(beta, c[i], 0.0f);
        } else if (c == nullptr) {
            for (int i = 0; i < count; ++i) v[i] = alpha * acc[i];
        } else {
            for (int i = 0; i < count; ++i) v[i] = __builtin_fmaf(beta, c[i], alpha * acc[i]);
        }
    }
    static void epilogue(const double* acc, const double* c, double alpha, double beta, int count,
                         double* v) {
        if (acc == nullptr) {
            for (int i = 0; i < count; ++i)
                v[i] = c == nullptr ? 0.0 : __builtin_fma(beta, c[i], 0.0);
        } else if (c == nullptr) {
            for (int i = 0; i < count; ++i) v[i] = alpha * acc[i];
        } else {
            for (int i = 0; i < count; ++i) v[i] = __builtin_fma(beta, c[i], alpha * acc[i]);
        }
    }
    // Modulo 2^32, whatever the size of the factors.
    static void epilogue(const std::int32_t* acc, const std::int32_t* c, std::int64_t alpha,
                         std::int64_t beta, int count, std::int32_t* v) {
        const std::uint32_t factor = static_cast<std::uint32_t>(alpha);
        const std::uint32_t c_factor = static_cast<std::uint32_t>(beta);
        for (int i = 0; i < count; ++i) {
            std::uint32_t value = 0;
            if (acc != nullptr) value = factor * static_cast<std::uint32_t>(acc[i]);
            if (c != nullptr) value += c_factor * static_cast<std::uint32_t>(c[i]);
            v[i] = static_cast<std::int32_t>(value);
        }
    }

    static void round_run(const float* from, int count, Half* to) { V::narrow(from, count, to); }
    static void round_run(const double* from, int count, Half* to) {
        for (int i = 0; i < count; ++i) to[i] = to_half(from[i]);
    }
    template <class Value>
    static void round_run(const Value* from, int count, BFloat16* to) {
        for (int i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
    }
    template <class Value, class Number>
    static void round_run(const Value* from, int count, Number* to) {
        for (int i = 0; i < count; ++i) to[i] = static_cast<Number>(from[i]);
    }
    template <class Number>
    static void round_run(const float* from, int count, bool, Number* to) {
        round_run(from, count, to);
    }
    static void round_run(const float* from, int count, bool saturate, E4M3* to) {
        for (int i = 0; i < count; ++i) to[i] = to_e4m3(from[i], saturate);
    }
    static void round_run(const float* from, int count, bool saturate, E5M2* to) {
        for (int i = 0; i < count; ++i) to[i] = to_e5m2(from[i], saturate);
    }
    static void load_run(const std::int32_t* from, std::int64_t stride, int count,
                         std::int32_t* to) {
        for (int i = 0; i < count; ++i) to[i] = from[i * stride];
    }
    template <class Source, class Value>
    static void load_run(const Source* from, std::int64_t stride, int count, Value* to) {
        Runs<V>::template convert_strided<Value>(from, stride, count, to);
    }

    // Out: the elements of C and D.
    template <class Out>
    static void finish_as(const Output& output, std::int64_t rows, std::int64_t cols,
                          const Lane* lanes) {
        using Factor = std::conditional_t<std::is_integral_v<Lane>, std::int64_t, Lane>;
        const Factor alpha = static_cast<Factor>(output.alpha);
        const Factor beta = static_cast<Factor>(output.beta);
        const bool reads_c = beta != 0;
        const std::int64_t panels = (cols + kTileCols - 1) / kTileCols;
        for (std::int64_t i = 0; i < rows; ++i) {
            const Lane* tile = lanes;
            if (lanes != nullptr) {
                tile += (i / S::kRows) * panels * kTile + (i % S::kRows) * kTileCols;
            }
            for (std::int64_t j = 0; j < cols; j += kTileCols) {
                const int n = cols - j < kTileCols ? static_cast<int>(cols - j) : kTileCols;
                Lane c[kTileCols], value[kTileCols];
                if (reads_c) {
                    const Out* from = static_cast<const Out*>(output.c) + i * output.c_row_stride +
                                      j * output.c_col_stride;
                    load_run(from, output.c_col_stride, n, c);
                }
                epilogue(tile, reads_c ? c : nullptr, alpha, beta, n, value);
                Out* to =
                    static_cast<Out*>(output.d) + i * output.d_row_stride + j * output.d_col_stride;
                if (output.d_col_stride == 1) {
                    round_run(value, n, to);
                } else {
                    Out rounded[kTileCols];
                    round_run(value, n, rounded);
                    for (int e = 0; e < n; ++e) to[e * output.d_col_stride] = rounded[e];
                }
                if (lanes != nullptr) tile += kTile;
            }
        }
    }

    // v = (alpha * acc) * (scale_a * scale_b), then v = fma(beta, C, v), then v * scale_d, each
    // rounded to FP32.
    template <class Out>
    static void finish_scaled_as(const Output& output, std::int64_t rows, std::int64_t cols,
                                 const Lane* lanes) {
        const float alpha = static_cast<float>(output.alpha);
        const float beta = static_cast<float>(output.beta);
        const std::int64_t panels = (cols + kTileCols - 1) / kTileCols;
        for (std::int64_t j = 0; j < cols; j += kTileCols) {
            const int n = cols - j < kTileCols ? static_cast<int>(cols - j) : kTileCols;
            float b_scales[kTileCols];
            for (int e = 0; e < n; ++e) b_scales[e] = scale_of(output.scale_b, j + e, 0);
            for (std::int64_t i = 0; i < rows; ++i) {
                const float a_scale = scale_of(output.scale_a, i, 0);
                float c[kTileCols], value[kTileCols] = {};
                if (lanes != nullptr) {
                    const Lane* acc = lanes + (i / S::kRows * panels + j / kTileCols) * kTile +
                                      i % S::kRows * kTileCols;
                    for (int e = 0; e < n; ++e) {
                        value[e] = alpha * static_cast<float>(acc[e]) * (a_scale * b_scales[e]);
                    }
                }
                if (beta != 0) {
                    const Out* from = static_cast<const Out*>(output.c) + i * output.c_row_stride +
                                      j * output.c_col_stride;
                    Runs<V>::template convert_strided<float>(from, output.c_col_stride, n, c);
                    for (int e = 0; e < n; ++e) {
                        value[e] = __builtin_fmaf(beta, c[e], lanes == nullptr ? 0.0f : value[e]);
                    }
                }
                for (int e = 0; e < n; ++e) value[e] *= output.scale_d;
                Out rounded[kTileCols];
                round_run(value, n, output.saturate, rounded);
                Out* to =
                    static_cast<Out*>(output.d) + i * output.d_row_stride + j * output.d_col_stride;
                for (int e = 0; e < n; ++e) to[e * output.d_col_stride] = rounded[e];
            }
        }
    }

    static void finish_scaled(const Output& output, std::int64_t rows, std::int64_t cols,
                              const Lane* lanes) {
        switch (output.dtype) {
            case DType::f16: return finish_scaled_as<Half>(output, rows, cols, lanes);
            case DType::bf16: return finish_scaled_as<BFloat16>(output, rows, cols, lanes);
            case DType::f32: return finish_scaled_as<float>(output, rows, cols, lanes);
            case DType::e4m3: return finish_scaled_as<E4M3>(output, rows, cols, lanes);
            case DType::e5m2: return finish_scaled_as<E5M2>(output, rows, cols, lanes);
            default: return;  // validation lets no other dtype through
        }
    }

    static void finish(const Output& output, std::int64_t rows, std::int64_t cols,
                       const void* lanes_in) {
        const Lane* lanes = static_cast<const Lane*>(lanes_in);
        if constexpr (kScales) {
            if (output.scaled) return finish_scaled(output, rows, cols, lanes);
        }
        if constexpr (std::is_integral_v<Lane>) {
            finish_as<std::int32_t>(output, rows, cols, lanes);
        } else {
            switch (output.dtype) {
                case DType::f16: return finish_as<Half>(output, rows, cols, lanes);
                case DType::bf16: return finish_as<BFloat16>(output, rows, cols, lanes);
                case DType::f32: return finish_as<float>(output, rows, cols, lanes);
                case DType::f64: return finish_as<double>(output, rows, cols, lanes);
                default: return;  // validation lets no other dtype through
            }
        }
    }

    static constexpr ModeKernels row() {
        return {S::kRows,
                kTileCols,
                sizeof(Lane),
                kBlockLanes * S::kLaneK,
                static_cast<int>(kBlockLanes * sizeof(Lane)),
                !S::kChain,
                accumulate,
                scratch_bytes,
                add,
                finish};
    }
};

template <class V>
static constexpr InstructionSet instruction_set(const char* name, bool (*supported)()) {
    using F32 = typename V::F32;
    return {name,
            supported,
            {BlockKernel<V, F32, float>::row(), BlockKernel<V, F32, Half, true>::row(),
             BlockKernel<V, typename V::F16Sum, Half>::row(), BlockKernel<V, F32, BFloat16>::row(),
             BlockKernel<V, typename V::F64, double>::row(),
             BlockKernel<V, typename V::S16x2, std::int8_t, true>::row(),
             BlockKernel<V, F32, Tf32>::row()}};
}

}  // namespace tcgemm::host
