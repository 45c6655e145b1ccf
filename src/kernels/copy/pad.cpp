// SPDX-License-Identifier: Apache-2.0
// pad: one vector of the result a thread; each padded axis maps its coordinate into the source.
#include "kernels/common/expr_text.h"
#include "kernels/copy/movement.h"
#include "kernels/pointwise/index_text.h"
#include "ops/primitives.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

struct PadAxis {
    int64_t size = 1; // of the result
    int64_t from_size = 1;
    int64_t low = 0;
    int64_t to = 0; // strides
    int64_t from = 0;
    bool padded() const { return size != from_size; }
};

std::vector<PadAxis> pad_axes(const Problem& p, bool constant) {
    const auto& pad = p.group.first().as<Pad>();
    std::vector<PadAxis> axes;
    for (int axis : plan::stride_order(p.out[0].view)) {
        auto n = static_cast<size_t>(axis);
        PadAxis a{p.out[0].view.shape[n], p.in[0].view.shape[n], pad.low[n].eval(p.symbols),
                  p.out[0].view.strides[n], p.in[0].view.strides[n]};
        if (a.size == 1 && !a.padded()) {
            continue;
        }
        // A padded axis joins the unpadded axis inside it only where no other elements are read.
        if (!axes.empty() && !a.padded() && axes.back().to == a.to * a.size &&
            axes.back().from == a.from * a.from_size && (constant || !axes.back().padded())) {
            PadAxis& o = axes.back();
            o = {o.size * a.size, o.from_size * a.size, o.low * a.size, a.to, a.from};
            continue;
        }
        axes.push_back(a);
    }
    if (axes.empty()) {
        axes.push_back({1, 1, 0, 1, 1});
    }
    return axes;
}

int64_t pad_vector(const Problem& p, const std::vector<PadAxis>& axes, bool constant) {
    const PadAxis& last = axes.back();
    bool packed = is_packed(p.out[0].dtype);
    if (packed || last.to != 1 || last.from != 1 || (last.padded() && !constant)) {
        return 1;
    }
    int64_t common = std::gcd(p.out[0].view.offset, p.in[0].view.offset);
    common = std::gcd(std::gcd(common, last.size), std::gcd(last.from_size, last.low));
    for (size_t n = 0; n + 1 < axes.size(); ++n) {
        common = std::gcd(common, std::gcd(axes[n].to, axes[n].from));
    }
    int64_t v = 128 / bit_width(p.out[0].dtype);
    while (v > 1 && common % v != 0) {
        v /= 2;
    }
    return v;
}

/// Statements that map coordinate c of the source, which may be outside, to one inside.
std::string source_text(const std::string& mode, size_t n) {
    std::string c = str("c", n);
    std::string size = str("n", n);
    if (mode == "constant") {
        return str("inside = inside && ", c, " >= 0 && ", c, " < ", size, ";\n");
    }
    if (mode == "edge") {
        return str(c, " = ", c, " < 0 ? 0 : ", c, " < ", size, " ? ", c, " : ", size, " - 1;\n");
    }
    std::string period = mode == "wrap" ? size : str("(", size, " > 1 ? 2 * ", size, " - 2 : 1)");
    return str(c, " = ingot_floor_mod<I>(", c, ", ", period, ");\n",
               mode == "wrap"
                   ? ""
                   : str("if (", c, " >= ", size, ") ", c, " = ", period, " - ", c, ";\n"));
}

/// Statements that find the source of the element at x0, x1, ...: `at`, whether it is `inside`, and
/// `to`, its position in the result. Adds the parameters that they use.
std::string locate_text(const std::vector<PadAxis>& axes, const std::string& mode, int64_t v,
                        Signature& parameters) {
    std::string body = "I at = 0, to = 0;\nbool inside = true;\n";
    for (size_t k = 0; k < axes.size(); ++k) {
        const PadAxis& a = axes[k];
        parameters.index(str("t", k), a.to).index(str("f", k), a.from);
        std::string x = k + 1 == axes.size() && v > 1 ? str("(I)x", k, " * ", v) : str("(I)x", k);
        append(body, str("to += ", x, " * t", k, ";\nI c", k, " = ", x,
                         a.padded() ? str(" - l", k) : std::string(), ";\n"));
        if (a.padded()) {
            parameters.index(str("l", k), a.low).index(str("n", k), a.from_size);
            append(body, source_text(mode, k));
        }
        append(body, str("at += c", k, " * f", k, ";\n"));
    }
    return body;
}

std::string vector_text(const IndexText& index, const std::string& body, const std::string& type,
                        int64_t v) {
    return str("grid_wait();\nconst ", index.type(), " i = (", index.type(), ")", block_number,
               " * 256u + threadIdx.x;\nif (i >= n) return;\n", index.split("i"), body, type, " r[",
               v, "];\nif (inside) load_pack<", type, ", ", v, ">(r, x + at);\nelse {\nconst ",
               type, " q = *value;\n#pragma unroll\nfor (int k = 0; k < ", v,
               "; ++k) r[k] = q;\n}\nend_main_loop();\nstore_pack<", type, ", ", v,
               ">(y + to, r);\n");
}

/// A thread makes one byte of the dense result.
std::string packed_text(const IndexText& index, const std::string& body) {
    return str("grid_wait();\nconst ", index.type(), " b = (", index.type(), ")", block_number,
               " * 256u + threadIdx.x;\nif (b * 2 >= n) return;\nu32 byte = 0;\n"
               "#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
               index.type(), " i = b * 2 + k;\nif (i < n) {\n", index.split("i"), body,
               "byte |= (u32)load_nibble<U4>(inside ? x : value, inside ? at : 0).bits"
               " << (4 * k);\n}\n}\nend_main_loop();\ny[b] = (u8)byte;\n");
}

} // namespace

DType raw_dtype(DType t) {
    switch (bit_width(t)) {
    case 4:
        return DType::U4;
    case 8:
        return DType::U8;
    case 16:
        return DType::U16;
    case 32:
        return DType::U32;
    default:
        return DType::U64;
    }
}

std::optional<std::string> refuse_pad(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
}

Emitted emit_pad(const Problem& p, const Tactic&) {
    const std::string& mode = p.group.first().as<Pad>().mode;
    bool constant = mode == "constant";
    int64_t count = p.out[0].view.count();
    Emitted out;
    if (count == 0) {
        return out;
    }
    std::vector<PadAxis> axes = pad_axes(p, constant);
    for (const PadAxis& a : axes) {
        require(a.from_size > 0 || constant || !a.padded(), ErrorCode::InvalidArgument,
                "pad: an axis of size 0 has no elements for mode ", mode);
    }
    int64_t v = pad_vector(p, axes, constant);
    constexpr int64_t most = int64_t{1} << 30;
    bool wide = std::max({count, span_of(p.in[0].view), span_of(p.out[0].view)}) >= most;
    Shape sizes;
    for (const PadAxis& a : axes) {
        sizes.push_back(a.size);
    }
    sizes.back() /= v;
    IndexText index(sizes, wide);
    int64_t n = count / v;

    bool packed = is_packed(p.out[0].dtype);
    std::string type(packed ? "u8" : c_type(raw_dtype(p.out[0].dtype)));
    Signature parameters(wide);
    parameters.pointer(type + "*", "y", p.out[0]).pointer(str("const ", type, "*"), "x", p.in[0]);
    parameters.pointer(str("const ", type, "*"), "value", p.in[1]).size("n", n);
    index.add(parameters);
    std::string body = locate_text(axes, mode, v, parameters);
    Launch l =
        std::move(parameters)
            .launch("pad", packed ? packed_text(index, body) : vector_text(index, body, type, v));
    l.program.defines = wide ? "typedef i64 I;\n" : "typedef i32 I;\n";
    l.grid = {blocks_for(packed ? (n + 1) / 2 : n), 1, 1};
    out.launches.push_back(std::move(l));
    return out;
}

} // namespace ingot::kernels
