// SPDX-License-Identifier: Apache-2.0
// Whether a configuration and an engine agree.
#include "plugins/triton/config.h"

#include <algorithm>

namespace ingot::triton {

namespace {

std::vector<std::string> names_of(const std::vector<EngineTensor>& tensors) {
    std::vector<std::string> out;
    for (const EngineTensor& t : tensors) {
        out.push_back(t.name);
    }
    return out;
}

/// The engine's shape for a run with one more row.
std::vector<int64_t> with_rows(const ConfigTensor& t, int64_t max_batch_size) {
    std::vector<int64_t> dims = t.dims;
    if (max_batch_size > 0) {
        dims.insert(dims.begin(), -1);
    }
    return dims;
}

bool sizes_agree(const std::vector<int64_t>& configured, const EngineTensor& found) {
    if (found.dims.empty() && configured == std::vector<int64_t>{1}) {
        return true; // the server takes no tensor without sizes
    }
    if (configured.size() != found.dims.size()) {
        return false;
    }
    for (size_t i = 0; i < configured.size(); ++i) {
        int64_t c = configured[i];
        int64_t f = found.dims[i];
        bool in_profile =
            f != -1 || c == -1 || found.most.empty() || (c >= found.least[i] && c <= found.most[i]);
        if ((f != -1 && c != -1 && c != f) || !in_profile) {
            return false;
        }
    }
    return true;
}

std::string range_text(const EngineTensor& t) {
    return t.most.empty() ? std::string()
                          : str(", built for ", dims_text(t.least), " to ", dims_text(t.most));
}

void check_optional(const ConfigTensor& t, const EngineTensor& found, const ModelConfig& config) {
    require(found.initial.has_value(), ErrorCode::InvalidArgument, "input '", t.name,
            "' has optional, and the engine has no default for it: build it with 'ingot build "
            "--optionalInputs=",
            t.name,
            "' from a model that has one (an initializer of the input's name), or leave the field "
            "out");
    require(config.max_batch_size == 0, ErrorCode::Unsupported, "input '", t.name,
            "' has optional, and max_batch_size is ", config.max_batch_size,
            ": a default has no rows for the requests of a batch; set max_batch_size to 0, or "
            "leave the field out");
}

void check_tensor(const ConfigTensor& t, const EngineTensor* found, const char* what,
                  const ModelConfig& config, const std::vector<EngineTensor>& there) {
    if (found == nullptr) {
        fail(ErrorCode::InvalidArgument, "configured ", what, " '", t.name,
             "' is none of the engine's, which are: ", join(names_of(there), ", "));
    }
    require(t.type == config_type(found->type), ErrorCode::InvalidArgument, what, " '", t.name,
            "': data_type ", t.type, " is configured, the engine has ", config_type(found->type));
    if (t.is_optional) {
        check_optional(t, *found, config);
    }
    if (t.is_ragged) {
        require(config.max_batch_size > 0, ErrorCode::InvalidArgument, what, " '", t.name,
                "' has allow_ragged_batch, and max_batch_size is 0: set it to the most requests of "
                "a batch");
        require(found->dims == std::vector<int64_t>{-1}, ErrorCode::InvalidArgument, what, " '",
                t.name,
                "' has allow_ragged_batch: the engine gets all requests as one vector, [-1]"
                ", and has ",
                dims_text(found->dims));
        return;
    }
    std::vector<int64_t> dims = with_rows(t, config.max_batch_size);
    require(sizes_agree(dims, *found), ErrorCode::InvalidArgument, what, " '", t.name, "': shape ",
            dims_text(dims),
            config.max_batch_size > 0 ? " is configured (the first size are the rows of a batch)"
                                      : " is configured",
            ", the engine has ", dims_text(found->dims), range_text(*found));
    require(!t.is_shape_tensor || config.max_batch_size == 0, ErrorCode::Unsupported, what, " '",
            t.name,
            "' is a shape tensor, which requests of one batch cannot share: set "
            "max_batch_size to 0");
}

/// A control has one element a row; a state's output is the next request's input.
void check_sequences(const ModelConfig& config, const Engine& engine) {
    for (ConfigTensor t : config.controls) {
        const EngineTensor* found = engine.find_input(t.name);
        if (found != nullptr && config.max_batch_size > 0 && found->dims.size() == 1) {
            t.dims.clear();
        }
        check_tensor(t, found, "control input", config, engine.inputs);
    }
    for (const StateTensor& s : config.states) {
        check_tensor({s.input, s.type, s.dims}, engine.find_input(s.input), "state input", config,
                     engine.inputs);
        check_tensor({s.output, s.type, s.dims}, engine.find_output(s.output), "state output",
                     config, engine.outputs);
    }
}

/// The engine's shape for a batch input; its source has the sizes `source` in a request.
std::vector<int64_t> batch_input_dims(BatchInputKind kind, const std::vector<int64_t>& source) {
    if (kind == BatchInputKind::ItemShape) {
        return {-1, static_cast<int64_t>(source.size())};
    }
    return {-1};
}

void check_batch_tensors(const ModelConfig& config, const Engine& engine) {
    auto source = [&](const std::string& name, const char* list) {
        auto at = std::find_if(config.inputs.begin(), config.inputs.end(),
                               [&](const ConfigTensor& t) { return t.name == name; });
        require(at != config.inputs.end() && at->is_ragged, ErrorCode::InvalidArgument, list,
                " has the source_input '", name, "', which is no input with allow_ragged_batch");
        return at->dims;
    };
    ModelConfig whole = config; // these tensors have no rows of their own
    whole.max_batch_size = 0;
    for (const BatchInput& b : config.batch_inputs) {
        require(b.type == "TYPE_FP32" || b.type == "TYPE_INT32", ErrorCode::Unsupported,
                "batch_input '", b.target, "' has data_type ", b.type,
                ": TYPE_FP32 and TYPE_INT32 are served");
        check_tensor({b.target, b.type, batch_input_dims(b.kind, source(b.source, "batch_input"))},
                     engine.find_input(b.target), "batch_input", whole, engine.inputs);
    }
    for (const BatchOutput& b : config.batch_outputs) {
        source(b.source, "batch_output");
        const EngineTensor* found = engine.find_output(b.target);
        require(found != nullptr && found->dims.size() == 1, ErrorCode::InvalidArgument,
                "batch_output '", b.target, "' is no vector of the engine's outputs, which are: ",
                join(names_of(engine.outputs), ", "));
    }
}

void check_all_given(const ModelConfig& config, const Engine& engine) {
    for (const EngineTensor& t : engine.inputs) {
        auto is_it = [&](const ConfigTensor& c) { return c.name == t.name; };
        bool given = std::any_of(config.inputs.begin(), config.inputs.end(), is_it) ||
                     std::any_of(config.controls.begin(), config.controls.end(), is_it) ||
                     std::any_of(config.states.begin(), config.states.end(),
                                 [&](const StateTensor& s) { return s.input == t.name; }) ||
                     config.find_batch_input(t.name) != nullptr ||
                     (t.initial.has_value() && config.max_batch_size == 0); // no request has it
        require(given, ErrorCode::InvalidArgument, "the engine's input '", t.name,
                "' is not configured: add it, or leave out all inputs and outputs");
    }
}

void check_batch(const ModelConfig& config, const Engine& engine) {
    if (config.max_batch_size == 0) {
        return;
    }
    for (const std::vector<EngineTensor>* list : {&engine.inputs, &engine.outputs}) {
        for (const EngineTensor& t : *list) {
            require(!t.dims.empty() && t.dims[0] == -1, ErrorCode::InvalidArgument,
                    "max_batch_size ", config.max_batch_size, " is configured, and tensor '",
                    t.name, "' of the engine has the fixed shape ", dims_text(t.dims),
                    ": set max_batch_size to 0, or build the engine with open rows");
        }
    }
    int64_t most = engine.most_rows();
    require(most == 0 || config.max_batch_size <= most, ErrorCode::InvalidArgument,
            "max_batch_size ", config.max_batch_size, " is configured, the engine was built for ",
            most, " rows at most: lower it, or build the engine with a larger --maxShapes");
}

} // namespace

void check_config(const ModelConfig& config, const Engine& engine) {
    check_batch(config, engine);
    for (const ConfigTensor& t : config.inputs) {
        check_tensor(t, engine.find_input(t.name), "input", config, engine.inputs);
    }
    for (const ConfigTensor& t : config.outputs) {
        if (config.find_batch_output(t.name) != nullptr) {
            continue; // of the shape of its source
        }
        check_tensor(t, engine.find_output(t.name), "output", config, engine.outputs);
    }
    check_sequences(config, engine);
    check_batch_tensors(config, engine);
    check_all_given(config, engine);
    for (int64_t bucket : config.parameters.buckets) {
        require(config.max_batch_size > 0 && bucket <= config.max_batch_size,
                ErrorCode::InvalidArgument, "parameter 'buckets' has ", bucket,
                ", and max_batch_size is ", config.max_batch_size);
    }
}

} // namespace ingot::triton
