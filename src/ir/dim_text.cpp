// SPDX-License-Identifier: Apache-2.0
// Parsing size expressions, and lists of sizes.
#include "base/checked.h"
#include "base/error.h"
#include "ir/dim.h"

namespace ingot {

namespace {

/// Appends a digit to v, away from zero, because INT64_MIN has no positive counterpart.
int64_t accumulate(int64_t v, int digit, bool negative) {
    auto scaled = checked_mul(v, int64_t{10});
    auto sum = scaled ? checked_add(*scaled, int64_t{negative ? -digit : digit}) : std::nullopt;
    require(sum.has_value(), ErrorCode::InvalidArgument,
            "a number in a size expression exceeds 63 bits");
    return *sum;
}

// Recursive descent over: sum = ['-'] product {('+'|'-') product}; product = atom {'*' atom};
// atom = integer | function '(' sum ',' sum ')' | name.
class DimParser {
public:
    explicit DimParser(std::string_view text) : text_(text) {}

    Dim parse() {
        Dim d = sum(0);
        require(at_ == text_.size(), ErrorCode::InvalidArgument, "size expression '", text_,
                "': unexpected '", text_.substr(at_, 1), "' at position ", at_);
        return d;
    }

private:
    bool take(char c) {
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }

    Dim sum(int depth) {
        require(depth < 64, ErrorCode::InvalidArgument, "size expression is nested too deep");
        Dim total = product_of(depth, take('-'));
        while (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
            bool minus = text_[at_++] == '-';
            total = total + product_of(depth, minus);
        }
        return total;
    }

    Dim product_of(int depth, bool negative) {
        Dim p = atom(depth, negative);
        while (take('*')) {
            p = p * atom(depth, false);
        }
        return p;
    }

    Dim atom(int depth, bool negative) {
        if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
            return number(negative);
        }
        return negative ? Dim(-1) * named(depth) : named(depth);
    }

    Dim number(bool negative) {
        std::string_view word = take_word();
        int64_t v = 0;
        for (char c : word) {
            require(c >= '0' && c <= '9', ErrorCode::InvalidArgument, "size expression '", text_,
                    "': '", word, "' is not a number");
            v = accumulate(v, c - '0', negative);
        }
        return v;
    }

    std::string_view take_word() {
        size_t start = at_;
        while (at_ < text_.size() &&
               std::string_view("+-*(),").find(text_[at_]) == std::string_view::npos) {
            ++at_;
        }
        return text_.substr(start, at_ - start);
    }

    /// A name, or a function of two expressions.
    Dim named(int depth) {
        size_t start = at_;
        std::string_view word = take_word();
        require(!word.empty(), ErrorCode::InvalidArgument, "size expression '", text_,
                "': expected a number or a name at position ", start);
        if (!take('(')) {
            return Dim::symbol(word);
        }
        Dim a = sum(depth + 1);
        require(take(','), ErrorCode::InvalidArgument, "size expression '", text_,
                "': expected ','");
        Dim b = sum(depth + 1);
        require(take(')'), ErrorCode::InvalidArgument, "size expression '", text_,
                "': expected ')'");
        if (word == "floordiv") {
            return floor_div(a, b);
        }
        require(word == "min" || word == "max", ErrorCode::InvalidArgument, "size expression '",
                text_, "': unknown function '", word, "', expected floordiv, min or max");
        return word == "min" ? min(a, b) : max(a, b);
    }

    std::string_view text_;
    size_t at_ = 0;
};

} // namespace

Dim parse_dim(std::string_view text) {
    return DimParser(text).parse();
}

Dim product(const Dims& dims) {
    Dim p = 1;
    for (const Dim& d : dims) {
        p = p * d;
    }
    return p;
}

std::optional<Dim> broadcast(const Dim& a, const Dim& b) {
    if (a == b || b.is_const(1)) {
        return a;
    }
    if (a.is_const(1)) {
        return b;
    }
    if (a.is_const() && b.is_const()) {
        return std::nullopt;
    }
    if (a.is_const()) {
        return a;
    }
    if (b.is_const()) {
        return b;
    }
    return max(a, b);
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
    const Dims& longer = a.size() >= b.size() ? a : b;
    const Dims& shorter = a.size() >= b.size() ? b : a;
    Dims out = longer;
    size_t shift = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
        auto d = broadcast(longer[shift + i], shorter[i]);
        if (!d) {
            return std::nullopt;
        }
        out[shift + i] = *d;
    }
    return out;
}

Shape eval(const Dims& dims, const Symbols& symbols) {
    Shape out;
    out.reserve(dims.size());
    for (const Dim& d : dims) {
        out.push_back(d.eval(symbols));
    }
    return out;
}

std::optional<Shape> as_const(const Dims& dims) {
    Shape out;
    for (const Dim& d : dims) {
        if (!d.is_const()) {
            return std::nullopt;
        }
        out.push_back(d.value());
    }
    return out;
}

Dims to_dims(const Shape& shape) {
    return {shape.begin(), shape.end()};
}

} // namespace ingot
