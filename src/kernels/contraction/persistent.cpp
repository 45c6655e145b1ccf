// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/persistent.h"

#include "kernels/common/expr_text.h"
#include "kernels/common/slabs.h"

namespace ingot::kernels {

namespace {

/// Whether all strides along the axes are without effect.
bool stands(const Shape& strides, const Shape& sizes) {
    for (size_t i = 0; i < strides.size(); ++i) {
        if (strides[i] != 0 && sizes[i] > 1) {
            return false;
        }
    }
    return true;
}

bool is_8_bits(DType d) {
    return bit_width(d) == 8;
}

/// Whether stored view v varies by column only.
bool by_column(const Contraction& c, size_t v) {
    return stands(c.batch.stored[v], c.batch.sizes) && stands(c.rows.stored[v], c.rows.sizes);
}

/// Whether two columns of view v, the first one even, can be read at once.
bool in_twos(const Contraction& c, size_t v) {
    const Operand& o = c.epilogue.operands[v - 1];
    return c.columns.stored[v][0] == 1 && o.view.offset % 2 == 0 && bit_width(o.dtype) <= 32;
}

/// Whether panels of results may have this type.
bool is_stored(DType d) {
    return is_half(d) || is_8_bits(d) || d == DType::F32;
}

/// Whether view v has contiguous elements of such a type, in rows that TMA accepts.
bool in_rows(const Contraction& c, size_t v, const Operand& o) {
    const Shape& rows = c.rows.stored[v];
    const Shape& batch = c.batch.stored[v];
    auto walked = [](const Shape& strides, const Shape& sizes) {
        for (size_t i = 0; i < strides.size(); ++i) {
            if (strides[i] < 0 || (strides[i] == 0 && sizes[i] > 1)) {
                return false;
            }
        }
        return true;
    };
    int64_t chunk = chunk_elements(o.dtype);
    return is_stored(o.dtype) && c.columns.stored[v][0] == 1 && o.view.offset % chunk == 0 &&
           all_multiples(rows, chunk) && all_multiples(batch, chunk) &&
           walked(rows, c.rows.sizes) && walked(batch, c.batch.sizes);
}

/// Two elements f.v of the operand whose bits are `full`.
std::string full_text(DType d, std::string_view pack) {
    if (d == DType::F32) {
        return "const Two& f = full;\n";
    }
    std::string_view bits = is_float(d) ? ".bits" : "";
    std::string_view word = is_8_bits(d) ? "u8" : "u16";
    return str(pack, " f;\nf.v[0]", bits, " = (", is_float(d) ? word : c_type(d), ")full;\nf.v[1]",
               bits, " = (", is_float(d) ? word : c_type(d), ")(full >> ", bit_width(d), ");\n");
}

} // namespace

PersistentEpilogue persistent_epilogue(const Contraction& c) {
    PersistentEpilogue s;
    auto sums = static_cast<int64_t>(c.epilogue.sums);
    // TMA walks pairs of columns by all of its axes.
    bool walked = !c.paired() || (c.batches() == 1 && is_half(c.out.dtype));
    if (!walked || c.columns.rank() != sums || c.n() % (8 * sums) != 0 || !is_stored(c.a.dtype) ||
        !in_rows(c, 0, c.out)) {
        return s;
    }
    for (size_t i = 0; i < c.epilogue.operands.size(); ++i) {
        const Operand& o = c.epilogue.operands[i];
        bool read = by_column(c, i + 1) && (c.columns.stored[i + 1][0] == 0 || in_twos(c, i + 1));
        if (read) {
            continue;
        }
        bool same = bit_width(o.dtype) == bit_width(c.out.dtype);
        if (s.full >= 0 || !same || !in_rows(c, i + 1, o)) {
            return {};
        }
        s.full = static_cast<int>(i);
    }
    s.possible = true;
    return s;
}

std::string persistent_text(const Contraction& c, const PersistentEpilogue& s) {
    const Epilogue& f = c.epilogue;
    bool single = f.type == DType::F32;
    std::string fields;
    std::string reads;
    std::string before;
    std::string first;
    std::string second;
    for (size_t i = 0; i < f.operands.size(); ++i) {
        std::string type = str("Pack<", c_type(f.operands[i].dtype), ", 2>");
        if (static_cast<int>(i) == s.full) {
            before += full_text(f.operands[i].dtype, type);
            first += ", f.v[0]";
            second += ", f.v[1]";
            continue;
        }
        if (c.columns.stored[i + 1][0] == 0) { // not worth registers
            first += str(", x", i, "[0]");
            second += str(", x", i, "[0]");
            continue;
        }
        fields += str(type, " e", i, ";\n");
        reads += str("x.e", i, " = *(const ", type, "*)(x", i, " + column);\n");
        first += str(", x.e", i, ".v[0]");
        second += str(", x.e", i, ".v[1]");
    }
    bool two = f.sums == 2;
    std::string_view params = two ? "ACC a, ACC c, ACC b, ACC d" : "ACC a, ACC b";
    std::string_view left = two ? "a, c" : "a";
    std::string_view right = two ? "b, d" : "b";
    bool rounds = !single && (is_half(f.type) || ends_by_rounding(f.body));
    std::string pack = rounds ? str("pack_", ingot::name(f.type)) : "";
    bool apart = rounds || single;
    auto value = [&](std::string_view of, const std::string& more) {
        return apart              ? str("value_of(", of, more, ")")
               : is_float(f.type) ? str("(u32)value_of(", of, more, ").bits")
                                  : str("(u32)(u8)value_of(", of, more, ")");
    };
    std::string_view between = apart ? ", " : " | (";
    std::string_view end = apart ? "" : " << 8)";
    std::string results = str(value(left, first), between, value(right, second), end);
    return str(value_text(f, rounds), "struct Columns {\n", fields,
               "};\nDEVICE void read_columns(Columns& x, i64 column EPI_PARAMS) {\n(void)x, "
               "(void)column;\n",
               reads, "}\ntypedef ", single ? "Pack<float, 2>" : "u32",
               " Two;\nDEVICE Two epilogue_pair(", params,
               ", const Columns& x, Two full EPI_PARAMS) {\n(void)x, (void)full;\n", before,
               single ? str("Two both = {{", results, "}};\nreturn both;\n}\n")
                      : str("return ", pack, "(", results, ");\n}\n"));
}

} // namespace ingot::kernels
