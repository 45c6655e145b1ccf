// SPDX-License-Identifier: Apache-2.0
// conv: channels last on both sides, for any spatial rank.
#include "backends/cpu/conv_step.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/onednn_conv.h"
#include "backends/cpu/options.h"
#include "ops/ops.h"

namespace ingot::cpu {

namespace {

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    const Type& x = group.graph.type(n.inputs[0]);
    const Type& w = group.graph.type(n.inputs[1]);
    if (is_packed(x.dtype) || is_packed(w.dtype) || is_packed(n.as<ops::Conv>().dtype)) {
        return "4-bit elements";
    }
    for (size_t i = 2; i < w.dims.size(); ++i) {
        if (!w.dims[i].is_const()) {
            return "the kernel's size is unknown";
        }
    }
    return refuse_product_epilogue(group);
}

void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    auto x = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    Order order = plan::channels_last(args.in[x].rank());
    args.want[x] = order;
    args.order[0] = order;
}

ConvProblem problem_of(const StepArgs& args) {
    const Node& n = args.group.first();
    const auto& attrs = n.as<ops::Conv>();
    ConvProblem p;
    p.x = args.in[static_cast<size_t>(args.group.input_index(n.inputs[0]))];
    auto w = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    p.w = args.in[w];
    p.w_constant = constant_base(args, w);
    p.out = main_result(args, plan::channels_last(args.out[0].view.rank()));
    const Shape& x = p.x.view.shape;
    const Shape& k = p.w.view.shape;
    p.batch = x[0];
    p.channels = x[1];
    p.results = k[0];
    p.groups = attrs.groups;
    require(k[1] * p.groups == p.channels && p.results % p.groups == 0 &&
                p.out.view.shape[0] == p.batch && p.out.view.shape[1] == p.results,
            ErrorCode::InvalidArgument, "conv of ", x, " with ", k, " in ", p.groups,
            " groups: the channels do not fit");
    Shape sizes(k.begin() + 2, k.end());
    p.axes = spatial_axes("conv", x, p.out.view.shape, sizes, attrs.strides, attrs.dilations,
                          eval(attrs.low, args.symbols), eval(attrs.high, args.symbols));
    return p;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    ConvProblem problem = problem_of(args);
    if (args.options.of<CpuOptions>().use_library) {
        if (std::unique_ptr<Step> step = make_library_conv(problem, args)) {
            return step;
        }
    }
    return with_epilogue(make_conv(problem, args.packs), args,
                         plan::channels_last(problem.out.view.rank()));
}

const Kernel rows[] = {
    {.name = "conv", .refuse = refuse, .prepare = prepare, .layout = layout, .takes_groups = true}};

} // namespace

extern const KernelTable conv_kernels;
const KernelTable conv_kernels = rows;

} // namespace ingot::cpu
