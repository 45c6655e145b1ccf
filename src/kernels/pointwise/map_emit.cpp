// SPDX-License-Identifier: Apache-2.0
// The text of pointwise kernels: one 16-byte vector a thread where operands allow it, tiles through
// shared memory where they lie transposed, pairs of elements where the result is packed.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/pointwise/map_job.h"

namespace ingot::kernels::map_text {

namespace {

constexpr int threads = 256;

/// Parameters and the offsets that they make, shared by all forms.
struct Signature {
    std::string params;
    Args args;
    std::vector<std::vector<std::string>> strides; // names: result first, then inputs in use
    std::string offset_type;                       // i32 or i64
};

std::string pointer_type(DType t) {
    return is_packed(t) ? "u8" : std::string(c_type(t));
}

/// The innermost stride is written as a literal where it is 0 or 1; `scale` is the number of
/// elements that one step of the innermost coordinate stands for.
Signature signature(const MapJob& job, const MapLoops& l, const IndexText& index, int64_t n,
                    int64_t scale) {
    Signature s;
    s.offset_type = l.wide ? "i64" : "i32";
    s.params = str(pointer_type(job.out.dtype), "* y");
    s.args.pointer(job.out);
    for (size_t k = 0; k < l.in.size(); ++k) {
        append(s.params, str(", const ", pointer_type(l.dtypes[k]), "* p", k));
        s.args.pointer(*l.operands[k]);
    }
    append(s.params, str(", ", index.type(), " n"));
    auto number = [&](int64_t v) {
        if (l.wide) {
            s.args.i64(v);
        } else {
            s.args.i32(v);
        }
    };
    number(n);
    append(s.params, index.params());
    index.add(s.args);
    for (size_t k = 0; k <= l.in.size(); ++k) {
        const Shape& strides = k == 0 ? l.out : l.in[k - 1];
        std::vector<std::string> names;
        for (size_t a = 0; a < strides.size(); ++a) {
            bool last = a + 1 == strides.size();
            if (last && (strides[a] == 0 || strides[a] == 1)) {
                names.push_back(str(strides[a] * scale));
                continue;
            }
            names.push_back(str("s", k, "_", a));
            append(s.params, str(", ", s.offset_type, " ", names.back()));
            number(strides[a]);
        }
        s.strides.push_back(std::move(names));
    }
    return s;
}

std::vector<std::string> coordinates(size_t rank, std::string_view x = "x") {
    std::vector<std::string> out;
    for (size_t n = 0; n < rank; ++n) {
        out.push_back(str(x, n));
    }
    return out;
}

/// The body's statements with `value(k)` for the input in use k.
template <class F>
ExprText body_text(const MapJob& job, const MapLoops& l, F&& value) {
    std::vector<std::string> inputs(job.in.size());
    std::string loads;
    for (size_t k = 0; k < l.used.size(); ++k) {
        std::string name = str("a", k);
        append(loads, str("const ", compute_c_type(l.dtypes[k]), " ", name, " = widen(", value(k),
                          ");\n"));
        inputs[static_cast<size_t>(l.used[k])] = name;
    }
    ExprText t = expr_text(job.body, inputs);
    t.statements = loads + t.statements;
    t.result = str("narrow<", c_type(job.out.dtype), ">((", compute_c_type(job.out.dtype), ")(",
                   t.result, "))");
    return t;
}

Launch launch(const MapJob& job, std::string_view form, Signature s, const std::string& body) {
    Launch out;
    out.entry = str(job.entry, form);
    out.program.uses = {"types", "math", "strided"};
    out.program.body = str("KERNEL void __launch_bounds__(", threads, ") ", out.entry, "(",
                           s.params, ") {\n", body, "}\n");
    out.block = threads;
    out.args = std::move(s.args);
    return out;
}

} // namespace

Launch vectors(const MapJob& job, const MapLoops& l) {
    int v = l.vector;
    bool flat = l.sizes.size() == 1;
    Shape sizes = l.sizes;
    sizes.back() = (sizes.back() + v - 1) / v;
    IndexText index(sizes, l.wide);
    int64_t n = 1;
    for (int64_t size : sizes) {
        n *= size;
    }
    Signature s = signature(job, l, index, n, v);
    bool tail = flat && v > 1; // the last vector may be shorter
    if (tail) {
        append(s.params, ", i32 last");
        s.args.i32(l.count - (n - 1) * v);
    }
    std::vector<std::string> x = coordinates(l.sizes.size());
    std::string declare;
    std::string load;
    for (size_t k = 0; k < l.in.size(); ++k) {
        std::string_view type = c_type(l.dtypes[k]);
        bool packed = is_packed(l.dtypes[k]);
        bool many = v > 1 && l.inner(k) == 1;
        append(declare, str(type, " q", k, "[", l.unroll, "][", many ? v : 1, "];\n"));
        std::string at = offset_text(s.offset_type, x, s.strides[k + 1]);
        std::string q = str("q", k, "[e]");
        std::string one = packed ? str("load_nibble<", type, ">(p", k, ", ") : str("p", k, "[");
        std::string close = packed ? ")" : "]";
        if (!many) {
            append(load, str(q, "[0] = ", one, at, close, ";\n"));
            continue;
        }
        std::string whole =
            packed ? str("load_nibbles<", type, ", ", v, ">(", q, ", p", k, ", ", at, ")")
                   : str("load_pack<", type, ", ", v, ">(", q, ", p", k, " + (", at, "))");
        append(load,
               tail ? str("if (i + 1 < n || last == ", v, ") ", whole,
                          ";\nelse {\n#pragma unroll\nfor (int v = 0; v < ", v,
                          "; ++v) if (v < last) ", q, "[v] = ", one, at, " + v", close, ";\n}\n")
                    : str(whole, ";\n"));
    }
    ExprText body = body_text(job, l, [&](size_t k) {
        return str("q", k, "[e][", v > 1 && l.inner(k) == 1 ? "v" : "0", "]");
    });
    std::string type(c_type(job.out.dtype));
    std::string store = v == 1 ? str("y[o[e]] = r[0];\n")
                        : tail
                            ? str("if (i + 1 < n || last == ", v, ") store_pack<", type, ", ", v,
                                  ">(y + o[e], r);\nelse {\n#pragma unroll\nfor (int v = 0; v < ",
                                  v, "; ++v) if (v < last) y[o[e] + v] = r[v];\n}\n")
                            : str("store_pack<", type, ", ", v, ">(y + o[e], r);\n");
    std::string each =
        str("#pragma unroll\nfor (int e = 0; e < ", l.unroll, "; ++e) {\nconst ", index.type(),
            " i = (", index.type(), ")blockIdx.x * ", threads * l.unroll, "u + (u32)e * ", threads,
            "u + threadIdx.x;\nif (i < n) {\n");
    Launch out =
        launch(job, "", s,
               str("grid_wait();\n", declare, s.offset_type, " o[", l.unroll, "];\n", each,
                   index.split("i"), "o[e] = ", offset_text(s.offset_type, x, s.strides[0]), ";\n",
                   load, "}\n}\ngrid_release();\n", each, type, " r[", v,
                   "];\n#pragma unroll\nfor (int v = 0; v < ", v, "; ++v) {\n", body.statements,
                   "r[v] = ", body.result, ";\n}\n", store, "}\n}\n"));
    out.grid = {blocks_for(n, threads * l.unroll), 1, 1};
    return out;
}

Launch tiles(const MapJob& job, const MapLoops& l, int axis) {
    auto last = l.sizes.size() - 1;
    auto along = static_cast<size_t>(axis);
    int widest = 1;
    for (size_t k = 0; k < l.in.size(); ++k) {
        bool across = l.inner(k) != 0 && l.inner(k) != 1;
        widest = across ? std::max(widest, bit_width(l.dtypes[k]) / 8) : widest;
    }
    int t = widest <= 2 ? 64 : 32;
    Shape sizes; // blocks: other axes, tiles along `axis`, tiles along the innermost
    std::vector<std::string> x(l.sizes.size());
    for (size_t n = 0; n < last; ++n) {
        if (n != along) {
            x[n] = str("x", sizes.size());
            sizes.push_back(l.sizes[n]);
        }
    }
    std::string ty = str("x", sizes.size());
    std::string tx = str("x", sizes.size() + 1);
    sizes.push_back(blocks_for(l.sizes[along], t));
    sizes.push_back(blocks_for(l.sizes[last], t));
    IndexText index(sizes, false);
    Signature s = signature(job, l, index, l.sizes[last], 1);
    append(s.params, ", u32 m");
    s.args.i32(l.sizes[along]);

    x[along] = "gy";
    x[last] = "gx";
    int rounds = t * t / threads;
    std::string fill;
    int64_t shared = 0;
    std::vector<std::string> value(l.in.size());
    for (size_t k = 0; k < l.in.size(); ++k) {
        std::string at = offset_text(s.offset_type, x, s.strides[k + 1]);
        if (l.inner(k) == 0 || l.inner(k) == 1) {
            value[k] = is_packed(l.dtypes[k])
                           ? str("load_nibble<", c_type(l.dtypes[k]), ">(p", k, ", ", at, ")")
                           : str("p", k, "[", at, "]");
            continue;
        }
        std::string_view type = c_type(l.dtypes[k]);
        append(fill, str("{\n", type, "* t = (", type, "*)(mem + ", shared, ");\n", type, " q[",
                         rounds, "];\n#pragma unroll\nfor (int c = 0; c < ", rounds,
                         "; ++c) {\nconst u32 j = threadIdx.x + c * ", threads, ", gx = x + j / ",
                         t, ", gy = y0 + j % ", t, ";\nif (gx < n && gy < m) q[c] = p", k, "[", at,
                         "];\n}\n#pragma unroll\nfor (int c = 0; c < ", rounds,
                         "; ++c) {\nconst u32 j = threadIdx.x + c * ", threads, ";\nt[j / ", t,
                         " * ", t + 1, " + j % ", t, "] = q[c];\n}\n}\n"));
        value[k] = str("((const ", type, "*)(mem + ", shared, "))[j % ", t, " * ", t + 1, " + j / ",
                       t, "]");
        shared += (int64_t{t} * (t + 1) * (bit_width(l.dtypes[k]) / 8) + 15) / 16 * 16;
    }
    ExprText body = body_text(job, l, [&](size_t k) { return value[k]; });
    Launch out =
        launch(job, "_tile", s,
               str("SHARED(mem);\ngrid_wait();\n", index.split("blockIdx.x"), "const u32 x = ", tx,
                   " * ", t, ", y0 = ", ty, " * ", t, ";\n", fill,
                   "sync();\ngrid_release();\n#pragma unroll 4\n", "for (int c = 0; c < ", rounds,
                   "; ++c) {\nconst u32 j = threadIdx.x + c * ", threads, ", gx = x + j % ", t,
                   ", gy = y0 + j / ", t, ";\nif (gx < n && gy < m) {\n", body.statements, "y[",
                   offset_text(s.offset_type, x, s.strides[0]), "] = ", body.result, ";\n}\n}\n"));
    int64_t blocks = 1;
    for (int64_t size : sizes) {
        blocks *= size;
    }
    out.grid = {blocks, 1, 1};
    out.shared = shared;
    return out;
}

Launch nibbles(const MapJob& job, const MapLoops& l) {
    Shape dense = l.out;
    int64_t step = 1;
    bool is_dense = true;
    bool even = l.out.back() == 1;
    for (size_t n = l.sizes.size(); n-- > 0;) {
        is_dense = is_dense && l.out[n] == step;
        step *= l.sizes[n];
        even = even && (n + 1 == l.sizes.size() || l.out[n] % 2 == 0);
    }
    require((is_dense || even) && job.out.view.offset % 2 == 0, ErrorCode::Unsupported,
            "a packed result has strides ", l.out, " and offset ", job.out.view.offset,
            ", expected rows that start at whole bytes");
    Shape sizes = l.sizes;
    sizes.back() += is_dense ? 0 : sizes.back() % 2;
    IndexText index(sizes, l.wide);
    int64_t n = 1;
    for (int64_t size : sizes) {
        n *= size;
    }
    Signature s = signature(job, l, index, n, 1);
    append(s.params, str(", ", index.type(), " inner"));
    if (l.wide) {
        s.args.i64(l.sizes.back());
    } else {
        s.args.i32(l.sizes.back());
    }
    std::vector<std::string> x = coordinates(l.sizes.size());
    ExprText body = body_text(job, l, [&](size_t k) {
        std::string at = offset_text(s.offset_type, x, s.strides[k + 1]);
        return is_packed(l.dtypes[k])
                   ? str("load_nibble<", c_type(l.dtypes[k]), ">(p", k, ", ", at, ")")
                   : str("p", k, "[", at, "]");
    });
    Launch out = launch(
        job, "_packed", s,
        str("grid_wait();\nconst ", index.type(), " t = (", index.type(), ")blockIdx.x * ", threads,
            "u + threadIdx.x;\nif (t * 2 >= n) return;\nu32 byte = 0;\n", s.offset_type,
            " at = 0;\nbool both = false;\n#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
            index.type(), " i = t * 2 + k;\nif (i < n) {\n", index.split("i"), "if (", x.back(),
            " < inner) {\nif (k == 0) at = ", offset_text(s.offset_type, x, s.strides[0]),
            ";\nboth = k == 1;\n", body.statements, "byte |= (u32)", body.result,
            ".bits << (4 * k);\n}\n}\n}\ngrid_release();\n"
            "y[at >> 1] = (u8)(both ? byte : (y[at >> 1] & 0xf0u) | byte);\n"));
    out.grid = {blocks_for((n + 1) / 2, threads), 1, 1};
    return out;
}

} // namespace ingot::kernels::map_text
