// SPDX-License-Identifier: Apache-2.0
// reduce: if the innermost axis of the input is reduced, rows are folded to scalars; if it is kept,
// or so short that a row is not worth calls of its own, rows are folded elementwise. Floats
// accumulate in f32 (f64 in f64), in blocks.
// extremes: the minimum and the maximum over the same axes of one tensor, which is read once.
#include "backends/cpu/expr_program.h"
#include "backends/cpu/kernel.h"
#include "base/error.h"
#include "ops/primitives.h"
#include "plan/compile_options.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace ingot::cpu {

namespace {

constexpr int64_t block = 512;       // elements of a row per iteration
constexpr int64_t partial_rows = 64; // rows summed before they are added to the total
constexpr int64_t grain_elements = 16 << 10;
/// Rows up to this long, side by side, fold as columns: one call combines an element of each row,
/// where folding a row takes calls of its own.
constexpr int64_t short_row = 32;

/// The result over no elements, for a compute type, as bytes.
void write_identity(const std::string& fn, DType t, std::byte* to) {
    auto put = [to](auto v) { std::memcpy(to, &v, sizeof v); };
    bool lowest = fn == "max";
    bool highest = fn == "min";
    double number = fn == "prod" ? 1 : 0;
    if (t == DType::F32) {
        float inf = std::numeric_limits<float>::infinity();
        put(lowest ? -inf : highest ? inf : static_cast<float>(number));
    } else if (t == DType::F64) {
        double inf = std::numeric_limits<double>::infinity();
        put(lowest ? -inf : highest ? inf : number);
    } else if (t == DType::Bool) {
        put(static_cast<uint8_t>(highest || number != 0));
    } else {
        int bits = bit_width(t);
        uint64_t all = ~uint64_t{0} >> (64 - bits);
        uint64_t top = is_signed(t) ? all >> 1 : all;
        uint64_t bottom = is_signed(t) ? ~top : 0;
        put(lowest ? bottom : highest ? top : static_cast<uint64_t>(number));
    }
}

ExprOp op_of(const std::string& fn) {
    return fn == "sum"    ? ExprOp::Add
           : fn == "prod" ? ExprOp::Mul
           : fn == "min"  ? ExprOp::Min
                          : ExprOp::Max;
}

/// Reduces n elements of a compute type to one by halving: op(first half, second half).
void fold(MapLoop op, std::byte* x, int64_t n, int64_t width) {
    while (n > 1) {
        int64_t half = n / 2;
        op(x, x, x + (n - half) * width, nullptr, half);
        n -= half;
    }
}

template <class T>
void copy_apart(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
                int64_t n) {
    constexpr auto width = static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < n; ++i) {
        std::memcpy(to + i * to_stride * width, from + i * from_stride * width, sizeof(T));
    }
}

/// Copies n elements of `width` bytes; on each side they lie `stride` elements apart.
void copy_elements(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
                   int64_t n, int64_t width) {
    switch (width) {
    case 1:
        return copy_apart<uint8_t>(to, to_stride, from, from_stride, n);
    case 2:
        return copy_apart<uint16_t>(to, to_stride, from, from_stride, n);
    case 4:
        return copy_apart<uint32_t>(to, to_stride, from, from_stride, n);
    default:
        return copy_apart<uint64_t>(to, to_stride, from, from_stride, n);
    }
}

bool is_extreme(const std::string& fn) {
    return fn == "min" || fn == "max";
}

/// One of the functions by which a step reduces.
struct Fold {
    MapLoop combine = nullptr;
    float (*row)(const float* x, int64_t n) = nullptr; // a row to one, where there is a loop
    std::array<std::byte, 8> identity{};
    Operand out;

    Fold(const std::string& fn, DType type, Operand result)
        : combine(map_loop(op_of(fn), type)), out(std::move(result)) {
        write_identity(fn, type, identity.data());
        if (type == DType::F32) {
            const VectorLoops& loops = vector_loops();
            row = fn == "sum"   ? loops.sum
                  : fn == "max" ? loops.maximum
                  : fn == "min" ? loops.minimum
                                : nullptr;
        }
    }
};

constexpr size_t most_folds = 2;
/// Elements per call where extremes are found in place: each call ends with those of a vector.
constexpr int64_t long_block = 4096;
using Element = std::array<std::byte, 8>;

class ReduceStep : public Step {
public:
    explicit ReduceStep(const StepArgs& a) : x_(a.in[0]) {
        type_ = compute_type(x_.dtype);
        width_ = bit_width(type_) / 8;
        stored_ = bit_width(x_.dtype) / 8;
        load_ = load_loop(x_.dtype);
        store_ = store_loop(x_.dtype);
        bool extremes = true;
        for (size_t i = 0; i < a.group.nodes.size(); ++i) {
            const std::string& fn = a.group.nodes[i].as<Reduce>().fn;
            folds_.emplace_back(fn, type_, a.out[i]);
            extremes = extremes && is_extreme(fn);
        }
        CHECK(folds_.size() <= most_folds, "a step of ", folds_.size(), " reductions");
        split_axes(a.group.first().as<Reduce>(), a.options.batch_invariant);
        if (!extremes || columns_) {
            return;
        }
        // In any order and in any parts an extreme is the same, but for the sign of zero.
        if (in_place() && folds_[0].row != nullptr) {
            unit_ = long_block;
        }
        if (tasks_ == 1 && !a.options.batch_invariant && all_blocks() > 2 * chunk_blocks()) {
            chunks_.resize(
                static_cast<size_t>((all_blocks() + chunk_blocks() - 1) / chunk_blocks()));
        }
    }

    Status run(const RunContext& c) noexcept override {
        if (!chunks_.empty()) {
            fold_chunks(c);
            return {};
        }
        int64_t grain = std::max<int64_t>(1, grain_elements / std::max<int64_t>(work_, 1));
        c.pool.parallel_for(tasks_, grain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                if (columns_) {
                    fold_columns(c, i);
                } else {
                    fold_rows(c, i);
                }
            }
        });
        return {};
    }

private:
    /// `in_order`: the order of a result's elements depends only on their number.
    void split_axes(const Reduce& attrs, bool in_order) {
        View kept{{}, {}, 0};
        View folded{{}, {}, 0};
        for (size_t i = 0; i < x_.view.shape.size(); ++i) {
            bool is_folded = std::find(attrs.axes.begin(), attrs.axes.end(),
                                       static_cast<int64_t>(i)) != attrs.axes.end();
            View& side = is_folded ? folded : kept;
            side.shape.push_back(x_.view.shape[i]);
            side.strides.push_back(x_.view.strides[i]);
        }
        const View& out = folds_[0].out.view;
        View result{out.shape, out.strides, 0};
        View both[] = {result, kept};
        plan::LoopNest outer = plan::merged_loops(both, plan::stride_order(kept));
        View one[] = {folded};
        plan::LoopNest inner = plan::merged_loops(one, plan::stride_order(folded));
        folded_ = folded.count();
        bool row = !inner.sizes.empty() && std::abs(inner.strides[0].back()) == 1;
        columns_ = !in_order && !outer.sizes.empty() && outer.sizes.back() > 1 &&
                   (row ? folded_ <= short_row : outer.strides[1].back() == 1);
        if (in_order && inner.sizes.size() > 1) {
            row_size_ = folded_;
            element_offsets_ = plan::offsets_of(inner.sizes, inner.strides[0]);
            inner.sizes.clear();
            inner.strides[0].clear();
        } else if (columns_) {
            row_size_ = outer.sizes.back();
            row_to_ = outer.strides[0].back();
            row_stride_ = outer.strides[1].back();
            outer.sizes.pop_back();
            outer.strides[0].pop_back();
            outer.strides[1].pop_back();
            row_blocks_ = (row_size_ + block - 1) / block;
        } else if (!inner.sizes.empty()) {
            row_size_ = inner.sizes.back();
            row_stride_ = inner.strides[0].back();
            inner.sizes.pop_back();
            inner.strides[0].pop_back();
        }
        to_ = plan::offsets_of(outer.sizes, outer.strides[0]);
        from_ = plan::offsets_of(outer.sizes, outer.strides[1]);
        parts_ = plan::offsets_of(inner.sizes, inner.strides[0]);
        tasks_ = static_cast<int64_t>(to_.size()) * row_blocks_;
        work_ = columns_ ? folded_ * std::min(row_size_, block) : folded_;
    }

    /// n elements of the row at `at`, from its element `first` on, as the compute type: in place,
    /// or in `memory`.
    const std::byte* elements(const RunContext& c, int64_t at, int64_t first, int64_t n,
                              std::byte* memory) const {
        const std::byte* row = c.bytes(x_) + at * stored_;
        bool lies_so = row_stride_ == 1 && element_offsets_.empty();
        const std::byte* from = row + first * stored_;
        if (lies_so && load_ == nullptr) {
            return from;
        }
        alignas(64) std::byte gathered[block * 8];
        if (!lies_so) {
            std::byte* to = load_ == nullptr ? memory : gathered;
            if (element_offsets_.empty()) {
                copy_elements(to, 1, row + first * row_stride_ * stored_, row_stride_, n, stored_);
            }
            for (int64_t i = 0; i < n && !element_offsets_.empty(); ++i) {
                int64_t offset = element_offsets_[static_cast<size_t>(first + i)];
                std::memcpy(to + i * stored_, row + offset * stored_, static_cast<size_t>(stored_));
            }
            from = to;
        }
        if (load_ != nullptr) {
            load_(memory, from, nullptr, nullptr, n);
        }
        return memory;
    }

    /// Whether a row's elements are read where they lie.
    bool in_place() const {
        return row_stride_ == 1 && element_offsets_.empty() && load_ == nullptr;
    }
    int64_t blocks_of_row() const { return (row_size_ + unit_ - 1) / unit_; }
    int64_t all_blocks() const { return std::ssize(parts_) * blocks_of_row(); }
    /// The blocks of one result that a thread folds at a time.
    int64_t chunk_blocks() const { return grain_elements / unit_; }

    /// Folds blocks [begin, end) of the rows of one result, which begin at `base`, into `totals`.
    void fold_blocks(const RunContext& c, int64_t base, int64_t begin, int64_t end,
                     std::array<Element, most_folds>& totals) const {
        alignas(64) std::byte memory[block * 8];
        alignas(64) std::byte partial[block * 8];
        for (size_t k = 0; k < folds_.size(); ++k) {
            totals[k] = folds_[k].identity;
        }
        for (int64_t b = begin; b < end; ++b) {
            int64_t part = parts_[static_cast<size_t>(b / blocks_of_row())];
            int64_t i = b % blocks_of_row() * unit_;
            int64_t n = std::min(unit_, row_size_ - i);
            const std::byte* x = elements(c, base + part, i, n, memory);
            for (size_t k = 0; k < folds_.size(); ++k) {
                const Fold& f = folds_[k];
                if (f.row != nullptr) {
                    float result = f.row(reinterpret_cast<const float*>(x), n);
                    std::memcpy(partial, &result, sizeof result);
                } else {
                    std::memcpy(partial, x, static_cast<size_t>(n * width_));
                    fold(f.combine, partial, n, width_);
                }
                f.combine(totals[k].data(), totals[k].data(), partial, nullptr, 1);
            }
        }
    }

    void fold_rows(const RunContext& c, int64_t task) const {
        std::array<Element, most_folds> totals;
        fold_blocks(c, from_[static_cast<size_t>(task)], 0, all_blocks(), totals);
        for (size_t k = 0; k < folds_.size(); ++k) {
            store(c, folds_[k].out, to_[static_cast<size_t>(task)], 1, totals[k].data(), 1);
        }
    }

    void fold_chunks(const RunContext& c) {
        c.pool.parallel_for(std::ssize(chunks_), 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                fold_blocks(c, from_[0], i * chunk_blocks(),
                            std::min((i + 1) * chunk_blocks(), all_blocks()),
                            chunks_[static_cast<size_t>(i)]);
            }
        });
        for (size_t k = 0; k < folds_.size(); ++k) {
            Element total = folds_[k].identity;
            for (const std::array<Element, most_folds>& chunk : chunks_) {
                folds_[k].combine(total.data(), total.data(), chunk[k].data(), nullptr, 1);
            }
            store(c, folds_[k].out, to_[0], 1, total.data(), 1);
        }
    }

    void fold_columns(const RunContext& c, int64_t task) const {
        alignas(64) std::byte memory[block * 8];
        alignas(64) std::byte partial[most_folds][block * 8];
        alignas(64) std::byte total[most_folds][block * 8];
        int64_t first = task % row_blocks_ * block;
        int64_t n = std::min(block, row_size_ - first);
        auto o = static_cast<size_t>(task / row_blocks_);
        for (size_t k = 0; k < folds_.size(); ++k) {
            clear(folds_[k], total[k], n);
        }
        int64_t rows = 0;
        for (int64_t part : parts_) {
            const std::byte* x = elements(c, from_[o] + part, first, n, memory);
            for (size_t k = 0; k < folds_.size(); ++k) {
                const Fold& f = folds_[k];
                if (rows % partial_rows == 0) {
                    if (rows > 0) {
                        f.combine(total[k], total[k], partial[k], nullptr, n);
                    }
                    clear(f, partial[k], n);
                }
                f.combine(partial[k], partial[k], x, nullptr, n);
            }
            ++rows;
        }
        for (size_t k = 0; k < folds_.size(); ++k) {
            if (rows > 0) {
                folds_[k].combine(total[k], total[k], partial[k], nullptr, n);
            }
            store(c, folds_[k].out, to_[o] + first * row_to_, row_to_, total[k], n);
        }
    }

    void clear(const Fold& f, std::byte* to, int64_t n) const {
        copy_elements(to, 1, f.identity.data(), 0, n, width_);
    }

    void store(const RunContext& c, const Operand& out, int64_t at, int64_t stride,
               const std::byte* v, int64_t n) const {
        alignas(64) std::byte converted[block * 8];
        if (store_ != nullptr) {
            store_(converted, v, nullptr, nullptr, n);
            v = converted;
        }
        std::byte* to = c.bytes(out) + at * stored_;
        if (stride == 1) {
            std::memcpy(to, v, static_cast<size_t>(n * stored_));
            return;
        }
        copy_elements(to, stride, v, 1, n, stored_);
    }

    Operand x_;
    std::vector<Fold> folds_;
    DType type_;
    int64_t width_ = 4;
    int64_t stored_ = 4;
    MapLoop load_ = nullptr;
    MapLoop store_ = nullptr;
    bool columns_ = false;
    int64_t folded_ = 1;   // elements per result
    int64_t unit_ = block; // elements of a row that one call folds
    int64_t row_size_ = 1; // rows: size of the folded axis; columns: of the kept one
    int64_t row_stride_ = 1;
    int64_t row_to_ = 1; // columns: stride of the result
    int64_t row_blocks_ = 1;
    std::vector<int64_t> to_;                             // offsets of results
    std::vector<int64_t> from_;                           // offsets of their input elements
    std::vector<int64_t> parts_;                          // offsets within one result
    std::vector<int64_t> element_offsets_;                // in a row; empty: row_stride_ apart
    std::vector<std::array<Element, most_folds>> chunks_; // of a single result; empty: not split
    int64_t tasks_ = 1;
    int64_t work_ = 1;
};

std::optional<std::string> refuse(const Group& group) {
    bool packed = is_packed(group.graph.type(group.inputs[0]).dtype);
    return packed ? std::optional<std::string>("4-bit elements") : std::nullopt;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<ReduceStep>(args);
}

/// Two extremes over the same axes of the group's input.
std::optional<std::string> refuse_extremes(const Group& group) {
    bool same = group.nodes.size() == most_folds && group.outputs.size() == most_folds;
    for (size_t i = 0; same && i < most_folds; ++i) {
        const Node& n = group.nodes[i];
        same = n.is(reduce_def) && is_extreme(n.as<Reduce>().fn) &&
               n.inputs[0] == group.inputs[0] && group.outputs[i] == n.outputs[0] &&
               n.as<Reduce>().axes == group.first().as<Reduce>().axes;
    }
    return same ? refuse(group) : std::optional<std::string>("no extremes of one tensor");
}

const Kernel rows[] = {{.name = "reduce",
                        .refuse = refuse,
                        .prepare = prepare,
                        .layout = any_strides,
                        .strided_results = true},
                       {.name = "extremes",
                        .refuse = refuse_extremes,
                        .prepare = prepare,
                        .layout = any_strides,
                        .takes_groups = true}};

} // namespace

extern const KernelTable reduce_kernels;
const KernelTable reduce_kernels = rows;

} // namespace ingot::cpu
