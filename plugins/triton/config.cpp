// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/config.h"

#include "base/json.h"
#include "plugins/triton/fields.h"

#include <algorithm>
#include <charconv>

namespace ingot::triton {

namespace {

constexpr const char* schedulers[] = {"dynamic_batching", "sequence_batching",
                                      "ensemble_scheduling"};

constexpr int most_levels = 100; // protobuf's own limit

/// Errors say that the configuration has another form than expected.
template <class F>
decltype(auto) with_json(F&& f) {
    return with_place([] { return std::string("the configuration cannot be read"); }, f);
}

/// The same with quotes around numbers that Json does not hold: fractions, and more than 64 bits.
/// The server reads a number and its text alike.
std::string quote_other_numbers(std::string_view json) {
    std::string out;
    for (size_t at = 0; at < json.size();) {
        size_t end = at + 1;
        bool quoted = false;
        if (json[at] == '"') {
            while (end < json.size() && json[end] != '"') {
                end += json[end] == '\\' ? 2 : 1;
            }
            end = std::min(end + 1, json.size());
        } else if (json[at] == '-' || (json[at] >= '0' && json[at] <= '9')) {
            end = std::min(json.find_first_not_of("+-.0123456789eE", at), json.size());
            int64_t value = 0;
            auto [stop, error] = std::from_chars(json.data() + at, json.data() + end, value);
            quoted = error != std::errc() || stop != json.data() + end;
        }
        out += str(quoted ? "\"" : "", json.substr(at, end - at), quoted ? "\"" : "");
        at = end;
    }
    return out;
}

Json parse(const std::string& json) {
    return with_json([&] {
        Json o = Json::parse(quote_other_numbers(json), most_levels);
        o.members(); // an object, and nothing else
        return o;
    });
}

bool is_null(const Json& v) {
    return v.dump() == "null";
}

bool is_text(const Json& v) {
    return v.dump().starts_with('"');
}

/// Null for a member that is absent or null.
const Json* find(const Json& o, const char* key) {
    return with_json([&] {
        const Json* found = o.find(key);
        return found == nullptr || is_null(*found) ? nullptr : found;
    });
}

std::string text_of(const Json& v) {
    return with_json([&] { return v.get<std::string>(); });
}

/// "" for a member that is absent, as in the next two.
std::string text_of(const Json& o, const char* key) {
    const Json* found = find(o, key);
    return found == nullptr ? "" : text_of(*found);
}

const Json::List& list_of(const Json& o, const char* key) {
    static const Json::List none;
    const Json* found = find(o, key);
    return found == nullptr ? none
                            : with_json([&]() -> const Json::List& { return found->items(); });
}

const Json::Members& members_of(const Json& o, const char* key) {
    static const Json::Members none;
    const Json* found = find(o, key);
    return found == nullptr ? none
                            : with_json([&]() -> const Json::Members& { return found->members(); });
}

/// Numbers of 64 bits come as numbers or, from some versions, as text.
int64_t integer(const Json& v) {
    if (!is_text(v)) {
        return with_json([&] { return v.get<int64_t>(); });
    }
    std::string text = text_of(v);
    int64_t out = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    require(error == std::errc() && at == text.data() + text.size(), ErrorCode::InvalidArgument,
            "the configuration has '", text, "' where a number is expected");
    return out;
}

std::vector<int64_t> integers(const Json& o, const char* key) {
    std::vector<int64_t> out;
    for (const Json& v : list_of(o, key)) {
        out.push_back(integer(v));
    }
    return out;
}

bool is_set(const Json& o, const char* key) {
    const Json* v = find(o, key);
    return v != nullptr && with_json([&] { return v->get<bool>(); });
}

ConfigTensor read_tensor(const Json& o, const char* list) {
    ConfigTensor t;
    t.name = text_of(o, "name");
    t.type = text_of(o, "data_type");
    t.dims = integers(o, "dims");
    if (const Json* reshape = find(o, "reshape")) {
        t.dims = integers(*reshape, "shape");
    }
    t.is_shape_tensor = is_set(o, "is_shape_tensor");
    auto refuse_field = [&](const char* field, const char* why) {
        fail(ErrorCode::Unsupported, list, " '", t.name, "' has ", field, ": ", why);
    };
    t.is_ragged = is_set(o, "allow_ragged_batch");
    t.is_optional = is_set(o, "optional");
    if (is_set(o, "is_non_linear_format_io")) {
        refuse_field("is_non_linear_format_io", "clients send and get rows");
    }
    return t;
}

/// The type of a control: its own, or that of the pair of values for false and true.
std::string control_type(const Json& control) {
    for (const auto& [field, type] :
         {std::pair("int32_false_true", "TYPE_INT32"), std::pair("fp32_false_true", "TYPE_FP32"),
          std::pair("bool_false_true", "TYPE_BOOL")}) {
        if (!list_of(control, field).empty()) {
            return type;
        }
    }
    return text_of(control, "data_type");
}

void read_sequences(const Json& o, ModelConfig& out) {
    for (const Json& input : list_of(o, "control_input")) {
        for (const Json& control : list_of(input, "control")) {
            out.controls.push_back({text_of(input, "name"), control_type(control), {1}});
        }
    }
    for (const Json& state : list_of(o, "state")) {
        out.states.push_back({text_of(state, "input_name"), text_of(state, "output_name"),
                              text_of(state, "data_type"), integers(state, "dims")});
    }
}

void read_groups(const Json& o, ModelConfig& out) {
    for (const Json& group : list_of(o, "instance_group")) {
        if (text_of(group, "kind") == "KIND_CPU") {
            std::string policy = text_of(group, "host_policy");
            const Json* count = find(group, "count");
            out.cpu_instances[policy.empty() ? "cpu" : policy] +=
                count == nullptr ? 1 : static_cast<int32_t>(integer(*count));
        }
        for (const Json& profile : list_of(group, "profile")) {
            out.profile = static_cast<int32_t>(integer(profile));
        }
        require(list_of(group, "profile").size() <= 1, ErrorCode::Unsupported, "instance_group '",
                text_of(group, "name"),
                "' names several profiles: name one, an instance runs with one");
    }
}

std::map<std::string, std::string> parameter_texts(const Json& o) {
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : members_of(o, "parameters")) {
        out.emplace(key, text_of(value, "string_value"));
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

std::string only_name(const Json& o, const char* list, const char* field) {
    const Json::List& names = list_of(o, field);
    require(names.size() == 1, ErrorCode::InvalidArgument, list, ": one ", field,
            " is expected, got ", names.size());
    return text_of(names[0]);
}

void read_batch_tensors(const Json& o, ModelConfig& out) {
    for (const Json& b : list_of(o, "batch_input")) {
        out.batch_inputs.push_back(
            {batch_input_kind(text_of(b, "kind")), only_name(b, "batch_input", "target_name"),
             only_name(b, "batch_input", "source_input"), text_of(b, "data_type")});
    }
    for (const Json& b : list_of(o, "batch_output")) {
        out.batch_outputs.push_back({only_name(b, "batch_output", "target_name"),
                                     only_name(b, "batch_output", "source_input")});
    }
}

/// Refuses fields that ask for missing features.
void refuse_fields(const Json& o) {
    if (const Json* policy = find(o, "model_transaction_policy")) {
        require(!is_set(*policy, "decoupled"), ErrorCode::Unsupported,
                "model_transaction_policy.decoupled is set: an engine gives one response to each "
                "request");
    }
}

/// Fields that the server fills in itself, or that are refused or read elsewhere, are not reported.
bool is_default(const std::string& name, const Json& value) {
    constexpr std::string_view defaults[] = {"null", "false", "0", "\"PRIORITY_DEFAULT\"",
                                             "[]",   "{}"};
    return std::find(std::begin(defaults), std::end(defaults), value.dump()) !=
               std::end(defaults) ||
           name == "input_pinned_memory" || name == "output_pinned_memory" ||
           name == "execution_accelerators";
}

void read_precision(const std::string& text, ModelConfig& out) {
    require(text == "FP32" || text == "FP16", ErrorCode::Unsupported, "precision_mode ", text,
            " is refused: FP32 and FP16 are served; build an engine with ingot build --int8 "
            "--calib for others");
    out.fp16 = text == "FP16";
}

void read_accelerators(const Json::List& list, ModelConfig& out) {
    for (const Json& accelerator : list) {
        std::string name = text_of(accelerator, "name");
        if (name != "tensorrt") {
            out.notes.push_back(
                str("accelerator '", name, "' has no effect: Ingot runs the model"));
            continue;
        }
        for (const auto& [key, value] : members_of(accelerator, "parameters")) {
            judge_field(Place::Accelerator, key, out.notes);
            if (key == "precision_mode") {
                read_precision(text_of(value), out);
            }
        }
    }
}

void read_optimization(const Json& o, ModelConfig& out) {
    for (const auto& [name, value] : members_of(o, "optimization")) {
        if (!is_default(name, value)) {
            judge_field(Place::Optimization, name, out.notes);
        }
    }
    const Json* optimization = find(o, "optimization");
    const Json* accelerators =
        optimization == nullptr ? nullptr : find(*optimization, "execution_accelerators");
    if (accelerators != nullptr) {
        for (const char* list : {"gpu_execution_accelerator", "cpu_execution_accelerator"}) {
            read_accelerators(list_of(*accelerators, list), out);
        }
    }
}

Json tensor_entry(const EngineTensor& t, bool batched) {
    Json out;
    out.set("name", t.name);
    out.set("data_type", config_type(t.type));
    std::vector<int64_t> dims(t.dims.begin() + (batched ? 1 : 0), t.dims.end());
    // The server takes no tensor without sizes.
    out.set("dims", dims.empty() ? std::vector<int64_t>{1} : dims);
    if (t.initial.has_value() && !batched) {
        out.set("optional", true);
    }
    if (dims.empty() && batched) { // else refused, too: check_config() and Batch know the meaning
        out.set("reshape", Json()).set("shape", Json::list());
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
Json client_tensors(const std::vector<EngineTensor>& tensors, const ModelConfig& config,
                    bool batched) {
    Json out = Json::list();
    for (const EngineTensor& t : tensors) {
        bool is_control = std::any_of(config.controls.begin(), config.controls.end(),
                                      [&](auto& c) { return c.name == t.name; });
        bool is_state = std::any_of(config.states.begin(), config.states.end(), [&](auto& s) {
            return s.input == t.name || s.output == t.name;
        });
        if (!is_control && !is_state && config.find_batch_input(t.name) == nullptr) {
            out.add(tensor_entry(t, batched));
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

std::vector<std::string> ModelConfig::optional_inputs() const {
    std::vector<std::string> out;
    for (const ConfigTensor& t : inputs) {
        if (t.is_optional) {
            out.push_back(t.name);
        }
    }
    return out;
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
    Json o = parse(json);
    ModelConfig out;
    out.json = json;
    out.name = text_of(o, "name");
    if (const Json* batch = find(o, "max_batch_size")) {
        out.max_batch_size = integer(*batch);
    }
    for (const Json& t : list_of(o, "input")) {
        out.inputs.push_back(read_tensor(t, "input"));
    }
    for (const Json& t : list_of(o, "output")) {
        out.outputs.push_back(read_tensor(t, "output"));
    }
    for (const char* scheduler : schedulers) {
        out.has_scheduler = out.has_scheduler || find(o, scheduler) != nullptr;
    }
    if (const Json* sequences = find(o, "sequence_batching")) {
        read_sequences(*sequences, out);
    }
    read_batch_tensors(o, out);
    out.file = text_of(o, "default_model_filename");
    read_groups(o, out);
    refuse_fields(o);
    out.parameters = read_parameters(parameter_texts(o), out.notes);
    read_optimization(o, out);
    if (!members_of(o, "cc_model_filenames").empty()) {
        out.notes.emplace_back("cc_model_filenames has no effect: one file serves every GPU");
    }
    return out;
}

std::optional<std::string> complete_config(const ModelConfig& config, const Engine& engine,
                                           int64_t default_batch) {
    int64_t batch = config.max_batch_size;
    if (batch == 0 && engine.takes_batches() && !engine.has_defaults() &&
        written_without_rows(config, engine)) {
        batch = engine.most_rows() > 0 ? engine.most_rows() : default_batch;
    }
    Json fields; // that are added, or change
    fields.set("max_batch_size", batch);
    if (config.inputs.empty()) {
        fields.set("input", client_tensors(engine.inputs, config, batch > 0));
    }
    if (config.outputs.empty()) {
        fields.set("output", client_tensors(engine.outputs, config, batch > 0));
    }
    if (batch > 1 && !config.has_scheduler) {
        fields.set("dynamic_batching", Json::object());
    }
    if (fields.members().size() == 1 && batch == config.max_batch_size) {
        return std::nullopt;
    }
    Json written = parse(config.json);
    Json out = Json::object();
    for (const auto& [key, value] : written.members()) {
        const Json* changed = fields.find(key);
        out.set(key, changed == nullptr ? value : *changed);
    }
    for (const auto& [key, value] : fields.members()) {
        if (written.find(key) == nullptr) {
            out.set(key, value);
        }
    }
    return out.dump();
}

} // namespace ingot::triton
