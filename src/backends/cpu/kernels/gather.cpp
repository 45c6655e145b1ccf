// SPDX-License-Identifier: Apache-2.0
// gather and scatter: copies or combines rows by index. A row is everything after the axis.
#include "backends/cpu/expr_program.h"
#include "backends/cpu/kernel.h"
#include "ops/primitives.h"
#include "plan/copy.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

namespace {

constexpr int64_t grain_bytes = 32 << 10;

int64_t product(std::span<const int64_t> sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) {
        n *= s;
    }
    return n;
}

int64_t index_at(const RunContext& c, const Operand& indices, int64_t i) {
    return indices.dtype == DType::I32 ? c.at<const int32_t>(indices)[i]
                                       : c.at<const int64_t>(indices)[i];
}

/// Reports the first index outside [0, size).
Status check_indices(const RunContext& c, const Operand& indices, int64_t size, const char* op) {
    int64_t n = indices.view.count();
    for (int64_t i = 0; i < n; ++i) {
        int64_t at = index_at(c, indices, i);
        if (at < 0 || at >= size) {
            c.error.set("%s: index %lld at position %lld is outside an axis of size %lld", op,
                        static_cast<long long>(at), static_cast<long long>(i),
                        static_cast<long long>(size));
            return {ErrorCode::InvalidArgument, "an index is outside its axis"};
        }
    }
    return {};
}

class GatherStep : public Step {
public:
    GatherStep(const Operand& x, const Operand& indices, const Operand& out, size_t axis)
        : x_(x), indices_(indices), out_(out) {
        const Shape& shape = x.view.shape;
        outer_ = product(std::span(shape).first(axis));
        size_ = shape[axis];
        row_bytes_ = product(std::span(shape).subspan(axis + 1)) * bit_width(x.dtype) / 8;
        count_ = indices.view.count();
    }

    Status run(const RunContext& c) noexcept override {
        if (Status s = check_indices(c, indices_, size_, "gather"); !s.ok()) {
            return s;
        }
        const std::byte* from = c.bytes(x_);
        std::byte* to = c.bytes(out_);
        int64_t grain = std::max<int64_t>(1, grain_bytes / std::max<int64_t>(row_bytes_, 1));
        c.pool.parallel_for(outer_ * count_, grain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t row = i / count_ * size_ + index_at(c, indices_, i % count_);
                std::memcpy(to + i * row_bytes_, from + row * row_bytes_,
                            static_cast<size_t>(row_bytes_));
            }
        });
        return {};
    }

private:
    Operand x_;
    Operand indices_;
    Operand out_;
    int64_t outer_;
    int64_t size_;
    int64_t row_bytes_;
    int64_t count_;
};

/// Copies x, then combines the rows of updates in order. Threads divide the columns.
class ScatterStep : public Step {
public:
    explicit ScatterStep(const StepArgs& a)
        : copy_(make_copy(a.in[0], a.out[0], a.device)), indices_(a.in[1]), updates_(a.in[2]),
          out_(a.out[0]) {
        const std::string& fn = a.group.first().as<Scatter>().fn;
        DType t = out_.dtype;
        size_ = out_.view.shape[0];
        row_ = product(std::span(out_.view.shape).subspan(1));
        width_ = bit_width(t) / 8;
        if (fn != "none") {
            ExprOp op = fn == "add"   ? ExprOp::Add
                        : fn == "mul" ? ExprOp::Mul
                        : fn == "min" ? ExprOp::Min
                                      : ExprOp::Max;
            combine_ = map_loop(op, compute_type(t));
            load_ = load_loop(t);
            store_ = store_loop(t);
        }
    }

    Status run(const RunContext& c) noexcept override {
        if (Status s = check_indices(c, indices_, size_, "scatter"); !s.ok()) {
            return s;
        }
        if (Status s = copy_->run(c); !s.ok()) {
            return s;
        }
        int64_t n = indices_.view.count();
        int64_t grain = std::max<int64_t>(64, grain_bytes / std::max<int64_t>(n * width_, 1));
        c.pool.parallel_for(row_, grain, [&](int64_t begin, int64_t end) {
            for (int64_t i = 0; i < n; ++i) {
                int64_t to = index_at(c, indices_, i) * row_;
                put(c.bytes(out_) + (to + begin) * width_,
                    c.bytes(updates_) + (i * row_ + begin) * width_, end - begin);
            }
        });
        return {};
    }

private:
    void put(std::byte* to, const std::byte* from, int64_t n) const {
        if (combine_ == nullptr) {
            std::memcpy(to, from, static_cast<size_t>(n * width_));
            return;
        }
        if (load_ == nullptr) {
            combine_(to, to, from, nullptr, n);
            return;
        }
        constexpr int64_t block = 256;
        alignas(64) float a[block];
        alignas(64) float b[block];
        for (int64_t i = 0; i < n; i += block) {
            int64_t m = std::min(block, n - i);
            load_(a, to + i * width_, nullptr, nullptr, m);
            load_(b, from + i * width_, nullptr, nullptr, m);
            combine_(a, a, b, nullptr, m);
            store_(to + i * width_, a, nullptr, nullptr, m);
        }
    }

    std::unique_ptr<Step> copy_;
    Operand indices_;
    Operand updates_;
    Operand out_;
    int64_t size_ = 0;
    int64_t row_ = 0;
    int64_t width_ = 0;
    MapLoop combine_ = nullptr;
    MapLoop load_ = nullptr;
    MapLoop store_ = nullptr;
};

std::optional<std::string> refuse(const Group& group) {
    bool packed = is_packed(group.graph.type(group.inputs[0]).dtype);
    return packed ? std::optional<std::string>("4-bit elements") : std::nullopt;
}

std::unique_ptr<Step> prepare_gather(const StepArgs& args) {
    auto axis = static_cast<size_t>(args.group.first().as<Gather>().axis);
    return std::make_unique<GatherStep>(args.in[0], args.in[1], args.out[0], axis);
}

std::unique_ptr<Step> prepare_scatter(const StepArgs& args) {
    Shape expected = args.out[0].view.shape;
    expected[0] = args.in[1].view.count();
    require(args.in[2].view.shape == expected, ErrorCode::InvalidArgument,
            "scatter: updates have shape ", args.in[2].view.shape, ", expected ", expected);
    return std::make_unique<ScatterStep>(args);
}

const Kernel rows[] = {
    {.name = "gather", .refuse = refuse, .prepare = prepare_gather},
    {.name = "scatter", .refuse = refuse, .prepare = prepare_scatter},
};

} // namespace

extern const KernelTable gather_kernels;
const KernelTable gather_kernels = rows;

} // namespace ingot::cpu
