// SPDX-License-Identifier: Apache-2.0
// Every primitive runs on the device: for each dtype that its inference accepts, and for each node
// of the op cases as the backend lowers them, some family or control kernel takes it.
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "base/error.h"
#include "ir/rewrite.h"
#include "kernels/harness.h"
#include "ops/op_case.h"
#include "ops/ops.h"
#include "ops/primitives.h"
#include "plan/compile_options.h"
#include "plan/views.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace ingot::test {
namespace {

/// The reason why a node needs no kernel of a family; nullopt where it needs one.
std::optional<std::string> needs_no_kernel(const Node& n, DType type) {
    if (n.is(constant_def)) {
        return "its bytes are uploaded";
    }
    if (n.is(dims_to_tensor_def)) {
        return "it is known when the plan is made";
    }
    if (n.is(concat_def) && !is_packed(type)) {
        return "the planner lets its operands be written side by side";
    }
    return std::nullopt;
}

/// The fault in a node's assignment to a device; empty for none.
std::string fault(const Graph& g, const Node& n) {
    if (needs_no_kernel(n, g.type(n.outputs[0]).dtype) || plan::is_view(g, n)) {
        return "";
    }
    std::string reason = "there is none of that name";
    std::string_view name = n.is(fused_def) ? std::string_view(n.as<Fused>().kernel) : n.def->name;
    const plan::Kernel* k = cuda::cuda_kernels().find(name, plan::group_of(g, n), &reason);
    return k != nullptr ? "" : str(n.def->name, ": no kernel takes it: ", reason);
}

struct Maker {
    std::string what;
    std::function<void(Graph&, DType)> make;
};

Value input(Graph& g, DType t, const Dims& dims) {
    return g.add_input(str("x", g.inputs().size()), {t, dims});
}

const Dims matrix{Dim(4), Dim(6)};

void add_movement(std::vector<Maker>& list) {
    for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
        list.push_back({str("pad ", mode), [mode](Graph& g, DType t) {
                            Value x = input(g, t, matrix);
                            ops::pad(g, x, {1, 0}, {0, 3}, input(g, t, {}), mode);
                        }});
    }
    list.push_back({"concat", [](Graph& g, DType t) {
                        std::vector<Value> in{input(g, t, matrix), input(g, t, matrix)};
                        ops::concat(g, in, 1);
                    }});
    for (DType index : {DType::I64, DType::I32}) {
        list.push_back({str("gather by ", index), [index](Graph& g, DType t) {
                            Value x = input(g, t, matrix);
                            ops::gather(g, x, input(g, index, {3}), 1);
                        }});
        for (const char* fn : {"none", "add", "mul", "min", "max"}) {
            list.push_back({str("scatter ", fn, " by ", index), [fn, index](Graph& g, DType t) {
                                Value x = input(g, t, matrix);
                                Value at = input(g, index, {3});
                                ops::scatter(g, x, at, input(g, t, {3, 6}), fn);
                            }});
        }
    }
    list.push_back({"permute", [](Graph& g, DType t) {
                        ops::permute(g, input(g, t, matrix), {1, 0});
                    }});
    list.push_back(
        {"broadcast", [](Graph& g, DType t) { ops::broadcast_to(g, input(g, t, {6}), matrix); }});
    list.push_back(
        {"slice", [](Graph& g, DType t) { ops::slice(g, input(g, t, matrix), 1, 1, 2, 2); }});
    list.push_back({"window", [](Graph& g, DType t) {
                        ops::window(g, input(g, t, matrix), {{1}, {3}, {1}, {1}});
                    }});
    list.push_back(
        {"reshape", [](Graph& g, DType t) { ops::reshape(g, input(g, t, matrix), {Dim(24)}); }});
}

void add_rows(std::vector<Maker>& list) {
    for (const char* fn : {"sum", "prod", "min", "max"}) {
        list.push_back({str("reduce ", fn),
                        [fn](Graph& g, DType t) { ops::reduce(g, fn, input(g, t, matrix), {1}); }});
        list.push_back({str("scan ", fn), [fn](Graph& g, DType t) {
                            ops::scan(g, {fn, 1, false, false}, input(g, t, matrix));
                        }});
    }
    for (const char* fn : {"min", "max"}) {
        list.push_back({str("arg_reduce ", fn), [fn](Graph& g, DType t) {
                            ops::arg_reduce(g, fn, input(g, t, matrix), 0);
                        }});
    }
    list.push_back({"sort", [](Graph& g, DType t) { ops::sort(g, input(g, t, matrix), 1, true); }});
    list.push_back({"nonzero", [](Graph& g, DType t) {
                        g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {input(g, t, matrix)});
                    }});
    list.push_back({"nms", [](Graph& g, DType t) {
                        std::vector<Value> in{input(g, t, {1, 4, 4}), input(g, t, {1, 2, 4}),
                                              input(g, DType::I64, {}), input(g, t, {}),
                                              input(g, DType::F32, {})};
                        g.add1(nms_def, Nms{false, g.fresh_symbol()}, in);
                    }});
}

void add_values(std::vector<Maker>& list) {
    list.push_back({"iota", [](Graph& g, DType t) { ops::iota(g, t, matrix, 1); }});
    for (const char* kind : {"uniform", "normal"}) {
        list.push_back({str("random ", kind), [kind](Graph& g, DType t) {
                            g.add1(random_def, Random{kind, 0, 1, t, matrix, 3}, {});
                        }});
    }
    for (int k = 0; k < dtype_count; ++k) {
        auto to = static_cast<DType>(k);
        list.push_back({str("cast to ", to),
                        [to](Graph& g, DType t) { ops::cast(g, input(g, t, matrix), to); }});
        list.push_back({str("dot to ", to), [to](Graph& g, DType t) {
                            Dot d{{}, {}, {1}, {1}, to};
                            ops::dot(g, d, input(g, t, matrix), input(g, t, matrix));
                        }});
    }
    list.push_back({"if", [](Graph& g, DType t) {
                        auto body = std::make_shared<Graph>(g.sibling("branch"));
                        body->add_output("y", body->add_input("x", {t, matrix}));
                        g.add(if_def, If{body, body, {}},
                              std::vector<Value>{input(g, DType::Bool, {}), input(g, t, matrix)});
                    }});
}

std::vector<Maker> makers() {
    std::vector<Maker> list;
    add_movement(list);
    add_rows(list);
    add_values(list);
    return list;
}

TEST(Coverage, EveryPrimitiveAndDType) {
    int checked = 0;
    for (const Maker& m : makers()) {
        for (int k = 0; k < dtype_count; ++k) {
            auto t = static_cast<DType>(k);
            Graph g;
            try {
                m.make(g, t);
            } catch (const Error&) {
                continue; // not defined for the dtype
            }
            if (g.nodes().empty()) {
                continue; // nothing to do
            }
            ++checked;
            EXPECT_EQ(fault(g, g.nodes().back()), "") << m.what << " of " << name(t);
        }
    }
    EXPECT_GT(checked, 700);
}

/// Faults of a lowered graph's nodes and its bodies.
std::string faults(const Graph& g) {
    std::string all;
    for (const Node& n : g.nodes()) {
        all += fault(g, n);
        if (n.is(fused_def)) {
            continue;
        }
        for (const GraphRef& body : bodies(n)) {
            all += faults(*body);
        }
    }
    return all;
}

TEST(Coverage, EveryNodeOfTheOpCases) {
    int checked = 0;
    for (const CaseLine& line : list_cases(source_dir() + "/tests/ops")) {
        OpCase c = parse_case(line.place, line.text);
        if (c.evaluator_only) {
            continue;
        }
        Graph g;
        Values operands;
        for (const CaseInput& i : c.inputs) {
            Value v = g.add_input(str("x", g.inputs().size()), i.type);
            if (i.operand) {
                operands.push_back(v);
            }
        }
        g.reserve_symbols();
        for (Value v : g.add(*c.def, c.attrs, operands)) {
            g.add_output(str("y", g.outputs().size()), v);
        }
        EXPECT_EQ(faults(cuda::lower(g, {})), "") << line.place << ": " << line.text;
        ++checked;
    }
    EXPECT_GT(checked, 200);
}

/// Valid indices and result counts; undefined for inputs that may be random.
std::vector<Tensor> fitting_inputs(const Graph& g) {
    std::vector<Tensor> list;
    for (Value v : g.inputs()) {
        const Type& t = g.type(v);
        bool index = t.dtype == DType::I64 || t.dtype == DType::I32;
        Tensor x;
        if (index) {
            x = Tensor::empty(t.dtype, *as_const(t.dims));
            for (int64_t i = 0; i < x.count(); ++i) {
                x.set_i64(i, t.rank() == 0 ? 9 : i % 2);
            }
        }
        list.push_back(x);
    }
    return list;
}

TEST(Coverage, PackedElements) {
    const std::map<std::string, DType> chosen = {{"pad constant", DType::I4},
                                                 {"pad reflect", DType::U4},
                                                 {"permute", DType::F4E2M1},
                                                 {"slice", DType::I4},
                                                 {"window", DType::U4},
                                                 {"broadcast", DType::I4},
                                                 {"scatter none by i64", DType::U4},
                                                 {"scatter add by i32", DType::I4},
                                                 {"reduce sum", DType::I4},
                                                 {"reduce min", DType::F4E2M1},
                                                 {"scan max", DType::U4},
                                                 {"arg_reduce max", DType::I4},
                                                 {"dot to i4", DType::I4},
                                                 {"dot to i32", DType::U4},
                                                 {"dot to f4e2m1", DType::F4E2M1},
                                                 {"sort", DType::F4E2M1},
                                                 {"nonzero", DType::F4E2M1},
                                                 {"nms", DType::F4E2M1},
                                                 {"iota", DType::I4},
                                                 {"random normal", DType::F4E2M1}};
    size_t ran = 0;
    for (const Maker& m : makers()) {
        auto it = chosen.find(m.what);
        if (it == chosen.end()) {
            continue;
        }
        ++ran;
        SCOPED_TRACE(str(m.what, " of ", it->second));
        Graph g;
        m.make(g, it->second);
        for (Value v : g.nodes().back().outputs) {
            g.add_output(str("y", g.outputs().size()), v);
        }
        expect_backend(g, {.tolerance = 0, .inputs = fitting_inputs(g), .runs = 1});
    }
    EXPECT_EQ(ran, chosen.size());
}

TEST(Coverage, PackedExtremesOfNothing) {
    for (const char* fn : {"min", "max"}) {
        Graph g;
        Value x = g.add_input("x", {DType::I4, {Dim(3), Dim(0)}});
        g.add_output("y", ops::reduce(g, fn, x, {1}));
        expect_backend(g, {.tolerance = 0, .runs = 1});
    }
}

} // namespace
} // namespace ingot::test
