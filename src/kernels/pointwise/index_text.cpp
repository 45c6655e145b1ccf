// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/index_text.h"

#include "base/text.h"

#include <bit>

namespace ingot::kernels {

IndexText::IndexText(Shape sizes, bool wide, std::string_view name)
    : sizes_(std::move(sizes)), wide_(wide), name_(name) {
    if (sizes_.empty()) {
        sizes_.push_back(1);
    }
}

std::vector<IndexText::Number> IndexText::numbers() const {
    std::vector<Number> out;
    for (size_t n = 1; n < sizes_.size(); ++n) {
        std::string name = str(name_, n);
        auto d = static_cast<uint64_t>(sizes_[n]);
        out.push_back({name, d});
        if (!wide_) {
            int shift = 31 + static_cast<int>(std::bit_width(d - 1));
            out.push_back({name + "m", ((uint64_t{1} << shift) + d - 1) / d});
            out.push_back({name + "h", static_cast<uint64_t>(shift)});
        }
    }
    return out;
}

void IndexText::add(Signature& s) const {
    for (Number& n : numbers()) {
        wide_ ? s.u64(std::move(n.name), static_cast<int64_t>(n.value))
              : s.word(std::move(n.name), static_cast<uint32_t>(n.value));
    }
    if (rank() > 1) {
        s.set_divides();
    }
}

void IndexText::add_count(Signature& s, std::string name, int64_t n) const {
    wide_ ? s.u64(std::move(name), n) : s.u32(std::move(name), n);
}

std::string IndexText::split(std::string_view index, std::string_view x) const {
    std::string out;
    std::string rest(index);
    for (size_t n = sizes_.size(); n-- > 1;) {
        std::string d = str(name_, n);
        std::string q = str("q", x, n);
        append(out, str("const ", type(), " ", q, " = ",
                        wide_ ? str("(", rest, ") / ", d)
                              : str("quotient(", rest, ", ", d, "m, ", d, "h)"),
                        ", ", x, n, " = (", rest, ") - ", q, " * ", d, ";\n"));
        rest = q;
    }
    append(out, str("const ", type(), " ", x, "0 = ", rest, ";\n"));
    return out;
}

std::string offset_text(std::string_view type, std::span<const std::string> coordinates,
                        std::span<const std::string> strides) {
    std::string out;
    for (size_t n = 0; n < coordinates.size(); ++n) {
        if (strides[n] != "0") {
            append(out, str(out.empty() ? "" : " + ", "(", type, ")(", coordinates[n], ")",
                            strides[n] == "1" ? std::string() : str(" * ", strides[n])));
        }
    }
    return out.empty() ? str("(", type, ")0") : out;
}

int64_t span_of(const View& v) {
    int64_t span = 0;
    for (size_t n = 0; n < v.shape.size(); ++n) {
        if (v.shape[n] > 1) {
            span += (v.shape[n] - 1) * (v.strides[n] < 0 ? -v.strides[n] : v.strides[n]);
        }
    }
    return span;
}

} // namespace ingot::kernels
