// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/byte_results.h"

#include "ops/primitives.h"

namespace ingot::kernels::attention {

namespace {

/// Statements and the expression of one result, a float `x`.
ExprText value_text(const Heads& s, const std::string& x, std::string_view prefix) {
    const std::string input[] = {x};
    return expr_text(*s.byte_map, input, prefix, Functions::Precise, s.out.dtype);
}

} // namespace

std::optional<std::string> refuse_map(const Group& group) {
    const Node& attention = group.nodes[0];
    const Node& map = group.nodes[1];
    if (group.nodes.size() > 2) {
        return "more than a map behind it";
    }
    DType of = group.graph.type(attention.outputs[0]).dtype;
    if (of != DType::F16 && of != DType::BF16 && of != DType::F32) {
        return str("a map of ", of);
    }
    const auto& m = map.as<Map>();
    if (map.inputs.size() != 1 || !ends_by_rounding(m.body) || bit_width(m.dtype) != 8) {
        return "its map does not round to bytes, or has further operands";
    }
    return std::nullopt;
}

const Expr* byte_map(const Group& group) {
    return group.nodes.size() > 1 ? &group.nodes[1].as<Map>().body : nullptr;
}

void add_result(Defines& d, const Heads& s, std::string_view element) {
    d.add("RESULT", s.byte_map != nullptr ? "u8" : element);
    d.add("BYTES", s.byte_map != nullptr ? 1 : 0);
}

std::vector<std::string_view> uses_of(const Heads& s, std::vector<std::string_view> files) {
    if (s.byte_map != nullptr) {
        files.insert(files.begin() + 1, "math");
    }
    return files;
}

std::string result_text(const Heads& s) {
    if (s.byte_map == nullptr) {
        return {};
    }
    ExprText x = value_text(s, "x", "v");
    ExprText y = value_text(s, "y", "w");
    std::string text = device_files(x);
    text += str("DEVICE u32 rounded(float x, float y) {\n", x.statements, y.statements,
                "return pack_", ingot::name(s.out.dtype), "(", x.result, ", ", y.result, ");\n}\n");
    if (s.dtype == DType::F16) {
        text += "DEVICE u32 rounded(u32 two) {\n"
                "return rounded(f32_of_f16((u16)two), f32_of_f16((u16)(two >> 16)));\n}\n";
    } else if (s.dtype == DType::BF16) {
        text += "DEVICE u32 rounded(u32 two) {\n"
                "return rounded(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));\n"
                "}\n";
    }
    return text;
}

} // namespace ingot::kernels::attention
