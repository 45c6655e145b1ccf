// SPDX-License-Identifier: Apache-2.0
// Hostile graphs and sizes through the planner and the kernels of emulated GPUs: fuzz_emulated, and
// the test that runs its seeds.
//
// The input is a byte of options, the length of the graph in two bytes (low first), the graph, and
// the bytes that choose sizes and contents. The graph is text (ir/text.h), or bytes for
// chosen_graph.h.
#pragma once

#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "chosen_inputs.h"
#include "emulator/compile.h"
#include "emulator/emulated_gpu.h"
#include "engine/engine.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

#include <chrono>
#include <limits>
#include <set>

namespace ingot::hostile {

/// A kernel did what no input may cause, an error reports a bug, or memory is not given back.
struct Fault {
    std::string text;
};

/// How many kernels may be compiled: one takes as long as hundreds of runs. Those that are kept are
/// not counted.
struct CompileBudget {
    int left = std::numeric_limits<int>::max();
};

struct Counts {
    int64_t planned = 0;  // sets of sizes
    int64_t refused = 0;  // sets of sizes, with an error
    int64_t runs = 0;     // to their end
    int64_t launches = 0; // of kernels
    int64_t lacking = 0;  // inputs that ended for want of a compiled kernel
};

struct Input {
    unsigned options = 0;
    std::span<const uint8_t> graph;
    std::span<const uint8_t> sizes;

    static constexpr size_t header = 3;
    static constexpr unsigned text = 1;
    static constexpr unsigned reversed = 8;

    explicit Input(std::span<const uint8_t> data) {
        if (data.size() < header) {
            return;
        }
        options = data[0];
        size_t length = data[1] + size_t{256} * data[2];
        graph = data.subspan(header, std::min(length, data.size() - header));
        sizes = data.subspan(header + graph.size());
    }
    int capability() const {
        static constexpr std::array<int, 4> all = {90, 80, 100, 120};
        return all[(options >> 1) % all.size()];
    }
};

/// An emulated GPU that compiles no more kernels than its budget says.
class Gpu : public emulator::EmulatedGpu {
public:
    static constexpr std::string_view lacks = "the budget of compilations is spent";

    Gpu(const Input& input, CompileBudget& budget)
        : EmulatedGpu(input.capability(), {.reversed = (input.options & Input::reversed) != 0,
                                           .memory = int64_t{64} << 20,
                                           .alignment = 16}),
          budget_(budget) {}
    std::string compile(const std::string& text) const override {
        if (!emulator::is_compiled(text, arch().cc, emulator::kept_folder())) {
            require(budget_.left > 0, ErrorCode::Unsupported, lacks);
            --budget_.left;
        }
        return EmulatedGpu::compile(text);
    }

private:
    CompileBudget& budget_;
};

inline Graph graph_of(const Input& input) {
    if ((input.options & Input::text) != 0) {
        std::string_view text(reinterpret_cast<const char*>(input.graph.data()),
                              input.graph.size());
        return parse_graph(text, {find_op, {}});
    }
    Choices choices(input.graph);
    return make_graph(choices, nullptr, 0);
}

/// Few choices fill any tensor: small integers, numbers of a wider range, or hostile ones in turn.
inline Tensor choose_contents(Choices& c, DType dtype, const Shape& shape) {
    Tensor x = Tensor::empty(dtype, shape);
    size_t kind = c.below(4);
    uint32_t state = c.byte() + 1U;
    for (int64_t i = 0; i < x.count(); ++i) {
        state = state * 1664525U + 1013904223U;
        uint32_t drawn = state >> 16;
        switch (kind) {
        case 0:
            x.set_i64(i, drawn % 4);
            break;
        case 1:
            x.set_i64(i, static_cast<int64_t>(drawn % 2001) - 1000);
            break;
        case 2:
            x.set_i64(i, c.done() ? drawn % 3 : c.integer());
            break;
        default:
            x.set_i64(i, static_cast<int64_t>(drawn) << (drawn % 48));
        }
    }
    return x;
}

/// Around the sizes of warps, vectors, tiles and blocks.
inline constexpr std::array<int64_t, 22> small_sizes = {
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 300, 513};
inline constexpr int64_t most_activation_bytes = 256 << 10;
inline constexpr std::chrono::milliseconds plan_limit{20000}; // compiles
inline constexpr std::chrono::milliseconds run_limit{500};

class Run {
public:
    Run(Choices& choices, Context& context, const Graph& g, Counts& counts)
        : c_(choices), context_(context), g_(g), counts_(counts) {
        for (Value v : g.inputs()) {
            for (const Dim& d : g.type(v).dims) {
                d.collect_symbols(names_);
            }
        }
        names_.insert("N");
    }

    /// Errors: those of the sizes, the plan and the run.
    void once() {
        Symbols symbols;
        for (const std::string& name : names_) {
            symbols[name] = choose_size(c_, small_sizes);
        }
        std::vector<Shape> shapes;
        for (Value v : g_.inputs()) {
            shapes.push_back(choose_shape(c_, g_.type(v), symbols, small_sizes));
        }
        ++counts_.planned;
        set_time_limit(plan_limit);
        require(context_.activation_bytes(shapes) <= most_activation_bytes, ErrorCode::Unsupported,
                "large");
        context_.prepare(shapes);
        std::vector<Tensor> inputs;
        for (size_t i = 0; i < shapes.size(); ++i) {
            require(count_of(shapes[i]) <= most_elements, ErrorCode::Unsupported, "large");
            inputs.push_back(choose_contents(c_, g_.type(g_.inputs()[i]).dtype, shapes[i]));
        }
        size_t times = c_.below(4) == 3 ? 3 : 1; // plain, recorded, replayed
        for (size_t i = 0; i < times; ++i) {
            set_time_limit(i == 0 ? plan_limit
                                  : run_limit); // sizes that depend on data are planned
            check(context_.run(inputs));
            ++counts_.runs;
        }
    }

private:
    void check(const std::vector<Tensor>& results) const {
        for (size_t i = 0; i < results.size(); ++i) {
            const Type& t = g_.type(g_.outputs()[i]);
            if (results[i].dtype() != t.dtype || results[i].rank() != t.rank()) {
                throw Fault{str("result ", i, " has another type")};
            }
        }
    }

    Choices& c_;
    Context& context_;
    const Graph& g_;
    Counts& counts_;
    std::set<std::string, std::less<>> names_;
};

/// Several runs in one context; false when a kernel is lacking.
inline bool run_graph(Choices& c, const Backend& backend, const Graph& g, Counts& counts) {
    CompileOptions options;
    options.of<CudaOptions>().runtime_cache = "";
    Context context(Engine::create(Graph(g), {}, {}), backend, options);
    Run run(c, context, g, counts);
    for (int i = 0; i < 4; ++i) {
        try {
            run.once();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Internal || e.code() == ErrorCode::Device) {
                throw Fault{e.what()};
            }
            if (std::string_view(e.what()).find(Gpu::lacks) != std::string_view::npos) {
                return false;
            }
            ++counts.refused;
        }
        set_time_limit(std::chrono::milliseconds(0));
    }
    return true;
}

/// Plans the input's graph for its emulated GPU and runs the kernels with its sizes. Throws a
/// Fault, and nothing else.
inline void run_emulated(std::span<const uint8_t> data, CompileBudget& budget, Counts& counts,
                         const emulator::EmulatedGpu::Meddler& meddler = {}) {
    Input input(data);
    try {
        Graph g = graph_of(input);
        g.reserve_symbols();
        verify(g);
        Graph optimised = run_aot_passes(g);
        if (!may_run(g) || !may_run(optimised)) {
            return;
        }
        Gpu gpu(input, budget);
        gpu.set_meddler(meddler);
        {
            std::unique_ptr<Backend> backend = cuda::make_backend(gpu, 1);
            Choices choices(input.sizes);
            counts.lacking += run_graph(choices, *backend, optimised, counts) ? 0 : 1;
        }
        counts.launches += static_cast<int64_t>(gpu.launches());
        if (!gpu.problems().empty() || gpu.memory().used() != 0) {
            throw Fault{str(gpu.problems(), gpu.memory().used(), " bytes are not given back")};
        }
    } catch (const Error&) { // such as an op without kernels
    } catch (Fault& f) {
        set_time_limit(std::chrono::milliseconds(0));
        throw;
    }
}

} // namespace ingot::hostile
