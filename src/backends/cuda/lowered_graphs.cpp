// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowered_graphs.h"

#include "backends/cuda/absent_gpu.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/options.h"
#include "base/log.h"
#include "ops/evaluator.h"

#include <algorithm>

namespace ingot::cuda {

namespace {

/// Options that observe passes, and plugins, which belong to an engine, are not shared.
bool may_share(const CompileOptions& o) {
    return !o.verify_passes && !o.after_pass && o.plugins == nullptr;
}

/// The first segment's plan at the inputs' default shapes, or, where these make none, with free
/// sizes of 64 behind the first axis: networks that halve a picture and double it again need even
/// ones. Null where that fails too: a context will say why.
std::unique_ptr<SegmentPlan> plan_at_some_shapes(CudaDevice& device, const Program& program) {
    const Graph& g = *program.graph;
    for (int64_t least : {1, 64}) {
        try {
            Symbols symbols;
            for (size_t i = 0; i < g.inputs().size(); ++i) {
                Value v = g.inputs()[i];
                const Dims& dims = g.type(v).dims;
                Shape shape = default_shape(g, i, program.options.profiles);
                for (size_t d = 1; d < shape.size(); ++d) {
                    shape[d] = dims[d].is_const() ? shape[d] : std::max(shape[d], least);
                }
                bind_symbols(dims, shape, symbols, str("input '", g.value_name(v), "'"));
            }
            return plan::plan_segment(program, device, 0, std::move(symbols), nullptr);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Interrupted) {
                throw;
            }
            log(LogLevel::Verbose,
                "cuda: no weights are sent ahead of the first run's plan: ", e.what());
        }
    }
    return nullptr;
}

} // namespace

// The options that decide how a graph is lowered and where its constants lie.
LoweredGraphs::Key LoweredGraphs::key_of(const CompileOptions& o) {
    const auto& cuda = o.of<CudaOptions>();
    return {o.memory.get(),     cuda.memory_limit, cuda.weight_budget, cuda.tf32,
            o.batch_invariant,  o.poison,          cuda.force_tactic,  o.workspace,
            cuda.shared_memory, cuda.arch,         o.disabled_passes};
}

std::shared_ptr<const LoweredGraph> LoweredGraphs::find(const std::shared_ptr<const Graph>& graph,
                                                        const CompileOptions& options) {
    std::unique_lock lock(mutex_);
    std::erase_if(entries_, [](const Entry& e) { return e.lowered.expired(); });
    for (const Entry& e : entries_) {
        if (may_share(options) && e.source.lock() == graph && e.key == key_of(options)) {
            if (auto known = e.lowered.lock()) {
                return known;
            }
        }
    }
    lock.unlock(); // lowering takes long, and two threads rarely lower the same
    auto made = std::make_shared<LoweredGraph>();
    made->graph = std::make_shared<const Graph>(lower(*graph, options, gpu_.arch()));
    made->packs = std::make_shared<PackCache>();
    made->device = std::make_shared<DeviceWeights>(gpu_, options, slabs_);
    made->device->streamed.make_room(*made->graph);
    if (may_share(options)) {
        lock.lock();
        entries_.push_back({graph, key_of(options), made});
    }
    return made;
}

void upload_weights(Gpu& gpu, const LoweredGraph& lowered, const CompileOptions& options) {
    // The constants' orders follow from layouts: planned for a GPU like this one, without kernels.
    AbsentGpu absent(gpu.arch(), false);
    auto programs = std::make_shared<ProgramCache>(absent, nullptr, nullptr, 1);
    CompileOptions dry = options;
    dry.memory = nullptr;
    dry.of<CudaOptions>().specialise = Specialise::None;
    auto program = plan::make_program(lowered.graph, placing_kernels(), lowered.packs, dry);
    CudaDevice device(std::make_shared<CudaState>(absent, programs, dry));
    std::unique_ptr<SegmentPlan> plan = plan_at_some_shapes(device, *program);
    if (plan == nullptr) {
        return;
    }
    std::vector<plan::StoredConstant> constants;
    for (const plan::Storage& s : plan->storages) {
        bool constant = s.kind == plan::Storage::Kind::Constant && s.read;
        if (constant && lowered.device->streamed.keeps(s.constant)) {
            constants.push_back(s.constant);
        }
    }
    lowered.device->weights.start(constants);
}

} // namespace ingot::cuda
