// SPDX-License-Identifier: Apache-2.0
// Rules for identity nodes. same-value removes most of them; these rules need no analysis, or see
// more than the importer does.
#include "onnx/data_type.h"
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>

namespace ingot::slim {

namespace {

bool bypass(Context& c, size_t i, size_t operand) {
    const std::string gone = c.edit.node(i).outputs[0];
    const std::string kept = input(c.edit.node(i), operand);
    return c.edit.bypass(i, gone, kept);
}

bool identity(Context& c, size_t i) {
    return bypass(c, i, 0);
}

// Before opset 12, Dropout is always in inference mode; later the third operand decides.
bool dropout(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    if (has_input(n, 2)) {
        const std::optional<Tensor> training = c.constant(input(n, 2));
        if (!training || training->count() != 1 || training->get_i64(0) != 0) {
            return false;
        }
    }
    return bypass(c, i, 0);
}

bool cast(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const std::optional<DType> from = c.dtype(input(n, 0));
    const int64_t to = get_int(n, "to", 0);
    return from && onnx::data_type_number(*from) == to && bypass(c, i, 0);
}

bool transpose(Context& c, size_t i) {
    const std::optional<Axes> perm = permutation(c, c.edit.node(i));
    const bool sorted = perm && std::is_sorted(perm->begin(), perm->end());
    return sorted && !perm->empty() && bypass(c, i, 0);
}

bool pad(Context& c, size_t i) {
    const Context::Parameter pads = c.parameter(c.edit.node(i), "pads", 1);
    return pads.known &&
           std::all_of(pads.known->begin(), pads.known->end(), [](int64_t p) { return p == 0; }) &&
           bypass(c, i, 0);
}

bool single_operand(Context& c, size_t i) {
    return c.edit.node(i).inputs.size() == 1 && bypass(c, i, 0);
}

bool single_part(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    return n.outputs.size() == 1 && c.same_type(input(n, 0), n.outputs[0]) && bypass(c, i, 0);
}

// The result has the operand's sizes, and equal sizes mean that no element moves.
bool same_sizes(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    return c.same_type(input(n, 0), n.outputs[0]) && bypass(c, i, 0);
}

bool slice(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    const Context::Parameter steps = c.parameter(n, "steps", 4);
    const bool forward =
        !steps.given || (steps.known && std::all_of(steps.known->begin(), steps.known->end(),
                                                    [](int64_t s) { return s == 1; }));
    return forward && same_sizes(c, i);
}

// Scales of exactly 1, or the operand's own sizes, resample each element onto itself.
bool resize(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    if (get_string(n, "coordinate_transformation_mode", "") == "tf_crop_and_resize" ||
        !c.same_type(input(n, 0), n.outputs[0])) {
        return false;
    }
    const bool old = n.op_type == "Upsample" || c.opset < 11;
    const std::string scales = input(n, old ? 1 : 2);
    if (scales.empty()) {
        return has_input(n, 3) && bypass(c, i, 0);
    }
    const std::optional<Tensor> s = c.constant(scales);
    if (s && s->count() == 0) {
        return has_input(n, 3) && bypass(c, i, 0);
    }
    return s && c.filled_with(scales) == 1.0 && bypass(c, i, 0);
}

// A reduction over axes of size 1 that keeps them is the identity.
bool reduce(Context& c, size_t i) {
    const onnx::Node& n = c.edit.node(i);
    return get_int(n, "keepdims", 1) == 1 && same_sizes(c, i);
}

const Rule rules[] = {
    {"nop-identity", "dead_node_elimination", "Identity", {"Identity"}, identity},
    {"nop-dropout", "dead_node_elimination", "Dropout in inference mode", {"Dropout"}, dropout},
    {"nop-cast", "dead_node_elimination", "a cast to the same type", {"Cast"}, cast},
    {"nop-transpose",
     "dead_node_elimination",
     "a transpose that moves no axis",
     {"Transpose"},
     transpose},
    {"nop-pad", "dead_node_elimination", "padding by zero elements", {"Pad"}, pad},
    {"nop-single",
     "dead_node_elimination",
     "sums, extrema and concatenations of one tensor",
     {"Concat", "Sum", "Max", "Min", "Mean"},
     single_operand},
    {"nop-split", "dead_node_elimination", "a split into one part", {"Split"}, single_part},
    {"nop-view",
     "dead_node_elimination",
     "reshapes, expansions and tiles that keep all sizes",
     {"Reshape", "Flatten", "Expand", "Tile", "Squeeze", "Unsqueeze"},
     same_sizes},
    {"nop-slice", "dead_node_elimination", "slices of the whole tensor", {"Slice"}, slice},
    {"nop-resize",
     "dead_node_elimination",
     "resizing to the same sizes",
     {"Resize", "Upsample"},
     resize},
    {"nop-reduce",
     "dead_node_elimination",
     "reductions over axes of size 1",
     {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"},
     reduce},
};

} // namespace

const RuleTable identity_rules = rules;

} // namespace ingot::slim
