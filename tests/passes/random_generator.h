// SPDX-License-Identifier: Apache-2.0
// The generator of random graphs: a pool of values, from which each step takes some and to which it
// adds its results. Steps are grouped in files by what they make.
#pragma once

#include "ops/ops.h"
#include "passes/random_graph.h"

#include <algorithm>
#include <array>

namespace ingot::test {

class Draw {
public:
    explicit Draw(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
    uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x2545f4914f6cdd1dULL;
    }
    /// In [0, n).
    int64_t below(int64_t n) {
        return static_cast<int64_t>((next() >> 11) % static_cast<uint64_t>(n));
    }
    bool chance(int percent) { return below(100) < percent; }
    double real() { return static_cast<double>(below(2001)) / 1000 - 1; }
    template <class T, size_t N>
    const T& of(const std::array<T, N>& list) {
        return list[static_cast<size_t>(below(N))];
    }

private:
    uint64_t state_;
};

Tensor random_tensor(Draw& d, DType t, const Shape& shape);

class GraphGenerator {
public:
    GraphGenerator(uint64_t seed, const RandomGraphOptions& o)
        : g_("random"), d_(seed), smooth_(o.smooth), steps_(o.steps) {}

    Graph run();

private:
    void step();
    void outputs();

    // The pool.

    void keep(Value v);
    Value any();
    template <class F>
    Value any_that(F&& wanted) {
        for (int i = 0; i < 12; ++i) {
            Value v = any();
            if (wanted(g_.type(v))) {
                return v;
            }
        }
        return {};
    }
    Value any_float();
    Value any_f32(int rank_at_least);
    Value tensor(DType t, const Shape& shape) {
        return ops::constant(g_, random_tensor(d_, t, shape));
    }
    const Dims& dims_of(Value v) { return ops::dims(g_, v); }
    int64_t axis_of(Value v) { return d_.below(std::max(1, g_.type(v).rank())); }
    /// A constant or a part of `v` that broadcasts against it.
    Value partner(Value v);

    // Elements (random_graph.cpp).

    void pointwise();
    void binary_map();
    void casts();
    void reductions();
    void orders();

    // Views and copies (random_moves.cpp).

    void views();
    void slices();
    void pads();
    void concats();
    void gathers();
    void scatters();
    void shapes();

    // Sizes that depend on data, and bodies (random_control.cpp).

    void dynamic();
    GraphRef body_of(Value v, bool grows);
    void branches();
    void loops();

    // Contractions, composites, and composites spelled out (random_composites.cpp).

    void contracts();
    void images();
    void composites();
    void spelled();

    Graph g_;
    Draw d_;
    bool smooth_;
    int steps_;
    Values pool_;
};

} // namespace ingot::test
