// SPDX-License-Identifier: Apache-2.0
// slim on random graphs: results are the same, equal bit for bit where only exact rules run, and
// slimming again changes nothing.
#include "base/error.h"
#include "onnx/writer.h"
#include "slim_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::slim_test {
namespace {

using Ints = std::vector<int64_t>;

constexpr uint64_t graph_count = 1000;

// A tensor of f32. Sizes that have the name "n" are 3 when the graph runs.
struct Tracked {
    std::string name;
    Shape dims;
    std::vector<bool> named;
    int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

class RandomGraph {
public:
    /// `smooth`: without operators in which a rounding difference grows to a large one.
    RandomGraph(uint64_t seed, bool smooth)
        : b_(seed % 3 == 0   ? 11
             : seed % 3 == 1 ? 13
                             : 18),
          rng_(seed), smooth_(smooth) {}

    onnx::Model make() {
        add_input("x", {3, 2, 4, 4}, true);
        add_input("y", {2, 6}, false);
        add_input("z", {3, 6}, true);
        const int64_t steps = pick(6, 24);
        for (int64_t i = 0; i < steps; ++i) {
            step();
        }
        // The last tensors, and all unused ones, are results.
        for (size_t i = values_.size() - 3; i < values_.size(); ++i) {
            b_.output(b_.node("Identity", {values_[i].name}));
        }
        return b_.model();
    }

private:
    int64_t pick(int64_t low, int64_t high) { // both included
        return low + static_cast<int64_t>(rng_() % static_cast<uint64_t>(high - low + 1));
    }
    template <class T>
    T one_of(const std::vector<T>& list) {
        return list[static_cast<size_t>(pick(0, static_cast<int64_t>(list.size()) - 1))];
    }
    // Recent tensors more often, so that chains grow.
    Tracked any() {
        const auto last = static_cast<int64_t>(values_.size()) - 1;
        return values_[static_cast<size_t>(pick(0, 2) == 0 ? pick(0, last) : last)];
    }
    void add_input(const std::string& name, const Shape& dims, bool named_first) {
        std::vector<Size> sizes(dims.begin(), dims.end());
        std::vector<bool> named(dims.size(), false);
        if (named_first) {
            sizes[0] = std::string("n");
            named[0] = true;
        }
        values_.push_back({b_.input(name, sizes), dims, named});
    }
    void keep(const std::string& name, Shape dims, std::vector<bool> named) {
        if (count_of(dims) <= 600) {
            values_.push_back({name, std::move(dims), std::move(named)});
        }
    }
    void keep_like(const std::string& name, const Tracked& v) { keep(name, v.dims, v.named); }

    void step() {
        switch (pick(0, 13)) {
        case 0:
        case 1:
            return unary();
        case 2:
        case 3:
            return with_constant();
        case 4:
            return transpose();
        case 5:
            return reshape();
        case 6:
            return unit_axes();
        case 7:
            return slice();
        case 8:
            return concat();
        case 9:
            return reduce();
        case 10:
            return matmul();
        case 11:
            return conv();
        case 12:
            return repeat();
        default:
            return smooth_ ? cast() : where();
        }
    }

    void unary() {
        const Tracked v = any();
        std::vector<std::string> ops = {"Relu", "Neg",     "Abs", "Identity",
                                        "Tanh", "Dropout", "Sin", "Sigmoid"};
        if (!smooth_) {
            ops.insert(ops.end(), {"Round", "Floor", "Sign"});
        }
        const std::string op = one_of(ops);
        std::string name = b_.node(op, {v.name});
        if (pick(0, 2) == 0) {
            name = b_.node(op, {name});
        }
        keep_like(name, v);
    }

    void with_constant() {
        const Tracked v = any();
        const int64_t kind = pick(0, 3);
        Shape shape = kind < 2 ? Shape{} : Shape{v.dims.back()};
        if (kind == 3 && v.rank() == 4) {
            shape = {v.dims[1], 1, 1};
        }
        Tensor t = Tensor::empty(DType::F32, shape);
        const std::vector<double> values = {0, 1, 1, 2, -0.5};
        const double same = one_of(values);
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_f64(i, kind == 1 ? one_of(values)
                                   : same + (kind == 3 ? 0.25 * static_cast<double>(i) : 0));
        }
        const std::string op = one_of<std::string>({"Add", "Mul", "Sub", "Add", "Mul"});
        const std::string c = b_.constant(t);
        const bool left = pick(0, 3) == 0;
        keep_like(b_.node(op, {left ? c : v.name, left ? v.name : c}), v);
    }

    void transpose() {
        Tracked v = any();
        for (int64_t times = pick(1, 2); times > 0; --times) {
            Ints perm(v.dims.size());
            for (size_t k = 0; k < perm.size(); ++k) {
                perm[k] = static_cast<int64_t>(k);
            }
            for (size_t k = perm.size(); k > 1; --k) {
                std::swap(perm[k - 1],
                          perm[static_cast<size_t>(pick(0, static_cast<int64_t>(k) - 1))]);
            }
            Tracked next{b_.node("Transpose", {v.name}, {{"perm", perm}}), {}, {}};
            for (int64_t axis : perm) {
                next.dims.push_back(v.dims[static_cast<size_t>(axis)]);
                next.named.push_back(v.named[static_cast<size_t>(axis)]);
            }
            v = next;
        }
        keep_like(v.name, v);
    }

    // One element per size: a number, or an axis' size from Shape.
    std::string computed_list(const Tracked& from, const std::vector<int64_t>& axes,
                              const Shape& numbers) {
        std::vector<std::string> parts;
        for (size_t k = 0; k < numbers.size(); ++k) {
            parts.push_back(axes[k] < 0 ? b_.ints({numbers[k]})
                                        : b_.node("Gather", {b_.node("Shape", {from.name}),
                                                             b_.ints({axes[k]})}));
        }
        return b_.node("Concat", parts, {{"axis", int64_t{0}}});
    }

    // Two neighbours become one axis, or an axis of even size two.
    void reshape() {
        const Tracked v = any();
        Shape dims = v.dims;
        std::vector<bool> named = v.named;
        Ints axes(dims.size());
        for (size_t k = 0; k < axes.size(); ++k) {
            axes[k] = static_cast<int64_t>(k);
        }
        const auto at = static_cast<size_t>(pick(0, v.rank() - 1));
        if (dims[at] % 2 == 0 && !named[at] && v.rank() < 5) {
            dims[at] /= 2;
            dims.insert(dims.begin() + static_cast<int64_t>(at), 2);
            named.insert(named.begin() + static_cast<int64_t>(at), false);
            axes[at] = -1;
            axes.insert(axes.begin() + static_cast<int64_t>(at), -1);
        } else if (at + 1 < dims.size() && !named[at] && !named[at + 1]) {
            dims[at] *= dims[at + 1];
            dims.erase(dims.begin() + static_cast<int64_t>(at) + 1);
            named.erase(named.begin() + static_cast<int64_t>(at) + 1);
            axes[at] = -1;
            axes.erase(axes.begin() + static_cast<int64_t>(at) + 1);
        }
        std::string list;
        if (pick(0, 1) == 0) {
            list = computed_list(v, axes, dims);
        } else {
            Ints numbers = dims;
            for (size_t k = 0; k < numbers.size(); ++k) {
                numbers[k] = named[k] ? -1 : numbers[k];
            }
            if (std::count(named.begin(), named.end(), true) > 1) {
                return;
            }
            list = b_.ints(numbers);
        }
        keep(b_.node("Reshape", {v.name, list}), dims, named);
    }

    std::string unsqueezed(const std::string& name, int64_t axis, const char* op) {
        return b_.opset < 13 ? b_.node(op, {name}, {{"axes", Ints{axis}}})
                             : b_.node(op, {name, b_.ints({axis})});
    }

    void unit_axes() {
        const Tracked v = any();
        const auto one = std::find(v.dims.begin(), v.dims.end(), 1);
        if (one != v.dims.end() && pick(0, 1) == 0) {
            const auto at = one - v.dims.begin();
            Tracked w = v;
            w.dims.erase(w.dims.begin() + at);
            w.named.erase(w.named.begin() + at);
            if (!w.dims.empty() && !v.named[static_cast<size_t>(at)]) {
                keep_like(unsqueezed(v.name, at, "Squeeze"), w);
            }
        } else if (v.rank() < 5) {
            Tracked w = v;
            const int64_t at = pick(0, v.rank());
            w.dims.insert(w.dims.begin() + at, 1);
            w.named.insert(w.named.begin() + at, false);
            keep_like(unsqueezed(v.name, at, "Unsqueeze"), w);
        }
    }

    void slice() {
        Tracked v = any();
        for (int64_t times = pick(1, 3); times > 0; --times) {
            const auto axis = static_cast<size_t>(pick(0, v.rank() - 1));
            const int64_t size = v.dims[axis];
            int64_t start = 0;
            int64_t end = INT64_MAX;
            if (!v.named[axis] && size > 1) {
                start = pick(0, size - 2);
                end = pick(start + 1, size);
            }
            const int64_t step = v.named[axis] ? 1 : pick(1, 2);
            const int64_t count = (std::min(end, size) - start + step - 1) / step;
            const bool from_end = !v.named[axis] && pick(0, 2) == 0 && start > 0;
            v.name = b_.node("Slice",
                             {v.name, b_.ints({from_end ? start - size : start}), b_.ints({end}),
                              b_.ints({static_cast<int64_t>(axis)}), b_.ints({step})});
            v.dims[axis] = count;
        }
        keep_like(v.name, v);
    }

    void concat() {
        const Tracked v = any();
        const auto axis = static_cast<size_t>(pick(0, v.rank() - 1));
        if (v.named[axis] || v.dims[axis] > 8) {
            return;
        }
        Tracked w = v;
        const std::string inner =
            b_.node("Concat", {v.name, v.name}, {{"axis", static_cast<int64_t>(axis)}});
        w.dims[axis] *= 2;
        w.name = inner;
        if (pick(0, 1) == 0) {
            w.name =
                b_.node("Concat", {inner, v.name},
                        {{"axis", static_cast<int64_t>(axis) - (pick(0, 1) == 0 ? v.rank() : 0)}});
            w.dims[axis] += v.dims[axis];
        }
        keep_like(w.name, w);
    }

    void reduce() {
        const Tracked v = any();
        const int64_t axis = pick(0, v.rank() - 1);
        const int64_t kept = pick(0, 1);
        if (v.named[static_cast<size_t>(axis)] || v.rank() < 2) {
            return;
        }
        Tracked w = v;
        w.name = b_.opset < 13
                     ? b_.node("ReduceSum", {v.name}, {{"axes", Ints{axis}}, {"keepdims", kept}})
                     : b_.node("ReduceSum", {v.name, b_.ints({axis})}, {{"keepdims", kept}});
        w.dims[static_cast<size_t>(axis)] = 1;
        if (kept == 0) {
            w.name = unsqueezed(w.name, axis, "Unsqueeze");
        }
        keep_like(w.name, w);
    }

    void matmul() {
        const Tracked v = any();
        if (v.rank() < 2 || v.named.back()) {
            return;
        }
        Tracked w = v;
        w.dims.back() = pick(2, 5);
        w.name = b_.node("MatMul", {v.name, b_.weights({v.dims.back(), w.dims.back()})});
        if (pick(0, 1) == 0) {
            w.name = b_.node("Add", {w.name, b_.weights({w.dims.back()})});
        }
        keep_like(w.name, w);
    }

    void conv() {
        Tracked v = any();
        if (v.rank() != 4 || v.named[1] || v.named[2] || v.named[3] || v.dims[2] < 2 ||
            v.dims[3] < 2) {
            return;
        }
        if (pick(0, 1) == 0) {
            v.name = b_.node("Pad", {v.name, b_.ints({0, 0, 1, 0, 0, 0, 0, 1})});
            v.dims[2] += 1;
            v.dims[3] += 1;
        }
        const int64_t channels = pick(1, 3);
        v.name = b_.node("Conv", {v.name, b_.weights({channels, v.dims[1], 2, 2})});
        v.dims = {v.dims[0], channels, v.dims[2] - 1, v.dims[3] - 1};
        if (pick(0, 1) == 0) {
            const std::string variance = b_.constant(Tensor::of<float>(
                DType::F32, {channels}, std::vector<float>(static_cast<size_t>(channels), 0.5F)));
            v.name = b_.node("BatchNormalization",
                             {v.name, b_.weights({channels}), b_.weights({channels}),
                              b_.weights({channels}), variance});
        }
        keep_like(v.name, v);
    }

    // Repeats an existing node.
    void repeat() {
        if (b_.graph.nodes.empty()) {
            return;
        }
        const onnx::Node n = one_of(b_.graph.nodes);
        const auto same = std::find_if(values_.begin(), values_.end(),
                                       [&](const Tracked& v) { return v.name == n.outputs[0]; });
        if (same == values_.end() || n.outputs.size() != 1) {
            return;
        }
        const Tracked v = *same;
        onnx::Node copy = n;
        copy.outputs = {str(n.outputs[0], "_again", b_.graph.nodes.size())};
        b_.graph.nodes.push_back(copy);
        keep_like(b_.node("Add", {copy.outputs[0], v.name}), v);
    }

    void cast() {
        const Tracked v = any();
        const std::string wide = b_.node("Cast", {v.name}, {{"to", int64_t{11}}});
        keep_like(b_.node("Cast", {wide}, {{"to", int64_t{1}}}), v);
    }

    void where() {
        const Tracked v = any();
        std::string condition = b_.node("Greater", {v.name, b_.scalar(0.125)});
        for (int64_t times = pick(0, 3); times > 0; --times) {
            condition = b_.node("Not", {condition});
        }
        keep_like(b_.node("Where", {condition, v.name, b_.scalar(2)}), v);
    }

    Builder b_;
    std::mt19937_64 rng_;
    bool smooth_;
    std::vector<Tracked> values_;
};

int64_t operators(const onnx::Model& m) {
    int64_t sum = 0;
    for (const auto& [op, count] : count_operators(m)) {
        sum += op == "Constant" ? 0 : count;
    }
    return sum;
}

SlimOptions exact_only() {
    SlimOptions options;
    for (const SlimRuleInfo& r : slim_rules()) {
        if (!r.exact) {
            options.skip.emplace_back(r.name);
        }
    }
    return options;
}

void check(const onnx::Model& m, const SlimOptions& options, double tolerance, OpCounts& applied) {
    SlimReport report;
    const onnx::Model out = slim_model(m, options, &report);
    for (const auto& [rule, count] : report.applied) {
        applied[rule] += count;
    }
    EXPECT_EQ(difference(run(out), run(m), tolerance), "");
    EXPECT_LE(operators(out), operators(m));
    EXPECT_EQ(onnx::write_model(slim_model(out, options)), onnx::write_model(out))
        << "slimming again changes something";
}

std::string text_of(const OpCounts& applied) {
    std::string text;
    for (const auto& [rule, count] : applied) {
        append(text, str(" ", rule, ":", count));
    }
    return text;
}

TEST(SlimRandom, ExactRulesChangeNoBit) {
    OpCounts applied;
    for (uint64_t seed = 0; seed < graph_count; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        check(RandomGraph(seed, false).make(), exact_only(), 0, applied);
    }
    EXPECT_GE(applied.size(), 20U) << text_of(applied);
}

TEST(SlimRandom, AllRulesStayWithinRounding) {
    OpCounts applied;
    for (uint64_t seed = 0; seed < graph_count; ++seed) {
        SCOPED_TRACE(str("seed ", seed));
        check(RandomGraph(seed, true).make(), {}, 1e-4, applied);
    }
    EXPECT_GE(applied.size(), 25U) << text_of(applied);
}

} // namespace
} // namespace ingot::slim_test
