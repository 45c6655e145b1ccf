// SPDX-License-Identifier: Apache-2.0
// The layers of a plan as inspectors write them: lines and JSON.
#include "workflow/timing.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ingot {

namespace {

/// "f32[1,16,8,8] strides [1024,1,128,16]" as what an inspector says of a tensor.
nlohmann::ordered_json operand_json(const std::string& text) {
    size_t open = std::min(text.find('['), text.size());
    size_t close = std::min(text.find(']'), text.size());
    nlohmann::json dims = nlohmann::json::array();
    for (size_t at = open + 1; at < close;) {
        size_t end = std::min(text.find(',', at), close);
        std::string one = text.substr(at, end - at);
        bool known = one.find_first_not_of("0123456789") == std::string::npos;
        dims.push_back(known ? nlohmann::json(std::stoll(one)) : nlohmann::json(one));
        at = end + 1;
    }
    std::string layout = text.substr(std::min(close + 1, text.size()));
    return {{"Dimensions", dims},
            {"Format/Datatype", text.substr(0, open) + (layout.empty() ? " row major" : layout)}};
}

nlohmann::ordered_json operands_json(const std::vector<std::string>& operands) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const std::string& text : operands) {
        list.push_back(operand_json(text));
    }
    return list;
}

} // namespace

namespace {

/// "conv1 + relu1" -> "[ONNX Layer: conv1]\x1e[ONNX Layer: relu1]", as inspectors list origins.
std::string onnx_nodes(const std::string& name) {
    constexpr std::string_view plus = " + ";
    std::string out;
    for (size_t at = 0; at < name.size();) {
        size_t end = std::min(name.find(plus, at), name.size());
        append(out,
               str(out.empty() ? "" : "\x1e", "[ONNX Layer: ", name.substr(at, end - at), "]"));
        at = end + plus.size();
    }
    return out;
}

std::string layer_name(const StepInfo& s) {
    return s.name.empty() ? s.kernel : s.name;
}

nlohmann::ordered_json to_json(const StepInfo& s, bool detailed) {
    if (!detailed) {
        return layer_name(s);
    }
    return {{"Name", layer_name(s)},
            {"LayerType", s.kernel},
            {"Inputs", operands_json(s.inputs)},
            {"Outputs", operands_json(s.outputs)},
            {"ParameterType", s.kernel},
            {"TacticName", s.implementation},
            {"StreamId", 0},
            {"Metadata", onnx_nodes(s.name)}};
}

} // namespace

std::string layer_json(const StepInfo& step, bool detailed) {
    return to_json(step, detailed).dump(1);
}

std::string layer_line(const StepInfo& step, bool detailed) {
    if (!detailed) {
        return layer_name(step);
    }
    return str("Name: ", layer_name(step), ", LayerType: ", step.kernel, ", Inputs: [ ",
               join(step.inputs, ", "), " ], Outputs: [ ", join(step.outputs, ", "),
               " ], TacticName: ", step.implementation);
}

std::string layers_json(const Graph& engine, const std::vector<StepInfo>& steps, bool detailed) {
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (const StepInfo& s : steps) {
        layers.push_back(to_json(s, detailed));
    }
    nlohmann::json io = nlohmann::json::array();
    for (Value v : engine.inputs()) {
        io.push_back(engine.value_name(v));
    }
    for (const std::string& n : engine.output_names()) {
        io.push_back(n);
    }
    return nlohmann::ordered_json{{"Layers", layers}, {"I/O Tensors", io}}.dump(1);
}

std::string layers_json(const Context& context, const std::vector<StepInfo>& steps, bool detailed) {
    return layers_json(context.engine().graph(), steps, detailed);
}

std::vector<std::string> layer_lines(const Graph& engine, const std::vector<StepInfo>& steps,
                                     bool detailed) {
    std::vector<std::string> out = {"Layers:"};
    for (const StepInfo& s : steps) {
        out.push_back(layer_line(s, detailed));
    }
    out.emplace_back();
    out.emplace_back("Bindings:");
    for (Value v : engine.inputs()) {
        out.push_back(engine.value_name(v));
    }
    out.insert(out.end(), engine.output_names().begin(), engine.output_names().end());
    return out;
}

std::vector<std::string> layer_lines(const Context& context, const std::vector<StepInfo>& steps,
                                     bool detailed) {
    return layer_lines(context.engine().graph(), steps, detailed);
}

} // namespace ingot
