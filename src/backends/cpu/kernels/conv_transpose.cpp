// SPDX-License-Identifier: Apache-2.0
// conv_transpose, for any spatial rank: channels last on both sides, except for few results.
#include "backends/cpu/conv_transpose_step.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/onednn_conv.h"
#include "ops/ops.h"

namespace ingot::cpu {

namespace {

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (is_packed(group.graph.type(n.inputs[0]).dtype) ||
        is_packed(group.graph.type(n.inputs[1]).dtype)) {
        return "4-bit elements";
    }
    return refuse_map_epilogue(group);
}

bool has_few_results(const Group& group) {
    const Node& n = group.first();
    return conv_transpose_has_few_results(group.graph.type(n.inputs[0]),
                                          group.graph.type(n.inputs[1]),
                                          n.as<ops::ConvTranspose>().groups);
}

void layout(LayoutArgs& args) {
    if (has_few_results(args.group)) {
        return; // reads any layout, writes row-major
    }
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    Order order = plan::channels_last(args.in[x].rank());
    args.want[x] = order;
    args.order[0] = order;
}

ConvProblem problem_of(const StepArgs& args) {
    const Node& n = args.group.first();
    const auto& attrs = n.as<ops::ConvTranspose>();
    auto w = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    ConvProblem p;
    p.x = args.in[static_cast<size_t>(args.group.input_index(n.inputs[0]))];
    p.w = args.in[w];
    p.w_constant = constant_base(args, w);
    p.out = args.out[0];
    const Shape& x = p.x.view.shape;
    const Shape& k = p.w.view.shape;
    const Shape& out = p.out.view.shape;
    p.batch = x[0];
    p.channels = x[1];
    p.groups = attrs.groups;
    p.results = k[1] * p.groups;
    require(k[0] == p.channels && p.channels % p.groups == 0 && out[0] == p.batch &&
                out[1] == p.results,
            ErrorCode::InvalidArgument, "conv_transpose of ", x, " with ", k, " in ", p.groups,
            " groups: the channels do not fit");
    Shape low = eval(attrs.low, args.symbols);
    Shape high = eval(attrs.high, args.symbols);
    for (size_t i = 0; i < low.size(); ++i) {
        SpatialAxis a{x[i + 2],           out[i + 2], k[i + 2], attrs.strides[i],
                      attrs.dilations[i], low[i],     high[i]};
        int64_t size = (a.in - 1) * a.stride + (a.size - 1) * a.dilation + 1 - a.low - a.high;
        require(size == a.out, ErrorCode::InvalidArgument, "conv_transpose of ", x, " with ", k,
                " along axis ", i + 2, " has ", size, " elements, expected ", a.out);
        p.axes.push_back(a);
    }
    return p;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    ConvProblem problem = problem_of(args);
    if (has_few_results(args.group)) {
        return with_epilogue(make_conv_transpose_of_few(problem, args.packs), args);
    }
    if (std::unique_ptr<Step> step = make_library_conv_transpose(problem, args)) {
        return step;
    }
    return with_epilogue(make_conv_transpose(problem, args.packs), args);
}

const Kernel rows[] = {{.name = "conv_transpose",
                        .refuse = refuse,
                        .prepare = prepare,
                        .layout = layout,
                        .takes_groups = true}};

} // namespace

extern const KernelTable conv_transpose_kernels;
const KernelTable conv_transpose_kernels = rows;

} // namespace ingot::cpu
