// SPDX-License-Identifier: Apache-2.0
// A model's configuration (config.pbtxt, as JSON from the server): what of it this backend obeys,
// what it adds from the engine, and what of it does not fit the engine.
#pragma once

#include "plugins/triton/engine.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ingot::triton {

struct ConfigTensor {
    std::string name;
    std::string type;          // "TYPE_FP32"
    std::vector<int64_t> dims; // as the engine sees them: `reshape` where it is given
    bool is_shape_tensor = false;
    bool is_optional = false; // a request may leave it out
    bool is_ragged = false;   // requests of other sizes are put one behind another, as a vector
};

/// An output that the server keeps and gives to the next request of its sequence as an input.
struct StateTensor {
    std::string input, output;
    std::string type;          // "TYPE_FP32"
    std::vector<int64_t> dims; // without the rows of a batch
};

/// An input that no client sends tells how the requests of a batch lie one behind another.
enum class BatchInputKind {
    ElementCount,                    // [requests]: elements of each one's source
    AccumulatedElementCount,         // [requests]: of it and all before
    AccumulatedElementCountWithZero, // [requests + 1]: the same behind a 0
    MaxElementCountAsShape,          // [most elements of one]: the shape says it, values are 0
    ItemShape,                       // [rows, rank of the source without rows]: of each row
    ItemShapeFlatten,                // the same as a vector
};
struct BatchInput {
    BatchInputKind kind = BatchInputKind::ElementCount;
    std::string target, source; // inputs
    std::string type;           // "TYPE_FP32" or "TYPE_INT32"
};
/// An output that is a vector with as many elements as a ragged input: each request gets its part
/// in the shape of its input.
struct BatchOutput {
    std::string target, source;
};

/// The parameters of this backend in `parameters`; parameters.cpp has the table.
struct Parameters {
    /// Row counts that are planned ahead; batches are padded up to the next. Empty: chosen.
    std::vector<int64_t> buckets;
    bool pads = true;    // buckets: none
    int32_t threads = 0; // of a CPU instance; 0: the cores divided by instances
    /// After which a run counts as hanging; 0: never. -1: a minute on a GPU, never on the CPU.
    int64_t hang_timeout_ms = -1;
    bool batch_invariant = false; // of an ONNX model
};

struct ModelConfig {
    std::string name;
    int64_t max_batch_size = 0;
    std::vector<ConfigTensor> inputs, outputs;
    std::vector<ConfigTensor> controls; // inputs by which the server tells where a sequence is
    std::vector<StateTensor> states;
    std::vector<BatchInput> batch_inputs;
    std::vector<BatchOutput> batch_outputs;
    bool has_scheduler = false;
    std::string file; // default_model_filename; "" for none
    int32_t profile = 0;
    std::map<std::string, int32_t> cpu_instances; // by the name of their host policy
    Parameters parameters;
    bool fp16 = false;              // precision_mode of the accelerator "tensorrt"
    std::vector<std::string> notes; // fields that have no effect, and why
    std::string json;               // all of it

    bool has_ragged() const;
    bool is_ragged(std::string_view input) const;
    std::vector<std::string> optional_inputs() const;
    /// Null for an input that is none of them.
    const BatchInput* find_batch_input(std::string_view target) const;
    const BatchOutput* find_batch_output(std::string_view target) const;
};

/// Errors: InvalidArgument or Unsupported naming the field that asks for what there is not.
ModelConfig read_config(const std::string& json);

/// The configuration with what is missing, from the engine; nothing where nothing is.
/// \param default_batch limit where the engine has none.
std::optional<std::string> complete_config(const ModelConfig& config, const Engine& engine,
                                           int64_t default_batch);

/// Errors: InvalidArgument naming tensor, configured and found.
void check_config(const ModelConfig& config, const Engine& engine);

/// Errors: of a name, those of judge_field(); InvalidArgument for a value that is none.
Parameters read_parameters(const std::map<std::string, std::string>& texts,
                           std::vector<std::string>& notes);

} // namespace ingot::triton
