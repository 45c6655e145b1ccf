// SPDX-License-Identifier: Apache-2.0
#include "workflow/layer_types.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "ir/rewrite.h"
#include "ops/fence.h"

#include <map>
#include <optional>
#include <set>

namespace ingot {

namespace {

using TypesByName = std::map<std::string, DType, std::less<>>;

DType parse_type_name(std::string_view option, std::string_view entry, std::string_view name) {
    if (name == "fp32") {
        return DType::F32;
    }
    if (name == "fp16") {
        return DType::F16;
    }
    require(name == "bf16", ErrorCode::InvalidArgument, option, ": '", entry,
            "': expected NAME:fp32, NAME:fp16 or NAME:bf16");
    return DType::BF16;
}

TypesByName parse_list(std::string_view option, std::string_view list) {
    TypesByName types;
    while (!list.empty()) {
        std::string_view entry = list.substr(0, list.find(','));
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
        size_t colon = entry.rfind(':'); // names may contain colons
        require(colon != std::string_view::npos && colon > 0, ErrorCode::InvalidArgument, option,
                ": '", entry, "': expected NAME:fp32, NAME:fp16 or NAME:bf16");
        types.insert_or_assign(std::string(entry.substr(0, colon)),
                               parse_type_name(option, entry, entry.substr(colon + 1)));
    }
    return types;
}

class Holding {
public:
    Holding(const Graph& g, const LayerTypes& t, DType build)
        : g_(g), precisions_(parse_list("--layerPrecisions", t.precisions)),
          results_(parse_list("--layerOutputTypes", t.output_types)), rule_(t.rule), build_(build) {
    }

    Graph run() {
        check("--layerPrecisions", precisions_);
        check("--layerOutputTypes", results_);
        return rewrite(g_, [this](Rewriter& r, const Node& n, std::span<const Value> in) {
            return is_held(n) ? std::optional(hold(r, n, in)) : std::nullopt;
        });
    }

private:
    template <class... Text>
    void complain(const Text&... text) const {
        require(rule_ != LayerTypeRule::Obey, ErrorCode::InvalidArgument, text...);
        log(LogLevel::Warning, text...);
    }

    void check(std::string_view option, const TypesByName& types) const {
        std::set<std::string_view> names;
        for (const Node& n : g_.nodes()) {
            names.insert(n.name);
        }
        for (const auto& [name, type] : types) {
            if (name != "*" && names.count(name) == 0) {
                complain(option, ": the model has no layer '", name,
                         "'; ingot inspect lists the names");
            }
            if (type != DType::F32 && type != build_) {
                complain(option, ": layer '", name, "' cannot be in ", type, " in a build in ",
                         build_, "; build with ", type == DType::F16 ? "--fp16" : "--bf16");
            }
        }
    }

    static std::optional<DType> find(const TypesByName& types, const std::string& name) {
        auto it = types.find(name);
        it = it == types.end() ? types.find("*") : it;
        return it == types.end() ? std::nullopt : std::optional(it->second);
    }

    bool is_held(const Node& n) const {
        std::optional<DType> type = find(precisions_, n.name);
        type = type ? type : find(results_, n.name);
        return !n.name.empty() && type == DType::F32;
    }

    Values hold(Rewriter& r, const Node& n, std::span<const Value> in) {
        Graph& out = r.out();
        out.set_origin(n.name);
        Values operands;
        for (Value v : in) {
            operands.push_back(fences_.enter(out, v));
        }
        Values made = r.copy(n, operands);
        for (Value& v : made) {
            v = fences_.leave(out, v);
        }
        return made;
    }

    const Graph& g_;
    TypesByName precisions_;
    TypesByName results_;
    LayerTypeRule rule_;
    DType build_;
    ops::Fences fences_;
};

} // namespace

Graph hold_layer_types(const Graph& g, const LayerTypes& types, DType build) {
    bool any = !types.precisions.empty() || !types.output_types.empty();
    return any && types.rule != LayerTypeRule::None ? Holding(g, types, build).run() : g;
}

} // namespace ingot
