// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "ir/rewrite.h"
#include "ops/ops.h"
#include "plan/device_parts.h"

#include <algorithm>
#include <cstdlib>

namespace ingot {

const Weight* RefitSource::find(std::string_view name) const {
    auto it = std::find_if(weights.begin(), weights.end(),
                           [&](const Weight& w) { return w.name == name; });
    return it == weights.end() ? nullptr : &*it;
}

int64_t RefitSource::bytes() const {
    int64_t sum = 0;
    for (const Weight& w : weights) {
        sum += w.bytes();
    }
    return sum;
}

std::string weight_hash(const Tensor& t) {
    return to_text(xxh3_128(t.bytes()));
}

namespace {

// f(name, tensor, is used) for every named constant, bodies included.
template <class F>
void visit_named(const Graph& g, const F& f) {
    std::vector<uint32_t> uses = use_counts(g);
    for (const Node& n : g.nodes()) {
        if (n.is(constant_def) && !g.value_name(n.outputs[0]).empty()) {
            f(g.value_name(n.outputs[0]), n.as<Constant>().value, uses[n.outputs[0].id] > 0);
        }
        for (const GraphRef& body : bodies(n)) {
            visit_named(*body, f);
        }
    }
}

// All constants that share a name.
struct Found {
    Tensor tensor;
    std::string hash;
    bool used = false;
    bool several = false; // with different contents
};

} // namespace

RefitSource refit_source(const Graph& g, const RefitRequest& request) {
    std::map<std::string, Found, std::less<>> found;
    std::vector<std::string> order;
    visit_named(g, [&](const std::string& name, const Tensor& t, bool used) {
        auto [it, fresh] = found.emplace(name, Found{});
        Found& f = it->second;
        if (fresh) {
            f = {t, weight_hash(t), used, false};
            order.push_back(name);
            return;
        }
        f.used = f.used || used;
        f.several = f.several || !(f.tensor.type() == t.type()) || f.hash != weight_hash(t);
    });
    RefitSource source;
    source.identical = request.identical;
    source.stripped = request.stripped;
    for (const std::string& name : order) {
        const Found& f = found.at(name);
        bool asked = !request.only_named || request.named.contains(name);
        bool possible =
            f.used && !f.several && f.tensor.count() > 0 && !request.read.contains(name);
        require(possible || !request.only_named || !asked, ErrorCode::InvalidArgument, "weights '",
                name, "' are marked as refittable, but ",
                request.read.contains(name) ? "the network was built from their values"
                : f.used                    ? "several constants share their name"
                                            : "nothing uses them",
                "; unmark them");
        if (!asked || !possible) {
            source.fixed.emplace(name, f.several ? std::string() : f.hash);
            continue;
        }
        auto uses = request.uses.find(name);
        constexpr int32_t constant_role = 4;
        source.weights.push_back({name, f.tensor.dtype(), f.tensor.shape(), f.hash,
                                  uses != request.uses.end()
                                      ? uses->second
                                      : std::vector<WeightUse>{{name, constant_role}}});
    }
    for (const std::string& name : request.named) {
        require(!request.only_named || found.contains(name), ErrorCode::InvalidArgument,
                "weights '", name,
                "' are marked as refittable, but the network does not have them");
    }
    source.graph = std::make_shared<const Graph>(g);
    return source;
}

// --- replacement --- -----------------------------------------------------------------------------

namespace {

using NewValue = std::function<std::optional<Tensor>(const std::string& name, const Tensor& t)>;

Graph with_values(const Graph& g, const NewValue& value) {
    return rewrite_all(g, [&](const Graph& part) {
        return rewrite(part, [&](Rewriter& r, const Node& n, std::span<const Value>) {
            std::optional<Tensor> t;
            if (n.is(constant_def)) {
                t = value(part.value_name(n.outputs[0]), n.as<Constant>().value);
            }
            return t ? std::optional(Values{ops::constant(r.out(), *t)}) : std::nullopt;
        });
    });
}

// These may hold sizes, which must not change.
bool may_be_sizes(const Tensor& t) {
    constexpr int64_t most = 1024;
    return !is_float(t.dtype()) && bit_width(t.dtype()) != 4 && t.dtype() != DType::I8 &&
           t.dtype() != DType::U8 && t.count() <= most;
}

} // namespace

Graph with_constants(const Graph& g, const NamedTensors& values) {
    return with_values(g, [&](const std::string& name, const Tensor&) {
        auto it = values.find(name);
        return it == values.end() ? std::nullopt : std::optional(it->second);
    });
}

NamedTensors named_constants(const Graph& g) {
    NamedTensors out;
    visit_named(g, [&](const std::string& name, const Tensor& t, bool) { out.emplace(name, t); });
    return out;
}

Tensor AbsentTensors::make(DType dtype, const Shape& shape) {
    auto bytes = static_cast<size_t>(byte_size(dtype, count_of(shape)));
    constexpr size_t alignment = 64;
    if (zeros_ == nullptr || bytes > bytes_) {
        // The system never allocates pages of a large block that nobody writes.
        std::shared_ptr<void> block(std::calloc(bytes + alignment, 1), std::free);
        require(block != nullptr, ErrorCode::OutOfMemory, "there are no ", bytes,
                " bytes for missing weights");
        auto at = reinterpret_cast<uintptr_t>(block.get());
        zeros_ = static_cast<std::byte*>(block.get()) + (alignment - at % alignment) % alignment;
        bytes_ = bytes;
        blocks_.emplace(zeros_, std::move(block));
    }
    return Tensor::wrap(dtype, shape, {zeros_, bytes}, blocks_.at(zeros_));
}

bool AbsentTensors::has(const Tensor& t) const {
    return blocks_.contains(t.bytes().data());
}

Graph without_weights(const RefitSource& source, AbsentTensors& absent) {
    std::map<std::string, const Weight*, std::less<>> names;
    for (const Weight& w : source.weights) {
        names.emplace(w.name, &w);
    }
    return with_values(*source.graph, [&](const std::string& name, const Tensor& t) {
        return names.contains(name) ? std::optional(absent.make(t.dtype(), t.shape()))
                                    : std::nullopt;
    });
}

Graph without_weights(const Graph& optimised, AbsentTensors& absent) {
    return with_values(optimised, [&](const std::string&, const Tensor& t) {
        return may_be_sizes(t) ? std::nullopt : std::optional(absent.make(t.dtype(), t.shape()));
    });
}

int64_t streamable_weight_bytes(const Graph& g) {
    int64_t bytes = 0;
    std::set<const std::byte*> seen;
    visit_nodes(g, [&](const Graph&, const Node& n) {
        std::span<const std::byte> b =
            n.is(constant_def) ? n.as<Constant>().value.bytes() : std::span<const std::byte>();
        if (b.size() >= streamable_bytes && seen.insert(b.data()).second) {
            bytes += static_cast<int64_t>(b.size());
        }
    });
    return bytes;
}

// --- text ----------------------------------------------------------------------------------------

std::string to_json_text(const RefitSource& source, bool missing) {
    Json j;
    j.set("disabled_passes", source.disabled_passes);
    j.set("fixed", source.fixed);
    j.set("identical", source.identical);
    j.set("missing", missing);
    j.set("precision", name(source.precision));
    j.set("stripped", source.stripped);
    Json& weights = j.set("weights", Json::list());
    for (const Weight& w : source.weights) {
        Json& weight = weights.add();
        weight.set("hash", w.hash);
        weight.set("name", w.name);
        weight.set("shape", w.shape);
        weight.set("type", name(w.dtype));
        Json& uses = weight.set("uses", Json::list());
        for (const WeightUse& u : w.uses) {
            Json& use = uses.add();
            use.add(u.layer);
            use.add(u.role);
        }
    }
    return j.dump();
}

RefitSource refit_source_from_json(std::string_view text) {
    Json j = Json::parse(text);
    auto dtype = [](const Json& from) {
        auto type = parse_dtype(from.get<std::string>());
        require(type.has_value(), ErrorCode::InvalidEngine, "there is no type '",
                from.get<std::string>(), "'");
        return *type;
    };
    RefitSource s;
    for (const Json& w : j.at("weights").items()) {
        Weight weight{w.at("name").get<std::string>(),
                      dtype(w.at("type")),
                      w.at("shape").get<Shape>(),
                      w.at("hash").get<std::string>(),
                      {}};
        for (const Json& u : w.at("uses").items()) {
            weight.uses.push_back({u.at(0).get<std::string>(), u.at(1).get<int32_t>()});
        }
        s.weights.push_back(std::move(weight));
    }
    s.fixed = j.at("fixed").get<decltype(s.fixed)>();
    s.identical = j.at("identical").get<bool>();
    s.stripped = j.at("stripped").get<bool>();
    s.missing = j.at("missing").get<bool>();
    s.precision = dtype(j.at("precision"));
    s.disabled_passes = j.at("disabled_passes").get<std::vector<std::string>>();
    return s;
}

} // namespace ingot
