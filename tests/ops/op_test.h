// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of single ops: small tensors from numbers, one op run through a graph and the
// evaluator, and the text of an expected error.
#pragma once

#include "base/error.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {

inline const std::vector<DType> all_dtypes = [] {
    std::vector<DType> out;
    for (int i = 0; i < dtype_count; ++i) {
        out.push_back(static_cast<DType>(i));
    }
    return out;
}();

inline Tensor tensor(DType t, Shape shape, const std::vector<double>& values) {
    EXPECT_EQ(count_of(shape), static_cast<int64_t>(values.size()));
    return Tensor::of<double>(t, std::move(shape), values);
}
inline Tensor f32(Shape shape, const std::vector<double>& values) {
    return tensor(DType::F32, std::move(shape), values);
}
inline Tensor i64(Shape shape, const std::vector<double>& values) {
    return tensor(DType::I64, std::move(shape), values);
}

inline std::vector<double> values(const Tensor& t) {
    std::vector<double> out;
    for (int64_t i = 0; i < t.count(); ++i) {
        out.push_back(t.get_f64(i));
    }
    return out;
}

/// A small linear congruential generator: the same numbers everywhere.
class Numbers {
public:
    explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
    uint64_t next() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return state_ >> 33;
    }
    int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
    double unit() { return static_cast<double>(next()) * 0x1p-31; }

private:
    uint64_t state_;
};

/// Values that the dtype holds exactly: small integers for integers, quarters for floats.
inline Tensor random_tensor(DType t, Shape shape, uint64_t seed) {
    Tensor out = Tensor::zeros(t, std::move(shape));
    Numbers numbers(seed);
    for (int64_t i = 0; i < out.count(); ++i) {
        if (is_float(t)) {
            double v = static_cast<double>(numbers.below(25) - 12) / 4;
            out.set_f64(i, t == DType::F4E2M1 ? std::clamp(v, -2.0, 2.0) : v);
        } else {
            out.set_i64(i, t == DType::Bool ? numbers.below(2)
                                            : numbers.below(8) - (is_signed(t) ? 4 : 0));
        }
    }
    return out;
}

/// One node on concrete tensors, through inference and the evaluator.
template <class A>
std::vector<Tensor> run_op(const OpDef& def, A attrs, const std::vector<Tensor>& in,
                           Symbols symbols = {}) {
    Graph g;
    Values args;
    for (const Tensor& t : in) {
        args.push_back(g.add_input(str("x", args.size()), t.type()));
    }
    Values out = g.add(def, std::move(attrs), args);
    for (size_t i = 0; i < out.size(); ++i) {
        g.add_output(str("y", i), out[i]);
    }
    return evaluate(g, in, {}, std::move(symbols));
}
template <class A>
Tensor run1(const OpDef& def, A attrs, const std::vector<Tensor>& in, Symbols symbols = {}) {
    return run_op(def, std::move(attrs), in, std::move(symbols))[0];
}

/// The same with input types that are unknown before the run ("N", "M", ...), so that errors reach
/// the evaluation. `types` in text form.
template <class A>
std::vector<Tensor> run_dynamic(const OpDef& def, A attrs, const std::vector<std::string>& types,
                                const std::vector<Tensor>& in, Symbols symbols = {}) {
    Graph g;
    Values args;
    for (const std::string& t : types) {
        args.push_back(g.add_input(str("x", args.size()), parse_type(t)));
    }
    Values out = g.add(def, std::move(attrs), args);
    for (size_t i = 0; i < out.size(); ++i) {
        g.add_output(str("y", i), out[i]);
    }
    return evaluate(g, in, {}, std::move(symbols));
}

/// The inferred types as text, joined by ", ".
template <class A>
std::string infer(const OpDef& def, const A& attrs, const std::vector<std::string>& types) {
    std::vector<Type> in;
    for (const std::string& t : types) {
        in.push_back(parse_type(t));
    }
    std::vector<std::string> out;
    for (const Type& t : def.infer(&attrs, in)) {
        out.push_back(to_text(t));
    }
    return join(out, ", ");
}

/// "InvalidModel: message" of the error that f throws, without its trail; "no error" else.
template <class F>
std::string error_of(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        return str(e.code(), ": ", e.message());
    }
    return "no error";
}
template <class A>
std::string infer_error(const OpDef& def, const A& attrs, const std::vector<std::string>& types) {
    return error_of([&] { infer(def, attrs, types); });
}

inline std::string host_text(const HostRef& h) {
    if (h == nullptr) {
        return "unknown";
    }
    std::string out = str(h->shape, ":");
    for (const auto& e : h->elements) {
        append(out, ' ');
        append(out, e ? to_text(e->numerator) : "?");
        if (e && e->denominator != 1) {
            append(out, str("/", e->denominator));
        }
    }
    return out;
}

} // namespace ingot::test
