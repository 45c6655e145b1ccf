// SPDX-License-Identifier: Apache-2.0
// iota and random, whose results depend on the position alone, and concat of packed types.
#include "kernels/common/expr_text.h"
#include "kernels/copy/movement.h"
#include "kernels/copy/unpacked.h"
#include "kernels/pointwise/index_text.h"
#include "ops/primitives.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

/// The largest value of a float type below `limit`: rounding must not reach the open end.
double value_below(double limit, DType dtype) {
    Tensor t = Tensor::scalar(dtype, limit);
    double step = std::max(std::abs(t.get_f64(0)), 1e-30) * 0x1p-54;
    for (; t.get_f64(0) >= limit && std::isfinite(step); step *= 2) {
        t.set_f64(0, limit - step);
    }
    return t.get_f64(0);
}

/// A cast from an expression of another compute type, ready to be stored as `to`.
std::string stored_text(DType from, DType to, const std::string& value, std::string& statements) {
    Expr e;
    e.cast(e.in(0, from), to);
    ExprText t = expr_text(e, std::span(&value, 1));
    statements += t.statements;
    return str("narrow<", c_type(to), ">(", t.result, ")");
}

/// cos(2 pi t) for t in [0, 1): a series on an eighth of a turn. The library's function includes
/// its reduction of large arguments, which uses local memory.
constexpr std::string_view cos_turn = R"(
DEVICE double cos_turn(double t) {
    const i32 q = (i32)(t * 4.0 + 0.5);
    const double a = (t - (double)q * 0.25) * 6.283185307179586, s = a * a;
    double even = 0.0, odd = 0.0;
#pragma unroll
    for (int k = 9; k > 0; --k) {
        even = (1.0 + even) * (-s * (1.0 / (double)((2 * k - 1) * (2 * k))));
        odd = (1.0 + odd) * (-s * (1.0 / (double)((2 * k) * (2 * k + 1))));
    }
    const double v = (q & 1) ? a + a * odd : 1.0 + even;
    return ((q + 1) & 2) ? -v : v;
}
)";

Launch per_element(std::string entry, Signature parameters, const std::string& body, int64_t n) {
    std::string u(parameters.size_type());
    Launch l =
        std::move(parameters)
            .launch(std::move(entry), str("grid_wait();\nconst ", u, " i = (", u, ")", block_number,
                                          " * 256u + threadIdx.x;\nif (i < n) {\n", body, "}\n"));
    l.grid = {blocks_for(n), 1, 1};
    return l;
}

constexpr int64_t most_narrow = int64_t{1} << 30;

/// The result itself, or, where it is packed, elements of type `wide` in scratch memory.
Operand element_target(const Operand& result, DType wide, Emitted& out) {
    if (!is_packed(result.dtype)) {
        return result;
    }
    out.scratch = byte_size(wide, result.view.count());
    return {wide, in_scratch, plan::dense(result.view.shape)};
}

void finish_packed(const Operand& made, const Operand& result, Emitted& out) {
    if (is_packed(result.dtype)) {
        Emitted last = emit_cast(made, result);
        std::move(last.launches.begin(), last.launches.end(), std::back_inserter(out.launches));
    }
}

} // namespace

std::optional<std::string> refuse_iota(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
}

Emitted emit_iota(const Problem& p, const Tactic&) {
    Emitted out;
    Operand o = element_target(p.out[0], DType::I64, out);
    int64_t n = o.view.count();
    if (n == 0) {
        return out;
    }
    bool wide = std::max(n, span_of(o.view)) >= most_narrow;
    IndexText index(o.view.shape, wide);
    Signature parameters(wide);
    parameters.pointer(str(c_type(o.dtype), "*"), "y", o).size("n", n);
    index.add(parameters);
    std::vector<std::string> x;
    std::vector<std::string> strides;
    for (size_t k = 0; k < o.view.shape.size(); ++k) {
        x.push_back(str("x", k));
        strides.push_back(str("s", k));
        parameters.offset(strides.back(), o.view.strides[k]);
    }
    std::string body = index.split("i");
    std::string value = stored_text(DType::I64, o.dtype,
                                    str("((i64)x", p.group.first().as<Iota>().axis, ")"), body);
    append(body,
           str("y[", offset_text(parameters.offset_type(), x, strides), "] = ", value, ";\n"));
    out.launches.push_back(per_element("iota", std::move(parameters), body, n));
    finish_packed(o, p.out[0], out);
    return out;
}

std::optional<std::string> refuse_random(const Group& group) {
    return refuse_iota(group);
}

Emitted emit_random(const Problem& p, const Tactic&) {
    const auto& a = p.group.first().as<Random>();
    Emitted out;
    Operand o = element_target(p.out[0], DType::F64, out);
    int64_t n = o.view.count();
    if (n == 0) {
        return out;
    }
    bool wide = n >= most_narrow;
    bool uniform = a.kind == "uniform";
    double top = a.a < a.b ? std::max(a.a, value_below(a.b, a.dtype)) : INFINITY;
    Signature parameters(wide);
    parameters.pointer(str(c_type(o.dtype), "*"), "y", o).size("n", n).f64("a", a.a).f64("b", a.b);
    parameters.f64("top", top).u64("seed", a.seed).run_state("state");
    // Each run has its own key, as in plan/reference.h.
    std::string body = str("const u64 run = state[0], key = seed + run * 0x9E3779B97F4A7C15ull;\n"
                           "if (i == 0) state[1] = run + 1;\n"
                           "u32 key0 = (u32)key, key1 = (u32)(key >> 32);\n"
                           "u32 c0 = (u32)i, c1 = (u32)((u64)i >> 32), c2 = 0, c3 = 0;\n"
                           "#pragma unroll 1\nfor (int round = 0; round < 10; ++round) {\n"
                           "const u64 l = (u64)0xD2511F53u * c0, h = (u64)0xCD9E8D57u * c2;\n"
                           "c0 = (u32)(h >> 32) ^ c1 ^ key0; c1 = (u32)h; c2 = (u32)(l >> 32) ^ c3 "
                           "^ key1; c3 = (u32)l;\n"
                           "key0 += 0x9E3779B9u; key1 += 0xBB67AE85u;\n}\n");
    if (!uniform) {
        body +=
            "const double v = a + sqrt(-2.0 * log(((double)c0 + 1.0) * (1.0 / 4294967296.0))) * "
            "cos_turn((double)c1 * (1.0 / 4294967296.0)) * b;\n";
    } else {
        append(body, str("const double unit = ",
                         a.dtype == DType::F64
                             ? "(double)((((u64)c0 << 32) | c1) >> 11) * (1.0 / 9007199254740992.0)"
                             : "(double)(c0 >> 8) * (1.0 / 16777216.0)",
                         ";\nconst double w = a + unit * (b - a), v = w < top ? w : top;\n"));
    }
    std::string value = stored_text(DType::F64, o.dtype, "v", body);
    append(body, str("y[i] = ", value, ";\n"));
    out.launches.push_back(per_element("philox", std::move(parameters), body, n));
    if (!uniform) {
        out.launches.back().program.defines = cos_turn;
    }
    finish_packed(o, p.out[0], out);
    return out;
}

std::optional<std::string> refuse_concat(const Group& group) {
    if (group.nodes.size() != 1 || !is_packed(group.graph.type(group.outputs[0]).dtype)) {
        return "only concat of packed types needs a kernel";
    }
    return std::nullopt;
}

// One launch per operand over the bytes of the result; a byte with halves from two operands is
// written twice. The first launch writes every byte: later ones read the half that they keep.
Emitted emit_concat(const Problem& p, const Tactic&) {
    const Operand& o = p.out[0];
    auto axis = static_cast<size_t>(p.group.first().as<Concat>().axis);
    Emitted out;
    int64_t n = o.view.count();
    int64_t start = 0;
    for (Value v : p.group.first().inputs) {
        Operand from = p.operand(v);
        int64_t size = from.view.shape[axis];
        Shape want = o.view.shape;
        want[axis] = size;
        require(from.view.shape == want, ErrorCode::InvalidArgument, "concat along axis ", axis,
                ": an input has shape ", from.view.shape, ", expected ", want);
        if (n == 0 || size == 0) {
            continue;
        }
        IndexText index(o.view.shape, true);
        Signature parameters(true);
        parameters.pointer("u8*", "y", o).pointer("const u8*", "x", from).u64("n", (n + 1) / 2);
        parameters.u64("count", n).i64("start", start).i64("size", size);
        index.add(parameters);
        std::vector<std::string> x;
        std::vector<std::string> strides;
        for (size_t k = 0; k < want.size(); ++k) {
            x.push_back(k == axis ? "at" : str("x", k));
            strides.push_back(str("s", k));
            parameters.i64(strides.back(), from.view.strides[k]);
        }
        std::string body =
            str("u32 byte = 0, mask = 0;\n#pragma unroll\nfor (u32 k = 0; k < 2; ++k) {\n"
                "const u64 e = i * 2 + k;\nif (e < count) {\n",
                index.split("e"), "const i64 at = (i64)x", axis,
                " - start;\nif (at >= 0 && at < size) {\nbyte |= (u32)load_nibble<U4>(x, ",
                offset_text("i64", x, strides),
                ").bits << (4 * k);\nmask |= 15u << (4 * k);\n}\n}\n}\n",
                out.launches.empty() ? "y[i] = (u8)byte;\n"
                                     : "if (mask) y[i] = (u8)((y[i] & ~mask) | byte);\n");
        out.launches.push_back(
            per_element("concat_nibbles", std::move(parameters), body, (n + 1) / 2));
        start += size;
    }
    return out;
}

} // namespace ingot::kernels
