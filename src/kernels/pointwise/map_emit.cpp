// SPDX-License-Identifier: Apache-2.0
// The text of pointwise kernels: one 16-byte vector per thread where operands allow it, tiles
// through shared memory for transposed operands, pairs of elements for packed results.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/pointwise/map_job.h"

#include <algorithm>

namespace ingot::kernels::map_text {

namespace {

constexpr int threads = 256;

std::string pointer_type(DType t) {
    return is_packed(t) ? "u8" : std::string(c_type(t));
}

/// Parameters, and the names of the strides among them: the result's first, then those of inputs
/// in use.
struct MapSignature {
    explicit MapSignature(bool wide) : parameters(wide) {}
    Signature parameters;
    std::vector<std::vector<std::string>> strides;
    std::string_view offset_type() const { return parameters.offset_type(); }
};

/// An innermost stride of 0 or 1 becomes a literal; `scale` is the number of elements per step of
/// the innermost coordinate.
MapSignature signature(const MapJob& job, const MapLoops& l, const IndexText& index, int64_t n,
                       int64_t scale) {
    MapSignature s(l.wide);
    s.parameters.pointer(pointer_type(job.out.dtype) + "*", "y", job.out);
    for (size_t k = 0; k < l.in.size(); ++k) {
        s.parameters.pointer(str("const ", pointer_type(l.dtypes[k]), "*"), str("p", k),
                             *l.operands[k]);
    }
    index.add_count(s.parameters, "n", n);
    index.add(s.parameters);
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
            s.parameters.offset(names.back(), strides[a]);
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
    ExprText t = expr_text(job.body, inputs, "v",
                           narrow_result(job.out.dtype) ? Functions::Fast : Functions::Precise);
    t.statements = loads + t.statements;
    t.result = str("narrow<", c_type(job.out.dtype), ">((", compute_c_type(job.out.dtype), ")(",
                   t.result, "))");
    return t;
}

/// `value`: the expression in `statements`.
Launch launch(const MapJob& job, std::string_view form, MapSignature s, const ExprText& value,
              std::string statements) {
    Launch out = std::move(s.parameters).launch(str(job.entry, form), std::move(statements));
    out.program.body = device_files(value);
    return out;
}

/// An element of the input in use k.
std::string element_text(const MapLoops& l, size_t k, const std::string& at) {
    return is_packed(l.dtypes[k])
               ? str("load_nibble<", c_type(l.dtypes[k]), ">(p", k, ", ", at, ")")
               : str("p", k, "[", at, "]");
}

int64_t product(const Shape& sizes) {
    int64_t n = 1;
    for (int64_t size : sizes) {
        n *= size;
    }
    return n;
}

/// `whole` for a full vector, else `one` for each of its elements v.
std::string guarded(bool tail, int vector, const std::string& whole, const std::string& one) {
    return !tail ? str(whole, ";\n")
                 : str("if (i + 1 < n || last == ", vector, ") ", whole,
                       ";\nelse {\n#pragma unroll\nfor (int v = 0; v < ", vector,
                       "; ++v) if (v < last) ", one, ";\n}\n");
}

bool many(const MapLoops& l, size_t k) {
    return l.vector > 1 && l.inner(k) == 1;
}

/// Loads the elements of one vector of the input in use k into q`k`[e].
std::string load_text(const MapLoops& l, size_t k, const std::string& at, bool tail) {
    std::string_view type = c_type(l.dtypes[k]);
    std::string q = str("q", k, "[e]");
    if (!many(l, k)) {
        return str(q, "[0] = ", element_text(l, k, at), ";\n");
    }
    std::string whole =
        is_packed(l.dtypes[k])
            ? str("load_nibbles<", type, ", ", l.vector, ">(", q, ", p", k, ", ", at, ")")
            : str("load_pack<", type, ", ", l.vector, ">(", q, ", p", k, " + (", at, "))");
    return guarded(tail, l.vector, whole, str(q, "[v] = ", element_text(l, k, at + " + v")));
}

/// The coordinates of a tiled kernel: a block is a tile of `side` by `side` elements.
struct TileLoops {
    int side = 32;
    // blocks: other axes, then tiles along the crossed axis and along the innermost one
    Shape sizes;
    std::vector<std::string> x; // coordinates of an element
    std::string begin;          // declares x and y0, where the tile begins
};

TileLoops tile_loops(const MapLoops& l, size_t along) {
    TileLoops t;
    int widest = 1;
    for (size_t k = 0; k < l.in.size(); ++k) {
        bool across = l.inner(k) != 0 && l.inner(k) != 1;
        widest = across ? std::max(widest, bit_width(l.dtypes[k]) / 8) : widest;
    }
    t.side = widest <= 2 ? 64 : 32;
    auto last = l.sizes.size() - 1;
    t.x.resize(l.sizes.size());
    for (size_t n = 0; n < last; ++n) {
        if (n != along) {
            t.x[n] = str("x", t.sizes.size());
            t.sizes.push_back(l.sizes[n]);
        }
    }
    t.x[along] = "gy";
    t.x[last] = "gx";
    t.begin = str("const u32 x = x", t.sizes.size() + 1, " * ", t.side, ", y0 = x", t.sizes.size(),
                  " * ", t.side, ";\n");
    t.sizes.push_back(blocks_for(l.sizes[along], t.side));
    t.sizes.push_back(blocks_for(l.sizes[last], t.side));
    return t;
}

/// Reads a tile of the input in use k along its own innermost axis into shared memory at `place`.
std::string fill_text(const MapLoops& l, size_t k, int side, int64_t place, const std::string& at) {
    std::string_view type = c_type(l.dtypes[k]);
    std::string loop = str("#pragma unroll\nfor (int c = 0; c < ", side * side / threads,
                           "; ++c) {\nconst u32 j = threadIdx.x + c * ", threads);
    return str("{\n", type, "* t = (", type, "*)(mem + ", place, ");\n", type, " q[",
               side * side / threads, "];\n", loop, ", gx = x + j / ", side, ", gy = y0 + j % ",
               side, ";\nif (gx < n && gy < m) q[c] = p", k, "[", at, "];\n}\n", loop, ";\nt[j / ",
               side, " * ", side + 1, " + j % ", side, "] = q[c];\n}\n}\n");
}

} // namespace

Launch vectors(const MapJob& job, const MapLoops& l) {
    int v = l.vector;
    Shape sizes = l.sizes;
    sizes.back() = (sizes.back() + v - 1) / v;
    IndexText index(sizes, l.wide);
    int64_t n = product(sizes);
    MapSignature s = signature(job, l, index, n, v);
    bool tail = l.sizes.size() == 1 && v > 1; // the last vector may be shorter
    if (tail) {
        s.parameters.i32("last", l.count - (n - 1) * v);
    }
    std::vector<std::string> x = coordinates(l.sizes.size());
    std::string declare;
    std::string load;
    for (size_t k = 0; k < l.in.size(); ++k) {
        append(declare,
               str(c_type(l.dtypes[k]), " q", k, "[", l.unroll, "][", many(l, k) ? v : 1, "];\n"));
        append(load, load_text(l, k, offset_text(s.offset_type(), x, s.strides[k + 1]), tail));
    }
    ExprText body = body_text(
        job, l, [&](size_t k) { return str("q", k, "[e][", many(l, k) ? "v" : "0", "]"); });
    std::string type(c_type(job.out.dtype));
    std::string store = v == 1
                            ? str("y[o[e]] = r[0];\n")
                            : guarded(tail, v, str("store_pack<", type, ", ", v, ">(y + o[e], r)"),
                                      "y[o[e] + v] = r[v]");
    std::string each =
        str("#pragma unroll\nfor (int e = 0; e < ", l.unroll, "; ++e) {\nconst ", index.type(),
            " i = (", index.type(), ")", block_number, " * ", threads * l.unroll, "u + (u32)e * ",
            threads, "u + threadIdx.x;\nif (i < n) {\n");
    std::string place = offset_text(s.offset_type(), x, s.strides[0]);
    std::string text =
        str("grid_wait();\n", declare, s.offset_type(), " o[", l.unroll, "];\n", each,
            index.split("i"), "o[e] = ", place, ";\n", load, "}\n}\nend_main_loop();\n", each, type,
            " r[", v, "];\n#pragma unroll\nfor (int v = 0; v < ", v, "; ++v) {\n", body.statements,
            "r[v] = ", body.result, ";\n}\n", store, "}\n}\n");
    Launch out = launch(job, "", std::move(s), body, text);
    out.grid = {blocks_for(n, int64_t{threads} * l.unroll), 1, 1};
    return out;
}

Launch tiles(const MapJob& job, const MapLoops& l, int axis) {
    auto along = static_cast<size_t>(axis);
    TileLoops t = tile_loops(l, along);
    IndexText index(t.sizes, false);
    MapSignature s = signature(job, l, index, l.sizes.back(), 1);
    index.add_count(s.parameters, "m", l.sizes[along]);
    std::string fill;
    int64_t shared = 0;
    std::vector<std::string> value(l.in.size());
    for (size_t k = 0; k < l.in.size(); ++k) {
        std::string at = offset_text(s.offset_type(), t.x, s.strides[k + 1]);
        if (l.inner(k) == 0 || l.inner(k) == 1) {
            value[k] = element_text(l, k, at);
            continue;
        }
        append(fill, fill_text(l, k, t.side, shared, at));
        value[k] = str("((const ", c_type(l.dtypes[k]), "*)(mem + ", shared, "))[j % ", t.side,
                       " * ", t.side + 1, " + j / ", t.side, "]");
        shared += (int64_t{t.side} * (t.side + 1) * (bit_width(l.dtypes[k]) / 8) + 15) / 16 * 16;
    }
    ExprText body = body_text(job, l, [&](size_t k) { return value[k]; });
    std::string place = offset_text(s.offset_type(), t.x, s.strides[0]);
    std::string text =
        str("SHARED(mem);\ngrid_wait();\n", index.split(block_number), t.begin, fill,
            "sync();\nend_main_loop();\n#pragma unroll 4\nfor (int c = 0; c < ",
            t.side * t.side / threads, "; ++c) {\nconst u32 j = threadIdx.x + c * ", threads,
            ", gx = x + j % ", t.side, ", gy = y0 + j / ", t.side, ";\nif (gx < n && gy < m) {\n",
            body.statements, "y[", place, "] = ", body.result, ";\n}\n}\n");
    Launch out = launch(job, "_tile", std::move(s), body, text);
    out.grid = {product(t.sizes), 1, 1};
    out.shared = shared;
    return out;
}

Launch nibbles(const MapJob& job, const MapLoops& l) {
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
    int64_t n = product(sizes);
    MapSignature s = signature(job, l, index, n, 1);
    index.add_count(s.parameters, "inner", l.sizes.back());
    std::vector<std::string> x = coordinates(l.sizes.size());
    ExprText body = body_text(job, l, [&](size_t k) {
        std::string at = offset_text(s.offset_type(), x, s.strides[k + 1]);
        return element_text(l, k, at);
    });
    Launch out = launch(
        job, "_packed", s, body,
        str("grid_wait();\nconst ", index.type(), " t = (", index.type(), ")", block_number, " * ",
            threads, "u + threadIdx.x;\nif (t * 2 >= n) return;\nu32 byte = 0;\n", s.offset_type(),
            " at = 0;\nbool both = false;\n#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
            index.type(), " i = t * 2 + k;\nif (i < n) {\n", index.split("i"), "if (", x.back(),
            " < inner) {\nif (k == 0) at = ", offset_text(s.offset_type(), x, s.strides[0]),
            ";\nboth = k == 1;\n", body.statements, "byte |= (u32)", body.result,
            ".bits << (4 * k);\n}\n}\n}\nend_main_loop();\n"
            "y[at >> 1] = (u8)(both ? byte : (y[at >> 1] & 0xf0u) | byte);\n"));
    out.grid = {blocks_for((n + 1) / 2, threads), 1, 1};
    return out;
}

} // namespace ingot::kernels::map_text
