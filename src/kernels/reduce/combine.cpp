// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/combine.h"

#include "base/text.h"

namespace ingot::kernels {

int combine_index(std::string_view fn) {
    return fn == "sum" ? 0 : fn == "prod" ? 1 : fn == "min" ? 2 : 3;
}

std::string_view combine_type(DType t) {
    if (is_float(t)) {
        return t == DType::F64 ? "double" : "float";
    }
    if (t == DType::I64 || t == DType::U64) {
        return t == DType::I64 ? "i64" : "u64";
    }
    return is_signed(t) ? "i32" : "u32";
}

std::string combine_identity(std::string_view fn, DType t) {
    std::string_view type = combine_type(t);
    if (fn == "sum" || fn == "prod") {
        return str("((", type, ")", fn == "sum" ? 0 : 1, ")");
    }
    bool largest = fn == "min";
    if (is_float(t)) {
        return str("((", type, ")", largest ? "" : "-", "ingot_inf())");
    }
    int bits = t == DType::Bool ? 1 : bit_width(t);
    uint64_t ones = UINT64_MAX >> (64 - bits);
    if (!is_signed(t)) {
        return str("((", type, ")", largest ? ones : 0, "ull)");
    }
    uint64_t top = ones >> 1;
    return largest ? str("((", type, ")", top, "ull)") : str("(-(", type, ")", top, "ull - 1)");
}

} // namespace ingot::kernels
