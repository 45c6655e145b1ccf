// SPDX-License-Identifier: Apache-2.0
// Dims against integers: whatever the canonical form does, values stay those of the arithmetic.
#include "base/error.h"
#include "ir/dim.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot {
namespace {

int64_t floored(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q * b > a ? q - 1 : q;
}

TEST(Dim, FloorDivisionRoundsDownForEverySign) {
    Dim a = Dim::symbol("~a");
    Dim b = Dim::symbol("~b");
    for (int64_t x = -9; x <= 9; ++x) {
        for (int64_t y : {-4, -3, -1, 1, 2, 5}) {
            int64_t expected = y < 0 ? floored(-x, -y) : floored(x, y);
            EXPECT_EQ(floor_div(Dim(x), Dim(y)), Dim(expected)) << x << " / " << y;
            EXPECT_EQ(floor_div(a, b).eval({{"~a", x}, {"~b", y}}), expected) << x << " / " << y;
            if (y > 0) {
                EXPECT_EQ(ceil_div(a, Dim(y)).eval({{"~a", x}}), -floored(-x, y));
                EXPECT_EQ(mod(a, Dim(y)).eval({{"~a", x}}), x - y * floored(x, y));
            }
        }
    }
}

TEST(Dim, DivisionByZeroIsAnError) {
    try {
        floor_div(Dim::symbol("a"), Dim::symbol("b")).eval({{"a", 7}, {"b", 0}});
        ADD_FAILURE() << "no error";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "size arithmetic divides 7 by zero");
    }
}

/// A random expression and its value, computed beside it.
struct Sample {
    Dim dim;
    int64_t value = 0;
};

Sample sample(std::mt19937& random, const Symbols& symbols, int depth) {
    if (depth == 0 || random() % 5 == 0) {
        if (random() % 2 == 0) {
            int64_t v = static_cast<int64_t>(random() % 9) - 4;
            return {Dim(v), v};
        }
        auto it = std::next(symbols.begin(), static_cast<ptrdiff_t>(random() % symbols.size()));
        return {Dim::symbol(it->first), it->second};
    }
    Sample a = sample(random, symbols, depth - 1);
    Sample b = sample(random, symbols, depth - 1);
    switch (random() % 6) {
    case 0:
        return {a.dim + b.dim, a.value + b.value};
    case 1:
        return {a.dim - b.dim, a.value - b.value};
    case 2:
        return {a.dim * b.dim, a.value * b.value};
    case 3:
        return {min(a.dim, b.dim), std::min(a.value, b.value)};
    case 4:
        return {max(a.dim, b.dim), std::max(a.value, b.value)};
    default: {
        auto by = static_cast<int64_t>(random() % 5 + 1);
        return {floor_div(a.dim, by), floored(a.value, by)};
    }
    }
}

TEST(Dim, ExpressionsHaveTheValueOfTheirArithmetic) {
    for (unsigned seed = 0; seed < 4000; ++seed) {
        std::mt19937 random(seed);
        Symbols symbols;
        for (const char* name : {"n", "m", "~k"}) {
            symbols[name] = static_cast<int64_t>(random() % 12) - (name[0] == '~' ? 6 : 0);
        }
        Sample s = sample(random, symbols, 4);
        EXPECT_EQ(s.dim.eval(symbols), s.value) << "seed " << seed << ": " << to_text(s.dim);
        EXPECT_EQ(parse_dim(to_text(s.dim)), s.dim) << "seed " << seed << ": " << to_text(s.dim);
        Bounds bounds;
        for (const auto& [name, value] : symbols) {
            bounds[name] = {value - 2, value + 3};
        }
        Interval in = s.dim.bounds(bounds);
        EXPECT_LE(in.low, s.value) << "seed " << seed << ": " << to_text(s.dim);
        EXPECT_GE(in.high, s.value) << "seed " << seed << ": " << to_text(s.dim);
        Dim known = s.dim.substitute(
            [&](std::string_view name) { return std::optional(Dim(symbols.find(name)->second)); });
        EXPECT_EQ(known, Dim(s.value)) << "seed " << seed << ": " << to_text(s.dim);
    }
}

} // namespace
} // namespace ingot
