// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/byte_results.h"

#include "ops/primitives.h"

#include <algorithm>

namespace ingot::kernels::attention {

namespace {

/// Statements and the expression of one result, a float `x`.
ExprText value_text(const Heads& s, const std::string& x, std::string_view prefix) {
    std::vector<std::string> inputs;
    for (size_t i = 0; i < s.scalars.size(); ++i) {
        inputs.push_back(s.scalars[i] ? str("widen(e", i, "[0])") : x);
    }
    return expr_text(s.byte_map->body, inputs, prefix, Functions::Precise, s.out.dtype);
}

std::string parameters_text(const Heads& s) {
    std::string parameters;
    std::string pass;
    for (size_t i = 0; i < s.scalars.size(); ++i) {
        if (s.scalars[i]) {
            parameters += str(", const ", c_type(s.scalars[i]->dtype), "* __restrict__ e", i);
            pass += str(", e", i);
        }
    }
    return str("#define EPI_PARAMS ", parameters, "\n#define EPI_PASS ", pass, "\n");
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
    constexpr int64_t most_values = 160; // the text that rounds is there for each of them
    int64_t values = group.graph.type(attention.outputs[0]).dims[3].as_const().value_or(0);
    if (values > most_values) {
        return str("values of ", values, " elements that are rounded to bytes");
    }
    const auto& m = map.as<Map>();
    bool takes = ends_by_rounding(m.body) && bit_width(m.dtype) == 8;
    for (Value v : map.inputs) {
        const Type& t = group.graph.type(v);
        bool one =
            std::all_of(t.dims.begin(), t.dims.end(), [](const Dim& d) { return d.is_const(1); });
        takes = takes && (v == attention.outputs[0] ||
                          (one && (t.dtype == DType::F32 || narrow_result(t.dtype))));
    }
    return takes ? std::nullopt
                 : std::optional<std::string>("its map does not round to bytes, or has further "
                                              "operands of more than one element");
}

void set_byte_map(Heads& s, const Problem& p) {
    if (p.group.nodes.size() < 2) {
        return;
    }
    const Node& map = p.group.nodes[1];
    s.byte_map = &map.as<Map>();
    for (Value v : map.inputs) {
        bool result = v == p.group.first().outputs[0];
        s.scalars.push_back(result ? std::nullopt : std::optional(p.operand(v)));
    }
}

void add_scalars(Launch& l, const Heads& s) {
    for (const std::optional<Operand>& o : s.scalars) {
        if (o) {
            l.args.pointer(*o);
        }
    }
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
    std::string text = parameters_text(s);
    if (s.byte_map == nullptr) {
        return text;
    }
    ExprText x = value_text(s, "x", "v");
    ExprText y = value_text(s, "y", "w");
    text += device_files(x);
    text += str("DEVICE u32 rounded(float x, float y EPI_PARAMS) {\n", x.statements, y.statements,
                "return pack_", ingot::name(s.out.dtype), "(", x.result, ", ", y.result, ");\n}\n");
    if (s.dtype == DType::F16) {
        text += "DEVICE u32 rounded(u32 two EPI_PARAMS) {\n"
                "return rounded(f32_of_f16((u16)two), f32_of_f16((u16)(two >> 16)) EPI_PASS);\n"
                "}\n";
    } else if (s.dtype == DType::BF16) {
        text += "DEVICE u32 rounded(u32 two EPI_PARAMS) {\n"
                "return rounded(__uint_as_float(two << 16), "
                "__uint_as_float(two & 0xffff0000u) EPI_PASS);\n}\n";
    }
    return text;
}

} // namespace ingot::kernels::attention
