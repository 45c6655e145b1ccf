// SPDX-License-Identifier: Apache-2.0
#include "workflow/refit.h"

#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/properties.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>

namespace ingot {

PipelineOptions pipeline_options(DType precision, const std::vector<std::string>& disabled) {
    PipelineOptions options;
    options.disabled = disabled;
    if (precision != DType::F32) {
        options.pass.precision = precision;
    }
    return options;
}

Graph run_build_passes(const Graph& g, const PipelineOptions& options, const FindOverflows& find) {
    if (!find) {
        return run_aot_passes(g, options);
    }
    Pass precision = passes::precision_within([&](const Graph& now, std::span<const Value> narrow) {
        Values out;
        bool is_body = now.output_names() != g.output_names();
        for (const Overflow& o : is_body ? std::vector<Overflow>() : find(now, narrow)) {
            out.push_back(Value{o.value});
        }
        return out;
    });
    std::vector<const Pass*> list(aot_passes().begin(), aot_passes().end());
    std::replace_if(
        list.begin(), list.end(), [&](const Pass* p) { return p->name == precision.name; },
        &precision);
    return run_passes(list, g, options);
}

static constexpr const char* f32_layers = "f32_layers";

void put_f32_layers(std::span<const Overflow> overflows, Properties& metadata) {
    std::set<std::string> layers;
    for (const Overflow& o : overflows) {
        layers.insert(o.layer);
    }
    if (!layers.empty()) {
        metadata[f32_layers] = join(std::vector<std::string>(layers.begin(), layers.end()), "\n");
    }
}

FindOverflows find_f32_layers(const Properties& metadata) {
    auto it = metadata.find(f32_layers);
    if (it == metadata.end()) {
        return {};
    }
    std::set<std::string> layers;
    for (size_t start = 0; start <= it->second.size();) {
        size_t end = std::min(it->second.find('\n', start), it->second.size());
        layers.insert(it->second.substr(start, end - start));
        start = end + 1;
    }
    return [layers = std::move(layers)](const Graph& g, std::span<const Value> narrow) {
        return named_overflows(g, narrow, layers);
    };
}

namespace {

/// All that a refit can replace.
struct Replaceable {
    const RefitSource& source;
    std::vector<Weight> defaults;

    const Weight* find(std::string_view name) const {
        auto is_it = [name](const Weight& w) { return w.name == name; };
        auto it = std::find_if(defaults.begin(), defaults.end(), is_it);
        return it == defaults.end() ? source.find(name) : &*it;
    }
};

/// Copies of the tensors, made by the pool's threads.
NamedTensors copied(const NamedTensors& weights, ThreadPool& pool) {
    constexpr size_t piece_bytes = 1 << 20;
    struct Piece {
        std::byte* to;
        std::span<const std::byte> from;
    };
    std::vector<Piece> pieces;
    NamedTensors out;
    for (const auto& [name, t] : weights) {
        Tensor copy = Tensor::empty(t.dtype(), t.shape());
        std::byte* to = copy.mutable_bytes().data();
        for (size_t at = 0; at < t.bytes().size(); at += piece_bytes) {
            size_t n = std::min(piece_bytes, t.bytes().size() - at);
            pieces.push_back({to + at, t.bytes().subspan(at, n)});
        }
        out.emplace(name, std::move(copy));
    }
    pool.parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Piece& p = pieces[static_cast<size_t>(i)];
            std::memcpy(p.to, p.from.data(), p.from.size());
        }
    });
    return out;
}

/// Errors: InvalidArgument for the first weight whose bytes differ from the build's.
void check_identical(const Replaceable& known, const NamedTensors& weights, ThreadPool& pool) {
    struct Pair {
        const Weight* weight;
        const Tensor* given;
        std::string hash;
    };
    std::vector<Pair> pairs;
    for (const auto& [name, t] : weights) {
        pairs.push_back({known.find(name), &t, {}});
    }
    pool.parallel_for(static_cast<int64_t>(pairs.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Pair& p = pairs[static_cast<size_t>(i)];
            try {
                p.hash = weight_hash(*p.given);
            } catch (const std::bad_alloc&) {
                p.hash.clear(); // recomputed below
            }
        }
    });
    for (const Pair& p : pairs) {
        require((p.hash.empty() ? weight_hash(*p.given) : p.hash) == p.weight->hash,
                ErrorCode::InvalidArgument, "weights '", p.weight->name,
                "' differ from those of the build; the engine was built with kREFIT_IDENTICAL: "
                "build it with kREFIT to set others");
    }
}

// New weights must not change the types of an engine's inputs and outputs.
void check_io_types(const Graph& now, const Graph& before) {
    for (size_t i = 0; i < before.outputs().size(); ++i) {
        const Type& a = before.type(before.outputs()[i]);
        const Type& b = now.type(now.outputs()[i]);
        require(a.dtype == b.dtype && a.rank() == b.rank(), ErrorCode::InvalidArgument, "output '",
                before.output_names()[i], "' would be ", b, " with these weights, it is ", a,
                "; build the engine anew");
        for (size_t d = 0; d < a.dims.size(); ++d) {
            bool other = a.dims[d].is_const() && b.dims[d].is_const() && !(a.dims[d] == b.dims[d]);
            require(!other, ErrorCode::InvalidArgument, "output '", before.output_names()[i],
                    "' would be ", b, " with these weights, it is ", a, "; build the engine anew");
        }
    }
}

} // namespace

std::vector<std::string> missing_weights(const RefitSource& source, const NamedTensors& given) {
    std::vector<std::string> out;
    for (const Weight& w : source.weights) {
        if (source.missing && !given.contains(w.name)) {
            out.push_back(w.name);
        }
    }
    return out;
}

void check_weight(const Weight& w, const Tensor& t) {
    require(t.dtype() == w.dtype && t.shape() == w.shape, ErrorCode::InvalidArgument, "weights '",
            w.name, "' are ", t.type(), ", expected ", Type{w.dtype, to_dims(w.shape)});
}

std::string listed_weights(const std::vector<std::string>& names) {
    constexpr size_t most_listed = 5;
    std::vector<std::string> first(
        names.begin(),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most_listed)));
    return str("'", join(first, "', '"), "'",
               names.size() > most_listed ? str(" and ", names.size() - most_listed, " more") : "");
}

std::vector<Weight> default_weights(const Engine& engine) {
    std::vector<Weight> out;
    for (const auto& [name, value] : input_defaults(engine)) {
        out.push_back({name, value.dtype(), value.shape(), weight_hash(value), {}});
    }
    return out;
}

std::vector<Weight> replaceable_weights(const Engine& engine) {
    std::vector<Weight> out = engine.source()->weights;
    std::vector<Weight> defaults = default_weights(engine);
    std::move(defaults.begin(), defaults.end(), std::back_inserter(out));
    return out;
}

std::shared_ptr<const Engine> refitted(const Engine& engine, const NamedTensors& weights,
                                       bool validate, int threads) {
    const RefitSource* from = engine.source().get();
    require(from != nullptr, ErrorCode::InvalidArgument,
            "the engine cannot be refitted: build it with a refit flag");
    engine.check_weights(); // the remaining weights
    const Replaceable known{*from, default_weights(engine)};
    for (const auto& [name, t] : weights) {
        const Weight* w = known.find(name);
        require(w != nullptr, ErrorCode::InvalidArgument, "the engine has no weights '", name, "'");
        check_weight(*w, t);
    }
    std::vector<std::string> missing = missing_weights(*from, weights);
    auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    ThreadPool pool(std::clamp(threads, 1, cores));
    if (validate && from->identical) {
        check_identical(known, weights, pool);
    }
    require(missing.empty(), ErrorCode::InvalidArgument, "weights ", listed_weights(missing),
            " are missing: set them too");
    NamedTensors copies = copied(weights, pool);
    auto source = std::make_shared<RefitSource>(*from);
    source->graph = std::make_shared<const Graph>(with_constants(*from->graph, copies));
    source->missing = false;
    Graph g = run_build_passes(*source->graph,
                               pipeline_options(source->precision, source->disabled_passes),
                               find_f32_layers(engine.metadata()));
    check_io_types(g, engine.graph());
    Properties metadata = engine.metadata();
    for (const Weight& w : known.defaults) {
        if (auto given = copies.find(w.name); given != copies.end()) {
            put_input_default(w.name, given->second, metadata);
        }
    }
    return engine.with_graph(std::move(g), std::move(metadata))->with_source(std::move(source));
}

} // namespace ingot
