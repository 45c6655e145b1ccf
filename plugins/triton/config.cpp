// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/config.h"

#include "plugins/triton/fields.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace ingot::triton {

namespace {

using Object = nlohmann::ordered_json;

constexpr const char* schedulers[] = {"dynamic_batching", "sequence_batching",
                                      "ensemble_scheduling"};

/// Runs f; what nlohmann throws says that the configuration has another form than expected.
template <class F>
auto with_json(F&& f) {
    try {
        return f();
    } catch (const Object::exception& e) {
        fail(ErrorCode::InvalidArgument, "the configuration cannot be read: ", e.what());
    }
}

/// Numbers of 64 bits come as numbers or, from some versions, as text.
int64_t integer(const Object& v) {
    if (!v.is_string()) {
        return v.get<int64_t>();
    }
    auto text = v.get<std::string>();
    int64_t out = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    require(error == std::errc() && at == text.data() + text.size(), ErrorCode::InvalidArgument,
            "the configuration has '", text, "' where a number is expected");
    return out;
}

std::vector<int64_t> integers(const Object& list) {
    std::vector<int64_t> out;
    for (const Object& v : list) {
        out.push_back(integer(v));
    }
    return out;
}

const Object* find(const Object& o, const char* key) {
    auto at = o.find(key);
    return at == o.end() || at->is_null() ? nullptr : &*at;
}

bool is_set(const Object& o, const char* key) {
    const Object* v = find(o, key);
    return v != nullptr && v->is_boolean() && v->get<bool>();
}

ConfigTensor read_tensor(const Object& o, const char* list) {
    ConfigTensor t;
    t.name = o.value("name", "");
    t.type = o.value("data_type", "");
    t.dims = integers(o.value("dims", Object::array()));
    if (const Object* reshape = find(o, "reshape")) {
        t.dims = integers(reshape->value("shape", Object::array()));
    }
    t.is_shape_tensor = is_set(o, "is_shape_tensor");
    auto refuse_field = [&](const char* field, const char* why) {
        fail(ErrorCode::Unsupported, list, " '", t.name, "' has ", field, ": ", why);
    };
    t.is_ragged = is_set(o, "allow_ragged_batch");
    if (is_set(o, "optional")) {
        refuse_field("optional", "an engine needs all of its inputs; leave the field out");
    }
    if (is_set(o, "is_non_linear_format_io")) {
        refuse_field("is_non_linear_format_io", "clients send and get rows");
    }
    return t;
}

/// The type of a control: its own, or that of the pair of values for false and true.
std::string control_type(const Object& control) {
    for (const auto& [field, type] :
         {std::pair("int32_false_true", "TYPE_INT32"), std::pair("fp32_false_true", "TYPE_FP32"),
          std::pair("bool_false_true", "TYPE_BOOL")}) {
        if (const Object* pair = find(control, field); pair != nullptr && !pair->empty()) {
            return type;
        }
    }
    return control.value("data_type", "");
}

void read_sequences(const Object& o, ModelConfig& out) {
    for (const Object& input : o.value("control_input", Object::array())) {
        for (const Object& control : input.value("control", Object::array())) {
            out.controls.push_back({input.value("name", ""), control_type(control), {1}});
        }
    }
    for (const Object& state : o.value("state", Object::array())) {
        out.states.push_back({state.value("input_name", ""), state.value("output_name", ""),
                              state.value("data_type", ""),
                              integers(state.value("dims", Object::array()))});
    }
}

void read_groups(const Object& groups, ModelConfig& out) {
    for (const Object& group : groups) {
        if (group.value("kind", "") == "KIND_CPU") {
            std::string policy = group.value("host_policy", "");
            out.cpu_instances[policy.empty() ? "cpu" : policy] += group.value("count", 1);
        }
        for (const Object& profile : group.value("profile", Object::array())) {
            out.profile = static_cast<int32_t>(integer(profile));
        }
        require(group.value("profile", Object::array()).size() <= 1, ErrorCode::Unsupported,
                "instance_group '", group.value("name", ""),
                "' names several profiles: name one, an instance runs with one");
    }
}

std::map<std::string, std::string> parameter_texts(const Object& parameters) {
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : parameters.items()) {
        out.emplace(key, value.value("string_value", ""));
    }
    return out;
}

/// The kind by its name in a configuration.
BatchInputKind batch_input_kind(const std::string& name) {
    constexpr std::pair<std::string_view, BatchInputKind> kinds[] = {
        {"BATCH_ELEMENT_COUNT", BatchInputKind::ElementCount},
        {"BATCH_ACCUMULATED_ELEMENT_COUNT", BatchInputKind::AccumulatedElementCount},
        {"BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
         BatchInputKind::AccumulatedElementCountWithZero},
        {"BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", BatchInputKind::MaxElementCountAsShape},
        {"BATCH_ITEM_SHAPE", BatchInputKind::ItemShape},
        {"BATCH_ITEM_SHAPE_FLATTEN", BatchInputKind::ItemShapeFlatten},
    };
    for (const auto& [known, kind] : kinds) {
        if (name == known) {
            return kind;
        }
    }
    fail(ErrorCode::Unsupported, "batch_input has the kind ", name,
         ", which is unknown to this backend");
}

std::string only_name(const Object& o, const char* list, const char* field) {
    auto names = o.value(field, std::vector<std::string>());
    require(names.size() == 1, ErrorCode::InvalidArgument, list, ": one ", field,
            " is expected, got ", names.size());
    return names[0];
}

void read_batch_tensors(const Object& o, ModelConfig& out) {
    for (const Object& b : o.value("batch_input", Object::array())) {
        out.batch_inputs.push_back(
            {batch_input_kind(b.value("kind", "")), only_name(b, "batch_input", "target_name"),
             only_name(b, "batch_input", "source_input"), b.value("data_type", "")});
    }
    for (const Object& b : o.value("batch_output", Object::array())) {
        out.batch_outputs.push_back({only_name(b, "batch_output", "target_name"),
                                     only_name(b, "batch_output", "source_input")});
    }
}

/// Refuses fields that ask for missing features.
void refuse_fields(const Object& o) {
    if (const Object* policy = find(o, "model_transaction_policy")) {
        require(!is_set(*policy, "decoupled"), ErrorCode::Unsupported,
                "model_transaction_policy.decoupled is set: an engine gives one response to each "
                "request");
    }
}

/// Fields that the server fills in itself, or that are refused or read elsewhere, are not reported.
bool is_default(const std::string& name, const Object& value) {
    return value.is_null() || value == Object(false) || value == Object(0) ||
           value == Object("PRIORITY_DEFAULT") || (value.is_structured() && value.empty()) ||
           name == "input_pinned_memory" || name == "output_pinned_memory" ||
           name == "execution_accelerators";
}

void read_precision(const std::string& text, ModelConfig& out) {
    require(text == "FP32" || text == "FP16", ErrorCode::Unsupported, "precision_mode ", text,
            " is refused: FP32 and FP16 are served; build an engine with ingot build --int8 "
            "--calib for others");
    out.fp16 = text == "FP16";
}

void read_accelerators(const Object& list, ModelConfig& out) {
    for (const Object& accelerator : list) {
        std::string name = accelerator.value("name", "");
        if (name != "tensorrt") {
            out.notes.push_back(
                str("accelerator '", name, "' has no effect: Ingot runs the model"));
            continue;
        }
        Object parameters = accelerator.value("parameters", Object::object());
        for (const auto& [key, value] : parameters.items()) {
            judge_field(Place::Accelerator, key, out.notes);
            if (key == "precision_mode") {
                read_precision(value.get<std::string>(), out);
            }
        }
    }
}

void read_optimization(const Object& o, ModelConfig& out) {
    for (const auto& [name, value] : o.items()) {
        if (!is_default(name, value)) {
            judge_field(Place::Optimization, name, out.notes);
        }
    }
    if (const Object* accelerators = find(o, "execution_accelerators")) {
        for (const char* list : {"gpu_execution_accelerator", "cpu_execution_accelerator"}) {
            read_accelerators(accelerators->value(list, Object::array()), out);
        }
    }
}

Object tensor_entry(const EngineTensor& t, bool batched) {
    Object out;
    out["name"] = t.name;
    out["data_type"] = std::string(config_type(t.type));
    std::vector<int64_t> dims(t.dims.begin() + (batched ? 1 : 0), t.dims.end());
    if (dims.empty()) { // the server takes no tensor without sizes
        out["dims"] = {1};
        if (batched) { // else refused, too: check_config() and Batch know that one element is meant
            out["reshape"]["shape"] = Object::array();
        }
    } else {
        out["dims"] = dims;
    }
    return out;
}

/// Whether what is written has the engine's rank less the rows of a batch.
bool written_without_rows(const ModelConfig& config, const Engine& engine) {
    auto lacks_rows = [](const EngineTensor* found, const auto& written) {
        return found != nullptr && written.dims.size() + 1 == found->dims.size();
    };
    return std::all_of(config.inputs.begin(), config.inputs.end(),
                       [&](auto& t) { return lacks_rows(engine.find_input(t.name), t); }) &&
           std::all_of(config.outputs.begin(), config.outputs.end(),
                       [&](auto& t) { return lacks_rows(engine.find_output(t.name), t); }) &&
           std::all_of(config.states.begin(), config.states.end(),
                       [&](auto& t) { return lacks_rows(engine.find_input(t.input), t); });
}

/// The tensors that clients send or get: the server has those of sequences itself.
Object client_tensors(const std::vector<EngineTensor>& tensors, const ModelConfig& config,
                      bool batched) {
    Object out = Object::array();
    for (const EngineTensor& t : tensors) {
        bool is_control = std::any_of(config.controls.begin(), config.controls.end(),
                                      [&](auto& c) { return c.name == t.name; });
        bool is_state = std::any_of(config.states.begin(), config.states.end(), [&](auto& s) {
            return s.input == t.name || s.output == t.name;
        });
        if (!is_control && !is_state && config.find_batch_input(t.name) == nullptr) {
            out.push_back(tensor_entry(t, batched));
        }
    }
    return out;
}

} // namespace

bool ModelConfig::has_ragged() const {
    return std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.is_ragged; });
}

bool ModelConfig::is_ragged(std::string_view input) const {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](auto& t) { return t.is_ragged && t.name == input; });
}

const BatchInput* ModelConfig::find_batch_input(std::string_view target) const {
    auto at = std::find_if(batch_inputs.begin(), batch_inputs.end(),
                           [&](auto& b) { return b.target == target; });
    return at == batch_inputs.end() ? nullptr : &*at;
}

const BatchOutput* ModelConfig::find_batch_output(std::string_view target) const {
    auto at = std::find_if(batch_outputs.begin(), batch_outputs.end(),
                           [&](auto& b) { return b.target == target; });
    return at == batch_outputs.end() ? nullptr : &*at;
}

ModelConfig read_config(const std::string& json) {
    return with_json([&] {
        Object o = Object::parse(json);
        ModelConfig out;
        out.json = json;
        out.name = o.value("name", "");
        if (const Object* batch = find(o, "max_batch_size")) {
            out.max_batch_size = integer(*batch);
        }
        for (const Object& t : o.value("input", Object::array())) {
            out.inputs.push_back(read_tensor(t, "input"));
        }
        for (const Object& t : o.value("output", Object::array())) {
            out.outputs.push_back(read_tensor(t, "output"));
        }
        for (const char* scheduler : schedulers) {
            out.has_scheduler = out.has_scheduler || find(o, scheduler) != nullptr;
        }
        if (const Object* sequences = find(o, "sequence_batching")) {
            read_sequences(*sequences, out);
        }
        read_batch_tensors(o, out);
        out.file = o.value("default_model_filename", "");
        read_groups(o.value("instance_group", Object::array()), out);
        refuse_fields(o);
        out.parameters =
            read_parameters(parameter_texts(o.value("parameters", Object::object())), out.notes);
        read_optimization(o.value("optimization", Object::object()), out);
        if (!o.value("cc_model_filenames", Object::object()).empty()) {
            out.notes.emplace_back("cc_model_filenames has no effect: one file serves every GPU");
        }
        return out;
    });
}

std::optional<std::string> complete_config(const ModelConfig& config, const Engine& engine,
                                           int64_t default_batch) {
    return with_json([&]() -> std::optional<std::string> {
        Object o = Object::parse(config.json);
        int64_t batch = config.max_batch_size;
        if (batch == 0 && engine.takes_batches() && written_without_rows(config, engine)) {
            batch = engine.most_rows() > 0 ? engine.most_rows() : default_batch;
        }
        bool changed = batch != config.max_batch_size;
        o["max_batch_size"] = batch;
        if (config.inputs.empty()) {
            o["input"] = client_tensors(engine.inputs, config, batch > 0);
            changed = true;
        }
        if (config.outputs.empty()) {
            o["output"] = client_tensors(engine.outputs, config, batch > 0);
            changed = true;
        }
        if (batch > 1 && !config.has_scheduler) {
            o["dynamic_batching"] = Object::object();
            changed = true;
        }
        return changed ? std::optional(o.dump()) : std::nullopt;
    });
}

} // namespace ingot::triton
