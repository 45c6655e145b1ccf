// SPDX-License-Identifier: Apache-2.0
// Dim: an integer or a symbolic expression over named sizes, in one canonical form: a sum of
// products of symbols, floor divisions, minima and maxima. Equal expressions compare equal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Values of named sizes at run time.
using Symbols = std::map<std::string, int64_t, std::less<>>;

struct Interval {
    int64_t low = 0;
    int64_t high = INT64_MAX;
    bool operator==(const Interval&) const = default;
};
/// Bounds of named sizes; a symbol that is missing has [0, INT64_MAX].
using Bounds = std::map<std::string, Interval, std::less<>>;

/// Immutable value type, cheap to copy. Symbols are sizes (never negative) unless their name starts
/// with '~'; names hold no operator characters (+-*(),). Arithmetic throws Error(Unsupported) on
/// overflow of a coefficient or an expression that grows beyond 256 terms.
class Dim {
public:
    Dim() = default;
    Dim(int64_t value) : value_(value) {} // NOLINT(google-explicit-constructor)
    Dim(int value) : value_(value) {}     // NOLINT(google-explicit-constructor)
    static Dim symbol(std::string_view name);

    bool is_const() const { return poly_ == nullptr; }
    bool is_const(int64_t v) const { return poly_ == nullptr && value_ == v; }
    /// The integer; only for constants.
    int64_t value() const;
    std::optional<int64_t> as_const() const {
        return is_const() ? std::optional(value_) : std::nullopt;
    }
    /// The name when this is exactly one symbol, else "".
    std::string_view symbol_name() const;
    bool operator==(const Dim& o) const;
    /// A total order, for canonical sorting only.
    bool operator<(const Dim& o) const;

    friend Dim operator+(const Dim& a, const Dim& b);
    friend Dim operator-(const Dim& a, const Dim& b);
    friend Dim operator*(const Dim& a, const Dim& b);
    friend Dim floor_div(const Dim& a, const Dim& b);
    friend Dim min(const Dim& a, const Dim& b);
    friend Dim max(const Dim& a, const Dim& b);
    friend std::string to_text(const Dim& d);

    /// Value under the given symbols. Errors: InvalidArgument naming a symbol without a value;
    /// division by zero.
    int64_t eval(const Symbols& symbols) const;
    /// Like eval, but nullopt when a symbol is missing.
    std::optional<int64_t> try_eval(const Symbols& symbols) const;
    /// Names of all symbols in it, added to `out`.
    void collect_symbols(std::set<std::string, std::less<>>& out) const;
    bool has_symbol(std::string_view name) const;
    /// Replaces symbols by expressions; `f` returns nullopt to keep one.
    Dim substitute(const std::function<std::optional<Dim>(std::string_view)>& f) const;
    /// A range that contains every value this can take.
    Interval bounds(const Bounds& bounds = {}) const;

    struct Poly;

private:
    explicit Dim(std::shared_ptr<const Poly> poly) : poly_(std::move(poly)) {}
    static Dim from_poly(Poly p);
    int64_t value_ = 0;
    std::shared_ptr<const Poly> poly_;
};

Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
std::string to_text(const Dim& d);
/// Parses what to_text prints. Errors: InvalidArgument.
Dim parse_dim(std::string_view text);

using Dims = std::vector<Dim>;
using Shape = std::vector<int64_t>;

Dim product(const Dims& dims);
/// The size that two sizes broadcast to under the rule of NumPy; nullopt when they cannot agree.
/// Different symbols give max(a, b): the run checks that they agree or that one is 1.
std::optional<Dim> broadcast(const Dim& a, const Dim& b);
std::optional<Dims> broadcast(const Dims& a, const Dims& b);
Shape eval(const Dims& dims, const Symbols& symbols);
/// The integers when all are constant, else nullopt.
std::optional<Shape> as_const(const Dims& dims);
/// Keeps std::as_const from being chosen for a list that is not const.
inline std::optional<Shape> as_const(Dims& dims) {
    return as_const(static_cast<const Dims&>(dims));
}
Dims to_dims(const Shape& shape);

} // namespace ingot
