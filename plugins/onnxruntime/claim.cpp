// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/claim.h"

#include "plugins/onnxruntime/partition.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ingot::ort {

namespace {

/// The inputs of a node, including those of its bodies.
std::vector<const OrtValueInfo*> read_by(const Host& host, const OrtNode* node) {
    std::vector<const OrtValueInfo*> read = inputs_of(host, node);
    for (const OrtValueInfo* v : implicit_inputs_of(host, node)) {
        read.push_back(v);
    }
    return read;
}

/// Integers of rank 0 or 1: typical operands of shape arithmetic.
bool is_shape_like(const Host& host, const OrtValueInfo* v) {
    ValueType t = type_of(host, v);
    constexpr int32_t int32_type = 6;
    constexpr int32_t int64_type = 7;
    return t.is_tensor && t.has_shape && t.dims.size() <= 1 &&
           (t.element == int64_type || t.element == int32_type);
}

/// Whether a group is too small to be worth two copies: one node, or shape arithmetic alone.
bool is_island(const Host& host, const std::vector<const OrtNode*>& nodes,
               std::span<const size_t> part) {
    if (part.size() == 1) {
        return subgraphs_of(host, nodes[part[0]]).empty();
    }
    return std::all_of(part.begin(), part.end(), [&](size_t i) {
        std::vector<const OrtValueInfo*> outputs = outputs_of(host, nodes[i]);
        return std::all_of(outputs.begin(), outputs.end(), [&](const OrtValueInfo* v) {
            return v == nullptr || is_shape_like(host, v);
        });
    });
}

/// Whether a result of these nodes, whose numbers rise, is one of the graph's, or other nodes read
/// it.
bool is_read(const Host& host, const std::vector<const OrtNode*>& nodes,
             std::span<const PartitionNode> parts, std::span<const size_t> taken,
             const std::unordered_set<std::string>& graph_outputs) {
    return std::any_of(taken.begin(), taken.end(), [&](size_t i) {
        std::vector<std::string> made = names_of(host, outputs_of(host, nodes[i]));
        const std::vector<size_t>& readers = parts[i].readers;
        return std::any_of(made.begin(), made.end(),
                           [&](const std::string& name) { return graph_outputs.contains(name); }) ||
               std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
                   return !std::binary_search(taken.begin(), taken.end(), reader);
               });
    });
}

std::vector<PartitionNode> partition_nodes(const Host& host,
                                           const std::vector<const OrtNode*>& nodes) {
    std::unordered_map<std::string, size_t> producers;
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const OrtValueInfo* v : outputs_of(host, nodes[i])) {
            producers.emplace(name_of(host, v), i);
        }
    }
    producers.erase("");
    std::vector<PartitionNode> out(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const OrtValueInfo* v : read_by(host, nodes[i])) {
            if (auto it = producers.find(name_of(host, v)); it != producers.end()) {
                out[it->second].readers.push_back(i);
            }
        }
    }
    return out;
}

/// A node beside others exchanges tensors only: refuses other kinds of values.
void refuse_other_kinds(const Host& host, const std::vector<const OrtNode*>& nodes,
                        std::vector<std::string>& reasons) {
    for (size_t i = 0; i < nodes.size(); ++i) {
        for (const OrtValueInfo* v : outputs_of(host, nodes[i])) {
            if (reasons[i].empty() && v != nullptr && !name_of(host, v).empty() &&
                !type_of(host, v).is_tensor) {
                reasons[i] = str("output '", name_of(host, v), "' is no tensor");
            }
        }
    }
}

/// From this release on, a fused node's inputs include those that its bodies alone read.
constexpr uint32_t hands_over_implicit_inputs = 28;

bool can_cross(const Host& host, const OrtValueInfo* v) {
    if (host.get_from<bool>(host.api->ValueInfo_IsConstantInitializer, v)) {
        return true;
    }
    ValueType t = type_of(host, v);
    return t.is_tensor && t.has_shape;
}

/// A group's inputs need a rank; inside a group, only Ingot must know it. Refuses the nodes that
/// read inputs without one; false when there are none.
bool refuse_unknown_inputs(const Host& host, const std::vector<const OrtNode*>& nodes,
                           std::span<const size_t> group, std::vector<std::string>& reasons) {
    std::unordered_set<std::string> made;
    std::unordered_set<std::string> handed_over; // by hosts that omit the inputs of bodies
    bool any = false;
    for (size_t i : group) {
        for (const OrtValueInfo* v : outputs_of(host, nodes[i])) {
            made.insert(name_of(host, v));
        }
        for (const OrtValueInfo* v : inputs_of(host, nodes[i])) {
            handed_over.insert(name_of(host, v));
        }
    }
    for (size_t i : group) {
        for (const OrtValueInfo* v : read_by(host, nodes[i])) {
            if (v != nullptr && !made.contains(name_of(host, v)) && !can_cross(host, v)) {
                reasons[i] = str("input '", name_of(host, v),
                                 "' comes from another part of the graph, and its rank is not "
                                 "known before the run");
                any = true;
            }
        }
        for (const OrtValueInfo* v : implicit_inputs_of(host, nodes[i])) {
            std::string name = name_of(host, v);
            if (host.version < hands_over_implicit_inputs && !made.contains(name) &&
                !handed_over.contains(name) &&
                !host.get_from<bool>(host.api->ValueInfo_IsConstantInitializer, v)) {
                reasons[i] = str("its body reads '", name, "', which ONNX Runtime before 1.",
                                 hands_over_implicit_inputs, " does not hand to providers");
                any = true;
            }
        }
    }
    return any;
}

/// Groups of supported nodes, each of which can be built by itself; refuses more nodes where that
/// needs it.
std::vector<std::vector<size_t>> groups_of(const Host& host,
                                           const std::vector<const OrtNode*>& nodes,
                                           std::vector<PartitionNode>& parts,
                                           std::vector<std::string>& reasons) {
    for (bool again = true; again;) {
        for (size_t i = 0; i < nodes.size(); ++i) {
            parts[i].supported = reasons[i].empty();
        }
        std::vector<std::vector<size_t>> groups = partition(parts);
        again = false;
        for (const std::vector<size_t>& group : groups) {
            again = refuse_unknown_inputs(host, nodes, group, reasons) || again;
        }
        if (!again) {
            return groups;
        }
    }
    return {};
}

/// The nodes of a group, without the parts that are islands in a larger graph.
std::vector<size_t> without_islands(const Host& host, const std::vector<const OrtNode*>& nodes,
                                    std::span<const PartitionNode> parts,
                                    const std::vector<size_t>& group,
                                    std::vector<std::string>& reasons) {
    bool whole = group.size() == nodes.size();
    std::vector<size_t> taken;
    for (const std::vector<size_t>& part : components(parts, group)) {
        if (whole || !is_island(host, nodes, part)) {
            taken.insert(taken.end(), part.begin(), part.end());
            continue;
        }
        for (size_t i : part) {
            reasons[i] = "it is not worth the copies between devices";
        }
    }
    std::sort(taken.begin(), taken.end());
    return taken;
}

} // namespace

Claim claim_graph(const Host& host, const OrtGraph* graph, const Options& options,
                  const std::shared_ptr<ApiLogger>& logger) {
    Claim claim;
    std::vector<const OrtNode*> nodes = nodes_of(host, graph);
    claim.nodes = nodes.size();
    if (nodes.empty()) {
        return claim;
    }
    OnnxModelRequest request;
    request.nodes = nodes;
    request.outputs = outputs_of(host, nodes.back());
    std::erase(request.outputs, nullptr);
    request.value_types = true;
    OnnxModel model = onnx_model(host, graph, request);
    std::vector<std::string> reasons = claim_nodes(model, nodes.size(), logger);
    refuse_other_kinds(host, nodes, reasons);
    auto excluded = options.excluded_types();
    for (size_t i = 0; i < nodes.size() && !excluded.empty(); ++i) {
        if (excluded.contains(text_of(host, nodes[i]).type)) {
            reasons[i] = "nv_op_types_to_exclude names it";
        }
    }
    std::vector<PartitionNode> parts = partition_nodes(host, nodes);
    std::vector<std::string> names = names_of(host, outputs_of(host, graph));
    std::unordered_set<std::string> outputs(names.begin(), names.end());
    for (const std::vector<size_t>& group : groups_of(host, nodes, parts, reasons)) {
        std::vector<size_t> taken = without_islands(host, nodes, parts, group, reasons);
        if (!is_read(host, nodes, parts, taken, outputs)) {
            for (size_t i : taken) {
                reasons[i] = "nothing reads its results";
            }
            continue; // ONNX Runtime keeps such nodes, and an engine has outputs
        }
        claim.claimed += taken.size();
        auto& out = claim.groups.emplace_back();
        for (size_t i : taken) {
            out.push_back(nodes[i]);
        }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (!reasons[i].empty()) {
            NodeText t = text_of(host, nodes[i]);
            Claim::Left& left = claim.left[t.domain.empty() ? t.type : t.domain + "." + t.type];
            if (left.count++ == 0) {
                left.first = described(host, nodes[i]);
                left.reason = reasons[i];
            }
        }
    }
    return claim;
}

std::string left_table(const Claim& claim) {
    std::string text;
    for (const auto& [type, left] : claim.left) {
        text += str(text.empty() ? "" : "\n", "  ", type, " x ", left.count, ", first ", left.first,
                    ": ", left.reason);
    }
    return text;
}

} // namespace ingot::ort
