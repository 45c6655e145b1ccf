// SPDX-License-Identifier: Apache-2.0
// map: a scalar expression over strided operands, a block of elements at a time. A block is a run
// of the innermost axis, or several rows of it when they are short. Dense operands are read in
// place; others are first gathered into a block, which is kept while it repeats.
#include "backends/cpu/map_step.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::cpu {

namespace {

constexpr size_t max_rank = 12;
constexpr size_t max_inputs = 24;
constexpr int64_t stack_bytes = 160 << 10;
constexpr int64_t grain_work = 32 << 10; // instructions x elements worth one task

/// One element many times: the first of them one by one, the rest by copies of those before.
template <class T>
void repeat(T* to, int64_t n, T x) {
    int64_t done = std::min<int64_t>(n, 64 / sizeof(T));
    std::fill_n(to, done, x);
    while (done < n) {
        int64_t more = std::min(done, n - done);
        std::memcpy(to + done, to, static_cast<size_t>(more) * sizeof(T));
        done += more;
    }
}

template <class T>
void gather_rows(std::byte* to, const std::byte* from, int64_t rows, int64_t n, int64_t row_stride,
                 int64_t stride) {
    auto* t = reinterpret_cast<T*>(to);
    const auto* f = reinterpret_cast<const T*>(from);
    for (int64_t r = 0; r < rows; ++r, t += n, f += row_stride) {
        if (stride == 1) {
            std::memcpy(t, f, static_cast<size_t>(n) * sizeof(T));
        } else if (stride == 0) {
            repeat(t, n, *f);
        } else {
            for (int64_t i = 0; i < n; ++i) {
                t[i] = f[i * stride];
            }
        }
    }
}

template <class T>
void scatter_rows(std::byte* to, const std::byte* from, int64_t rows, int64_t n, int64_t row_stride,
                  int64_t stride) {
    auto* t = reinterpret_cast<T*>(to);
    const auto* f = reinterpret_cast<const T*>(from);
    for (int64_t r = 0; r < rows; ++r, t += row_stride, f += n) {
        for (int64_t i = 0; i < n; ++i) {
            t[i * stride] = f[i];
        }
    }
}

void gather_bytes(int64_t width, std::byte* to, const std::byte* from, int64_t rows, int64_t n,
                  int64_t row_stride, int64_t stride) {
    switch (width) {
    case 1:
        return gather_rows<uint8_t>(to, from, rows, n, row_stride, stride);
    case 2:
        return gather_rows<uint16_t>(to, from, rows, n, row_stride, stride);
    case 4:
        return gather_rows<uint32_t>(to, from, rows, n, row_stride, stride);
    default:
        return gather_rows<uint64_t>(to, from, rows, n, row_stride, stride);
    }
}

void scatter_bytes(int64_t width, std::byte* to, const std::byte* from, int64_t rows, int64_t n,
                   int64_t row_stride, int64_t stride) {
    switch (width) {
    case 1:
        return scatter_rows<uint8_t>(to, from, rows, n, row_stride, stride);
    case 2:
        return scatter_rows<uint16_t>(to, from, rows, n, row_stride, stride);
    case 4:
        return scatter_rows<uint32_t>(to, from, rows, n, row_stride, stride);
    default:
        return scatter_rows<uint64_t>(to, from, rows, n, row_stride, stride);
    }
}

int64_t bytes_of(DType t) {
    return bit_width(t) / 8;
}

/// One operand in the loop nest; number 0 is the result.
struct Walk {
    Operand operand;
    Shape outer;            // strides of the axes outside a block
    int64_t row_stride = 0; // between the rows of a block
    int64_t stride = 0;     // within a row
    MapLoop convert = nullptr;
    int64_t width = 4; // bytes as stored
    int64_t compute_width = 4;
    bool direct = false;   // read in place
    bool uniform = false;  // a block repeats one element
    int64_t gather_at = 0; // offsets of its blocks in the working memory
    int64_t convert_at = 0;
};

} // namespace

class MapStep : public Step {
public:
    /// The nest is over the result, then the inputs.
    MapStep(const Expr& body, std::span<const Operand> in, const Operand& out,
            const plan::LoopNest& nest, const Shape& offsets)
        : program_(body, uniform_inputs(nest)) {
        split(nest);
        walks_.resize(nest.strides.size());
        work_bytes_ = program_.work_bytes();
        for (size_t k = 0; k < walks_.size(); ++k) {
            init_walk(walks_[k], k == 0 ? out : in[k - 1], nest.strides[k], offsets[k], k == 0);
        }
        const std::vector<bool> uniform = uniform_inputs(nest);
        for (size_t k = 1; k < walks_.size(); ++k) {
            walks_[k].uniform = uniform[k - 1];
        }
        require(outer_.size() <= max_rank && in.size() <= max_inputs, ErrorCode::Unsupported,
                "map over ", outer_.size() + 2, " axes with ", in.size(), " inputs is too large");
        if (work_bytes_ > stack_bytes) {
            tasks_ = 16;
        }
    }

    Status run(const RunContext& c) noexcept override {
        int64_t blocks = rows_blocks_ * row_blocks_;
        for (int64_t s : outer_) {
            blocks *= s;
        }
        int64_t work = rows_ * inner_ * std::max<int64_t>(program_.instructions(), 4);
        int64_t grain = std::max<int64_t>(1, grain_work / std::max<int64_t>(work, 1));
        if (tasks_ > 0) {
            int64_t per_task = (blocks + tasks_ - 1) / tasks_;
            c.pool.parallel_for(tasks_, 1, [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                    run_blocks(c, std::min(t * per_task, blocks),
                               std::min((t + 1) * per_task, blocks),
                               c.scratch<std::byte>(scratch) + t * work_bytes_);
                }
            });
            return {};
        }
        c.pool.parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
            alignas(64) std::byte work_memory[stack_bytes];
            run_blocks(c, begin, end, work_memory);
        });
        return {};
    }

    int64_t scratch_bytes() const override { return tasks_ * work_bytes_; }

private:
    /// The inputs that repeat one element along the two axes that may form a block.
    static std::vector<bool> uniform_inputs(const plan::LoopNest& nest) {
        size_t axes = nest.sizes.size();
        std::vector<bool> out;
        for (size_t k = 1; k < nest.strides.size(); ++k) {
            const Shape& s = nest.strides[k];
            out.push_back(axes > 0 && s[axes - 1] == 0 && (axes == 1 || s[axes - 2] == 0));
        }
        return out;
    }

    /// Splits the axes into outer ones and the one or two that form a block.
    void split(const plan::LoopNest& nest) {
        outer_ = nest.sizes;
        int64_t block = program_.block();
        if (outer_.empty()) {
            return;
        }
        inner_size_ = outer_.back();
        outer_.pop_back();
        inner_ = std::min(inner_size_, block);
        row_blocks_ = (inner_size_ + inner_ - 1) / inner_;
        if (inner_size_ * 2 <= block && !outer_.empty()) {
            rows_size_ = outer_.back();
            outer_.pop_back();
            rows_ = std::min(rows_size_, block / inner_size_);
            rows_blocks_ = (rows_size_ + rows_ - 1) / rows_;
            two_axes_ = true;
        }
    }

    void init_walk(Walk& w, const Operand& o, const Shape& strides, int64_t offset, bool result) {
        w.operand = o;
        w.operand.view.offset = offset;
        w.outer = strides;
        if (!w.outer.empty()) {
            w.stride = w.outer.back();
            w.outer.pop_back();
        }
        if (two_axes_) {
            w.row_stride = w.outer.back();
            w.outer.pop_back();
        }
        w.convert = result ? store_loop(o.dtype) : load_loop(o.dtype);
        w.width = bytes_of(o.dtype);
        w.compute_width = bytes_of(compute_type(o.dtype));
        w.direct = (inner_ == 1 || w.stride == 1) && (rows_ == 1 || w.row_stride == inner_size_);
        int64_t elements = (rows_ * inner_ + 15) / 16 * 16;
        if (!w.direct) {
            w.gather_at = work_bytes_;
            work_bytes_ += (elements * w.width + 63) / 64 * 64;
        }
        if (w.convert != nullptr) {
            w.convert_at = work_bytes_;
            work_bytes_ += (elements * w.compute_width + 63) / 64 * 64;
        } else if (result && !w.direct) {
            w.convert_at = w.gather_at;
        }
    }

    void run_blocks(const RunContext& c, int64_t begin, int64_t end, std::byte* work) const {
        std::array<const std::byte*, max_inputs> kept{}; // contents of the gathered blocks
        for (int64_t b = begin; b < end; ++b) {
            run_block(c, b, work, kept);
        }
    }

    void run_block(const RunContext& c, int64_t index, std::byte* work,
                   std::array<const std::byte*, max_inputs>& kept) const {
        int64_t first = index % row_blocks_ * inner_;
        int64_t n = std::min(inner_, inner_size_ - first);
        int64_t rest = index / row_blocks_;
        int64_t first_row = rest % rows_blocks_ * rows_;
        int64_t rows = std::min(rows_, rows_size_ - first_row);
        rest /= rows_blocks_;
        std::array<int64_t, max_inputs + 1> at{};
        for (size_t k = 0; k < walks_.size(); ++k) {
            at[k] = first * walks_[k].stride + first_row * walks_[k].row_stride;
        }
        for (size_t d = outer_.size(); d-- > 0;) {
            int64_t i = rest % outer_[d];
            rest /= outer_[d];
            for (size_t k = 0; k < walks_.size(); ++k) {
                at[k] += i * walks_[k].outer[d];
            }
        }
        std::array<const void*, max_inputs> in{};
        bool changed = false; // a uniform input
        for (size_t k = 1; k < walks_.size(); ++k) {
            const Walk& w = walks_[k];
            const std::byte* from = c.bytes(w.operand) + at[k] * w.width;
            bool whole = w.uniform || (n == inner_ && rows == rows_);
            bool repeats = w.row_stride == 0 && !w.direct && whole;
            if (repeats && kept[k - 1] == from) {
                in[k - 1] = work + (w.convert != nullptr ? w.convert_at : w.gather_at);
                continue;
            }
            changed = changed || w.uniform;
            kept[k - 1] = repeats ? from : nullptr;
            in[k - 1] = load(w, from, w.uniform ? rows_ : rows, w.uniform ? inner_ : n, work);
        }
        if (changed) {
            program_.run_uniform(in.data(), rows_ * inner_, work);
        }
        store(c, at[0], rows, n, in.data(), work);
    }

    static const void* load(const Walk& w, const std::byte* from, int64_t rows, int64_t n,
                            std::byte* work) {
        if (!w.direct) {
            gather_bytes(w.width, work + w.gather_at, from, rows, n, w.row_stride, w.stride);
            from = work + w.gather_at;
        }
        if (w.convert == nullptr) {
            return from;
        }
        w.convert(work + w.convert_at, from, nullptr, nullptr, rows * n);
        return work + w.convert_at;
    }

    void store(const RunContext& c, int64_t at, int64_t rows, int64_t n, const void* const* in,
               std::byte* work) const {
        const Walk& w = walks_[0];
        std::byte* to = c.bytes(w.operand) + at * w.width;
        std::byte* stored = w.direct ? to : work + w.gather_at;
        std::byte* computed = w.convert != nullptr ? work + w.convert_at : stored;
        program_.run(in, computed, rows * n, work);
        if (w.convert != nullptr) {
            w.convert(stored, computed, nullptr, nullptr, rows * n);
        }
        if (!w.direct) {
            scatter_bytes(w.width, to, stored, rows, n, w.row_stride, w.stride);
        }
    }

    ExprProgram program_;
    Shape outer_;
    int64_t inner_size_ = 1; // of the innermost axis
    int64_t inner_ = 1;      // of a block
    int64_t row_blocks_ = 1; // blocks along the innermost axis
    int64_t rows_size_ = 1;
    int64_t rows_ = 1;
    int64_t rows_blocks_ = 1;
    bool two_axes_ = false;
    std::vector<Walk> walks_;
    int64_t work_bytes_ = 0;
    int64_t tasks_ = 0; // limits the tasks when working memory is too large for the stack
};

std::unique_ptr<Step> make_map(const Expr& body, std::span<const Operand> in, const Operand& out) {
    for (const Operand& o : in) {
        size_t shift = out.view.shape.size() - o.view.shape.size();
        for (size_t i = 0; i < o.view.shape.size(); ++i) {
            int64_t d = o.view.shape[i];
            require(d == 1 || d == out.view.shape[i + shift], ErrorCode::InvalidArgument, "shape ",
                    o.view.shape, " does not broadcast to ", out.view.shape);
        }
    }
    std::vector<View> views{out.view};
    Shape offsets{out.view.offset};
    for (const Operand& o : in) {
        views.push_back(plan::broadcasted(o.view, out.view.shape));
        offsets.push_back(views.back().offset);
    }
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(out.view));
    return std::make_unique<MapStep>(body, in, out, nest, offsets);
}

std::optional<std::string> refuse_map(const Graph& g, const Node& n) {
    if (n.inputs.size() > max_inputs) {
        return str(n.inputs.size(), " inputs are more than ", max_inputs);
    }
    bool packed = is_packed(n.as<Map>().dtype);
    for (Value v : n.inputs) {
        packed = packed || is_packed(g.type(v).dtype);
    }
    return packed ? std::optional<std::string>("4-bit elements") : std::nullopt;
}

void follow_inputs(std::span<const View> in, const Shape& out, Order& order) {
    for (const View& v : in) {
        if (v.shape != out) {
            continue;
        }
        if (std::optional<Order> dense = plan::dense_order(v)) {
            order = *dense;
            return;
        }
        // For slices and the like: keeps the innermost axis in memory innermost.
        bool broadcast = std::find(v.strides.begin(), v.strides.end(), 0) != v.strides.end();
        if (!broadcast) {
            order = plan::stride_order(v);
        }
    }
}

namespace {

std::optional<std::string> refuse(const Group& group) {
    return refuse_map(group.graph, group.first());
}

void layout(LayoutArgs& args) {
    follow_inputs(args.in, args.out[0], args.order[0]);
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return make_map(args.group.first().as<Map>().body, args.in, args.out[0]);
}

const Kernel rows[] = {{.name = "map",
                        .refuse = refuse,
                        .prepare = prepare,
                        .layout = layout,
                        .strided_results = true,
                        .in_place = true}};

} // namespace

extern const KernelTable map_kernels;
const KernelTable map_kernels = rows;

} // namespace ingot::cpu
