// SPDX-License-Identifier: Apache-2.0
// Fuzz target: hostile graphs through planner and kernels of the CPU. The bytes choose a graph, the
// sizes of its inputs (right, wrong and huge ones, different in each run) and their contents; it is
// planned and run several times in one context. Each run gives results of the graph's types, or
// fails with an Error that reports no bug.
#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "chosen_inputs.h"
#include "engine/engine.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace ingot {
namespace {

void expect(bool holds, const char* what, const Graph& g) {
    if (!holds) {
        std::fprintf(stderr, "%s\n%s\n", what, print(g).c_str());
        std::abort();
    }
}

constexpr std::array<int64_t, 6> small_sizes = {0, 1, 2, 3, 4, 5};

Tensor choose_input(Choices& c, const Type& t, const Shape& shape) {
    Tensor x = Tensor::empty(t.dtype, shape);
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_i64(i, c.integer()); // indices, shapes and counts among them
    }
    return x;
}

void run_once(Choices& c, Context& context, const Graph& g) {
    Symbols symbols = {{"N", choose_size(c, small_sizes)}};
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(choose_shape(c, g.type(v), symbols, small_sizes));
    }
    context.prepare(shapes); // an Error for those that do not fit
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
        require(count_of(shapes[i]) <= most_elements, ErrorCode::Unsupported, "large");
        inputs.push_back(choose_input(c, g.type(g.inputs()[i]), shapes[i]));
    }
    std::vector<Tensor> results = context.run(inputs);
    for (size_t i = 0; i < results.size(); ++i) {
        const Type& t = g.type(g.outputs()[i]);
        expect(results[i].dtype() == t.dtype && results[i].rank() == t.rank(), "another type", g);
    }
}

void run(Choices& c, const Graph& g) {
    static ThreadPool pool(1);
    CompileOptions options;
    options.pool = &pool;
    options.of<CpuOptions>().use_library = false;
    options.poison = true;
    Context context(Engine::create(Graph(g), {}, {}), cpu_backend(), options);
    for (int i = 0; i < 3; ++i) {
        set_time_limit(std::chrono::milliseconds(500));
        try {
            run_once(c, context, g);
        } catch (const Error& e) {
            expect(e.code() != ErrorCode::Internal, e.what(), g);
        }
        set_time_limit(std::chrono::milliseconds(0));
    }
}

} // namespace
} // namespace ingot

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    Choices choices(std::span(data, size));
    try {
        Graph g = make_graph(choices, nullptr, 0);
        g.reserve_symbols();
        verify(g);
        Graph optimised = run_aot_passes(g);
        if (may_run(g) && may_run(optimised)) {
            run(choices, optimised);
        }
    } catch (const Error&) { // such as a symbol that nothing defines, or an op without kernels
    }
    return 0;
}
