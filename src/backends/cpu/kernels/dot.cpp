// SPDX-License-Identifier: Apache-2.0
// dot: contractions over any axes, strides and dtypes, by blocked products.
#include "backends/cpu/dot_shape.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/onednn_matmul.h"
#include "plan/compile_options.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

bool contains(const std::vector<int64_t>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

} // namespace

DotShape dot_shape(const Dot& d, const View& a, const View& b, const View& c) {
    DotShape s;
    size_t result = 0;
    auto pair = [&](AxisGroup& group, const std::vector<int64_t>& left,
                    const std::vector<int64_t>& right, bool in_result) {
        for (size_t i = 0; i < left.size(); ++i) {
            auto l = static_cast<size_t>(left[i]);
            auto r = static_cast<size_t>(right[i]);
            require(a.shape[l] == b.shape[r], ErrorCode::InvalidArgument, "dot of ", a.shape,
                    " and ", b.shape, ": axis ", l, " of the first is paired with axis ", r,
                    " of the second, but their sizes differ");
            group.sizes.push_back(a.shape[l]);
            group.a.push_back(a.strides[l]);
            group.b.push_back(b.strides[r]);
            if (in_result) {
                group.c.push_back(c.strides[result++]);
            }
        }
    };
    pair(s.batch, d.a_batch, d.b_batch, true);
    for (size_t i = 0; i < a.shape.size(); ++i) {
        if (!contains(d.a_batch, i) && !contains(d.a_contract, i)) {
            s.rows.sizes.push_back(a.shape[i]);
            s.rows.a.push_back(a.strides[i]);
            s.rows.c.push_back(c.strides[result++]);
        }
    }
    for (size_t i = 0; i < b.shape.size(); ++i) {
        if (!contains(d.b_batch, i) && !contains(d.b_contract, i)) {
            s.columns.sizes.push_back(b.shape[i]);
            s.columns.b.push_back(b.strides[i]);
            s.columns.c.push_back(c.strides[result++]);
        }
    }
    pair(s.depth, d.a_contract, d.b_contract, false);
    return s;
}

namespace {

int64_t count(const AxisGroup& g) {
    int64_t n = 1;
    for (int64_t s : g.sizes) {
        n *= s;
    }
    return n;
}

class DotStep : public Step {
public:
    DotStep(std::unique_ptr<Matmul> matmul, const Operand& a, const Operand& b, const Operand& c)
        : matmul_(std::move(matmul)), a_(a), b_(b), c_(c) {}
    Status run(const RunContext& c) noexcept override {
        matmul_->run(c.bytes(a_), c.bytes(b_), c.bytes(c_), c.scratch<std::byte>(scratch), c.pool);
        return {};
    }
    int64_t scratch_bytes() const override { return matmul_->scratch_bytes(); }

private:
    std::unique_ptr<Matmul> matmul_;
    Operand a_;
    Operand b_;
    Operand c_;
};

/// A sum over no elements.
class ZeroStep : public Step {
public:
    explicit ZeroStep(const Operand& out) : out_(out) {}
    Status run(const RunContext& c) noexcept override {
        int64_t width = bit_width(out_.dtype) / 8;
        for (int64_t offset : plan::offsets_of(out_.view.shape, out_.view.strides)) {
            std::fill_n(c.bytes(out_) + offset * width, width, std::byte{0});
        }
        return {};
    }

private:
    Operand out_;
};

MatmulSide side_of(const Operand& o, const std::byte* constant, const AxisGroup& batch,
                   const Shape& batch_strides, const AxisGroup& outer, const Shape& outer_strides,
                   const AxisGroup& depth, const Shape& depth_strides) {
    MatmulSide s;
    s.dtype = o.dtype;
    s.batch = plan::offsets_of(batch.sizes, batch_strides);
    s.outer = plan::offsets_of(outer.sizes, outer_strides);
    s.depth = plan::offsets_of(depth.sizes, depth_strides);
    if (constant != nullptr) {
        s.constant = constant + o.view.offset * bit_width(o.dtype) / 8;
        s.key =
            str(batch.sizes, batch_strides, outer.sizes, outer_strides, depth.sizes, depth_strides);
    }
    return s;
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (!n.is(dot_def)) {
        return "not a dot";
    }
    for (Value v : n.inputs) {
        if (is_packed(group.graph.type(v).dtype)) {
            return "4-bit elements";
        }
    }
    DType t = n.as<Dot>().dtype;
    if (is_packed(t)) {
        return "4-bit elements";
    }
    return refuse_product_epilogue(group);
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    const Node& n = args.group.first();
    auto left = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    auto right = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    const Operand& a = args.in[left];
    const Operand& b = args.in[right];
    const Operand c = main_result(args, plan::row_major(args.out[0].view.rank()));
    DotShape s = dot_shape(n.as<Dot>(), a.view, b.view, c.view);
    if (count(s.depth) == 0) {
        return with_epilogue(std::make_unique<ZeroStep>(c), args);
    }
    if (auto step = make_library_matmul(s, {a, b, c, constant_base(args, right)}, args)) {
        return step;
    }
    MatmulSpec spec;
    spec.a = side_of(a, constant_base(args, left), s.batch, s.batch.a, s.rows, s.rows.a, s.depth,
                     s.depth.a);
    spec.b = side_of(b, constant_base(args, right), s.batch, s.batch.b, s.columns, s.columns.b,
                     s.depth, s.depth.b);
    spec.dtype = c.dtype;
    spec.in_order = args.options.batch_invariant;
    spec.batch = plan::offsets_of(s.batch.sizes, s.batch.c);
    spec.rows = plan::offsets_of(s.rows.sizes, s.rows.c);
    spec.columns = plan::offsets_of(s.columns.sizes, s.columns.c);
    auto matmul = make_matmul(std::move(spec), args.packs);
    return with_epilogue(std::make_unique<DotStep>(std::move(matmul), a, b, c), args);
}

const Kernel rows[] = {{.name = "dot",
                        .refuse = refuse,
                        .prepare = prepare,
                        .layout = any_strides,
                        .strided_results = true,
                        .takes_groups = true}};

} // namespace

extern const KernelTable dot_kernels;
const KernelTable dot_kernels = rows;

} // namespace ingot::cpu
