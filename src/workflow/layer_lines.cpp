// SPDX-License-Identifier: Apache-2.0
// The layers of a plan in the inspector's format: lines and JSON.
#include "base/json.h"
#include "workflow/timing.h"

#include <algorithm>

namespace ingot {

namespace {

/// "f32[1,16,8,8] strides [1024,1,128,16] 'x'" as the inspector's JSON for a tensor.
Json operand_json(std::string text) {
    size_t quote = text.find(" '");
    std::string name;
    if (quote != std::string::npos) {
        name = text.substr(quote + 2, text.size() - quote - 3);
        text.resize(quote);
    }
    size_t open = std::min(text.find('['), text.size());
    size_t close = std::min(text.find(']'), text.size());
    Json dims = Json::list();
    for (size_t at = open + 1; at < close;) {
        size_t end = std::min(text.find(',', at), close);
        std::string one = text.substr(at, end - at);
        bool known = one.find_first_not_of("0123456789") == std::string::npos;
        dims.add(known ? Json(std::stoll(one)) : Json(one));
        at = end + 1;
    }
    std::string layout = text.substr(std::min(close + 1, text.size()));
    Json j;
    j.set("Name", std::move(name));
    j.set("Dimensions", std::move(dims));
    j.set("Format/Datatype", text.substr(0, open) + (layout.empty() ? " row major" : layout));
    return j;
}

Json operands_json(const std::vector<std::string>& operands) {
    Json list = Json::list();
    for (const std::string& text : operands) {
        list.add(operand_json(text));
    }
    return list;
}

} // namespace

namespace {

/// "conv1 + relu1" -> "[ONNX Layer: conv1]\x1e[ONNX Layer: relu1]", the inspector's list of
/// origins.
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

Json to_json(const StepInfo& s, bool detailed) {
    if (!detailed) {
        return layer_name(s);
    }
    Json j;
    j.set("Name", layer_name(s));
    j.set("LayerType", s.kernel);
    j.set("Inputs", operands_json(s.inputs));
    j.set("Outputs", operands_json(s.outputs));
    j.set("ParameterType", s.kernel);
    j.set("TacticName", s.implementation);
    j.set("StreamId", 0);
    j.set("Metadata", onnx_nodes(s.name));
    return j;
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
    Json j;
    Json& layers = j.set("Layers", Json::list());
    for (const StepInfo& s : steps) {
        layers.add(to_json(s, detailed));
    }
    Json& io = j.set("I/O Tensors", Json::list());
    for (Value v : engine.inputs()) {
        io.add(engine.value_name(v));
    }
    for (const std::string& n : engine.output_names()) {
        io.add(n);
    }
    return j.dump(1);
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
