// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/store_text.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"

#include <array>

namespace ingot::kernels {

namespace {

constexpr int vector_size = 8;

const Operand& stored_operand(const Contraction& c, size_t v) {
    return v == 0 ? c.out : c.epilogue.operands[v - 1];
}

/// The largest number of results that a thread stores at a time.
int64_t most_results(const Contraction& c) {
    return c.paired() ? vector_size / 2 : vector_size;
}

/// The column axis along which results are stored.
size_t result_axis(const Contraction& c) {
    return c.columns.sizes.size() - c.epilogue.sums;
}

/// The distance to the next result in view v.
int64_t result_step(const Contraction& c, size_t v) {
    return c.columns.stored[v][result_axis(c)];
}

/// Whether view v has adjacent columns, in aligned vectors.
bool has_vectors(const Contraction& c, size_t v) {
    int64_t n = most_results(c);
    Shape outer = c.columns.stored[v];
    outer.resize(result_axis(c));
    const Operand& o = stored_operand(c, v);
    return result_step(c, v) == 1 && o.view.offset % n == 0 && bit_width(o.dtype) <= 32 &&
           all_multiples(outer, n) && all_multiples(c.rows.stored[v], n) &&
           all_multiples(c.batch.stored[v], n);
}

} // namespace

bool vector_columns(const Contraction& c) {
    return c.columns.sizes[result_axis(c)] % most_results(c) == 0 && has_vectors(c, 0);
}

bool in_narrow_vectors(const Contraction& c, size_t operand) {
    return bit_width(c.epilogue.operands[operand].dtype) == 16 &&
           c.columns.stored[operand + 1].back() != 0 && has_vectors(c, operand + 1);
}

int store_width(const Contraction& c) {
    return vector_columns(c) ? vector_size : least_width(c);
}

int least_width(const Contraction& c) {
    return static_cast<int>(c.epilogue.sums);
}

bool stands(const Contraction& c, size_t i) {
    auto still = [](const Shape& strides) {
        return std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
    };
    return i >= c.epilogue.addends && still(c.rows.stored[i + 1]) && still(c.batch.stored[i + 1]);
}

bool stores_moments(const Contraction& c, int bn) {
    constexpr int64_t chunk = 32; // moment_chunk of chunk_moments.cuh
    const View& out = c.out.view;
    const View& m = c.moments->view;
    bool fits = bn % chunk == 0 && !c.paired() && store_width(c) == vector_size &&
                bit_width(c.out.dtype) == 16 && out.shape.back() % chunk == 0 &&
                m.strides.back() == 1 && m.strides.rbegin()[1] == 2 && m.offset % 2 == 0;
    // A row's first moments are at a sixteenth of its own offset.
    for (size_t i = 0; i + 1 < out.shape.size(); ++i) {
        fits = fits && (out.shape[i] == 1 || out.strides[i] * 2 == m.strides[i] * chunk);
    }
    return fits;
}

namespace {

/// The part of deliver that stores the moments of the rounded results: those of the chunk that
/// contains offset `at`.
constexpr std::string_view store_moments =
    "float w[VEC];\n#pragma unroll\nfor (int k = 0; k < VEC; k++) w[k] = widen(r.v[k]);\n"
    "Moments m = chunk_moments(w);\nif ((threadIdx.x & 3) == 0) {\n"
    "Pack<float, 2> both = {{m.mean, m.squares}};\n"
    "*(Pack<float, 2>*)(moments + at / moment_chunk * 2) = both;\n}\n";

/// struct Extras, the epilogue's operands for VEC columns; void read_extras(extras, offsets, ...);
/// void deliver(sums, extras, offsets, ...), and a deliver that does both; for kernels that are
/// EARLY, void prefetch_extras(offsets, ...), void read_once(extras, offsets, ...) for operands
/// that stand, read_by_row for the others, and void add_standing(extras, those that stand).
std::string deliver_text(const Contraction& c, int vector, bool staged) {
    std::string fields;
    std::string reads;
    std::string once;
    std::string by_row;
    std::string standing;
    std::string unpacks;
    std::string elements;
    std::string prefetches;
    auto add_read = [&](size_t i, const std::string& text) {
        bool still = stands(c, i) && c.residual != i; // rows that are normalised have their own
        append(reads, text);
        append(still ? once : by_row, text);
        append(standing, still ? str("x.e", i, " = standing.e", i, ";\n") : std::string());
    };
    std::string_view count = c.paired() ? "VEC / 2" : "VEC";
    std::string_view sums = c.paired() ? "v[2 * k], v[2 * k + 1]" : "v[k]";
    for (size_t i = 0; i < c.epilogue.operands.size(); ++i) {
        std::string_view type = c_type(c.epilogue.operands[i].dtype);
        append(prefetches, str("if (x", i, " != 0) prefetch_l2(x", i, " + at[", i + 1, "]);\n"));
        if (vector == least_width(c) || result_step(c, i + 1) == 0) {
            append(fields, str(type, " e", i, ";\n"));
            add_read(i, str("x.e", i, " = x", i, "[at[", i + 1, "]];\n"));
            append(elements, str(", x.e", i));
            continue;
        }
        append(fields, str("Loaded<", type, ", ", count, "> e", i, ";\n"));
        append(unpacks,
               str("const Pack<", type, ", ", count, ">& p", i, " = unpacked(x.e", i, ");\n"));
        append(elements, str(", p", i, ".v[k]"));
        if (has_vectors(c, i + 1)) {
            bool optional = staged && i < c.epilogue.addends;
            add_read(i, str(optional ? str("x.e", i, " = {};\nif (x", i, " != 0) ") : std::string(),
                            "x.e", i, " = *(const Loaded<", type, ", ", count, ">*)(x", i, " + at[",
                            i + 1, "]);\n"));
        } else {
            add_read(i, str("Pack<", type, ", ", count, "> p", i,
                            ";\n#pragma unroll\nfor (int k = 0; k < ", count, "; k++) p", i,
                            ".v[k] = x", i, "[at[", i + 1, "] + k * g.cn[", i + 1, "][RN - ",
                            c.epilogue.sums, "]];\nx.e", i, " = loaded(p", i, ");\n"));
        }
    }
    return str("struct Extras {\n", fields,
               "};\nDEVICE void read_extras(Extras& x, const i64* at, const Geometry& g "
               "EPI_PARAMS) {\n(void)x, (void)at, (void)g;\n",
               reads,
               "}\nDEVICE void deliver(const ACC* v, const Extras& x, i64 at, const "
               "Geometry& g, OUT* out EPI_PARAMS) {\n(void)x, (void)g;\n",
               unpacks, "Pack<OUT, ", count, "> r;\n#pragma unroll\nfor (int k = 0; k < ", count,
               "; k++) r.v[k] = value_of(", sums, elements, ");\n*(Pack<OUT, ", count,
               ">*)(out + at) = r;\n", c.moments ? store_moments : "",
               "}\n"
               "DEVICE void deliver(const ACC* v, const i64* at, const Geometry& g, OUT* out "
               "EPI_PARAMS) {\nExtras x;\nread_extras(x, at, g EPI_PASS);\n"
               "deliver(v, x, at[0], g, out EPI_PASS);\n}\n#if EARLY\nDEVICE void "
               "prefetch_extras(const i64* at EPI_PARAMS) {\n(void)at;\n",
               prefetches,
               "}\nDEVICE void read_once(Extras& x, const i64* at, const Geometry& g "
               "EPI_PARAMS) {\n(void)x, (void)at, (void)g;\n",
               once,
               "}\nDEVICE void read_by_row(Extras& x, const i64* at, const Geometry& g "
               "EPI_PARAMS) {\n(void)x, (void)at, (void)g;\n",
               by_row,
               "}\nDEVICE void add_standing(Extras& x, const Extras& standing) {\n(void)x, "
               "(void)standing;\n",
               standing, "}\n#endif\n");
}

/// For an epilogue with two operands that do not stand, such as a bias and a residual: both, if
/// vector copies to shared memory are possible.
std::vector<size_t> staged_operands(const Contraction& c, int vector) {
    std::vector<size_t> staged;
    bool all = vector == vector_size && !c.paired();
    for (size_t i = 0; i < c.epilogue.operands.size(); ++i) {
        all = all && in_narrow_vectors(c, i);
        if (!stands(c, i)) {
            staged.push_back(i);
        }
    }
    return all && staged.size() == 2 ? staged : std::vector<size_t>();
}

/// void fetch_extras(slot, bytes between operands, offsets, ...): starts the copies for
/// read_extras; void take_extras(extras, slot, bytes between operands); void read_standing(extras,
/// offsets, ...): those that stand.
std::string staged_text(const Contraction& c, std::span<const size_t> staged) {
    std::string starts;
    std::string reads;
    std::string standing;
    for (size_t i = 0; i < c.epilogue.operands.size(); ++i) {
        if (std::find(staged.begin(), staged.end(), i) == staged.end()) {
            append(standing,
                   str("x.e", i, " = *(const Loaded<", c_type(c.epilogue.operands[i].dtype),
                       ", VEC>*)(x", i, " + at[", i + 1, "]);\n"));
        }
    }
    for (size_t slot = 0; slot < staged.size(); ++slot) {
        size_t i = staged[slot];
        std::string_view type = c_type(c.epilogue.operands[i].dtype);
        bool optional = i < c.epilogue.addends;
        std::string from = str("x", i, " + at[", i + 1, "]");
        append(starts,
               optional ? str("cp_async16(slot + ", slot, " * step, x", i, " != 0 ? (const void*)(",
                              from, ") : out, x", i, " != 0 ? 16 : 0);\n")
                        : str("cp_async16(slot + ", slot, " * step, ", from, ", 16);\n"));
        append(reads,
               str("x.e", i, " = *(const Loaded<", type, ", VEC>*)(slot + ", slot, " * step);\n"));
    }
    return str(
        "constexpr i64 nowhere = (i64)1 << 62;\nDEVICE void fetch_extras(u32 slot, int step, "
        "const i64* at, const OUT* out EPI_PARAMS) {\n",
        starts, "}\nDEVICE void take_extras(Extras& x, const u8* slot, int step) {\n", reads,
        "}\nDEVICE void read_standing(Extras& x, const i64* at EPI_PARAMS) {\n(void)x, (void)at;\n",
        standing, "}\n");
}

/// void norm_extras(extras, mean, factor): normalises the residual's elements.
std::string residual_text(const Contraction& c) {
    size_t i = *c.residual;
    std::string_view type = c_type(c.epilogue.operands[i].dtype);
    return str("DEVICE void norm_extras(Extras& x, float mean, float factor) {\nPack<", type,
               ", VEC> p = unpacked(x.e", i,
               ");\n#pragma unroll\nfor (int k = 0; k < VEC; k++) p.v[k] = narrow<", type,
               ">((widen(p.v[k]) - mean) * factor);\nx.e", i, " = loaded(p);\n}\n");
}

/// Adds what follows the operands among the parameters.
void add_head_parameters(std::string& params, std::string& pass, const HeadStore& heads) {
    for (size_t i = 1; i < heads.parts.size(); ++i) {
        params += str(", OUT* __restrict__ y", i);
        pass += str(", y", i);
    }
    params += ", const Heads heads";
    pass += ", heads";
}

std::string head_defines(const Contraction& c) {
    int turned = 0;
    std::string picks;
    for (size_t i = 0; i < c.heads->parts.size(); ++i) {
        turned |= c.heads->parts[i].turned ? 1 << i : 0;
        if (i > 0) {
            append(picks,
                   str(" if (x.part == ", i, ") to = y", i, ", pair = heads.pair[", i, "];"));
        }
    }
    return str("#define PARTS ", c.heads->parts.size(), "\n#define TURNED ", turned,
               "\n#define ANGLE ", c_type(c.epilogue.operands[0].dtype), "\n#define PICK_PART",
               picks, "\n");
}

void add_heads(Args& args, const HeadStore& heads) {
    struct Heads {
        int64_t first[4], step[4], pair[4];
    } h{};
    for (size_t i = 0; i < heads.parts.size(); ++i) {
        const HeadStore::Part& part = heads.parts[i];
        if (i > 0) {
            args.pointer(part.out);
        }
        h.first[i] = part.first;
        h.step[i] = part.step;
        h.pair[i] = part.pair;
    }
    args.value(h);
}

} // namespace

StoreText store_text(const Contraction& c, int vector) {
    const Epilogue& f = c.epilogue;
    std::vector<size_t> staged = c.heads ? std::vector<size_t>() : staged_operands(c, vector);
    StoreText t;
    t.staged = !staged.empty();
    t.paired = c.paired();
    t.defines = str("#define ACC ", sum_c_type(c.a.dtype, c.b.dtype, f.sum_type), "\n#define OUT ",
                    c_type(f.type), "\n#define RB ", c.batch.rank(), "\n#define RM ", c.rows.rank(),
                    "\n#define RN ", c.columns.rank(), "\n#define RK ", c.depth.rank(),
                    "\n#define NV ", c.rows.stored.size(), "\n#define VEC ", vector,
                    "\n#define STAGED ", staged.size(), "\n");
    std::string params;
    std::string pass;
    std::string opaque;
    for (size_t i = 0; i < f.operands.size(); ++i) {
        params += str(", const ", c_type(f.operands[i].dtype), "* __restrict__ x", i);
        pass += str(", x", i);
        opaque += str(" opaque(x", i, ");");
    }
    if (c.moments) {
        t.defines += "#define MOMENTS 1\n";
        params += ", float* __restrict__ moments";
        pass += ", moments";
    }
    if (c.heads) {
        t.defines += head_defines(c);
        add_head_parameters(params, pass, *c.heads);
    }
    t.defines += str("#define EPI_PARAMS ", params, "\n#define EPI_PASS ", pass,
                     "\n#define EPI_OPAQUE", opaque, "\n");
    if (c.heads) {
        t.functions = device_file("store_heads");
        return t;
    }
    t.functions = value_text(f) + deliver_text(c, vector, t.staged) +
                  (t.staged ? staged_text(c, staged) : "");
    if (c.residual) {
        t.functions += residual_text(c);
    }
    return t;
}

std::string StoreText::store_tile() const {
    return str(device_file("store_tile"), paired ? device_file("pair_store") : "");
}

namespace {

template <size_t N>
void add_array(Args& args, std::span<const int64_t> words) {
    std::array<int64_t, N> a{};
    std::copy(words.begin(), words.end(), a.begin());
    args.value(a);
}

} // namespace

void add_words(Args& args, std::span<const int64_t> words) {
    if (words.size() <= 32) {
        add_array<32>(args, words);
    } else if (words.size() <= 64) {
        add_array<64>(args, words);
    } else if (words.size() <= 128) {
        add_array<128>(args, words);
    } else {
        require(words.size() <= 384, ErrorCode::Unsupported,
                "a contraction's operands have too many axes that cannot be merged");
        add_array<384>(args, words);
    }
}

void add_geometry(Args& args, const Contraction& c) {
    std::vector<int64_t> w = {c.batches(), c.m(), c.n(), c.k()};
    auto add = [&w](const Shape& s) { w.insert(w.end(), s.begin(), s.end()); };
    for (const Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        add(l->sizes);
    }
    for (const Shape* s :
         {&c.batch.a, &c.rows.a, &c.depth.a, &c.batch.b, &c.columns.b, &c.depth.b}) {
        add(*s);
    }
    for (const Loops* l : {&c.batch, &c.rows, &c.columns}) {
        for (const Shape& s : l->stored) {
            add(s);
        }
    }
    add_words(args, w);
}

void add_operands(Args& args, const Contraction& c) {
    for (const Operand& o : c.epilogue.operands) {
        o.buffer == missing_operand ? args.null() : args.pointer(o);
    }
    if (c.moments) {
        args.pointer(*c.moments);
    }
    if (c.heads) {
        add_heads(args, *c.heads);
    }
}

} // namespace ingot::kernels
