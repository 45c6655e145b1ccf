// SPDX-License-Identifier: Apache-2.0
// Scene: a backend, a model and instances of it in the fake host, with requests for it.
#pragma once

#include "NvInfer.h"
#include "tests/triton/fake_host.h"

#include <gtest/gtest.h>

#include <functional>

namespace ingot::triton {

/// A folder of its own that goes with it.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// Objects of the server that are not released yet.
struct Alive {
    int64_t errors = FakeHost::get().errors;
    int64_t messages = FakeHost::get().messages;
    int64_t responses = FakeHost::get().responses;
    int64_t metrics = FakeHost::get().metrics;
    int64_t attributes = FakeHost::get().attributes;
    bool operator==(const Alive&) const = default;
};

/// Adds the layers, inputs and outputs of an engine.
using Fill = std::function<void(nvinfer1::INetworkDefinition&)>;
/// The least and the most sizes of inputs.
using Bounds = std::map<std::string, std::pair<nvinfer1::Dims, nvinfer1::Dims>>;
/// Sets what a build is to do beside.
using Configure = std::function<void(nvinfer1::IBuilderConfig&)>;
/// Bytes of an engine; one without bounds has no profile.
std::string build_engine(const Fill& fill, const Bounds& bounds = {},
                         const Configure& configure = {});
/// Bytes of an engine: `sum` f32[n, 1] is the sum over a row of `x` f32[n, 3] times 2, and `twice`
/// f32[n, 3] is 2 x. `n` is 1 to `most`; 0: nothing bounds it, and the engine has no profile.
std::string row_engine(int64_t most);
/// Bytes of an engine that adds up: f32[n, 1] `total` is `x` + `total_before`, or `x` alone in rows
/// whose `start` is 1, and `y` is 10 times that.
std::string sum_engine();
/// Bytes of an engine with one input and output "x" -> "y" f32[n, 1], that a function computes.
/// The function returns 0 for success.
using RowFunction = std::function<int(const float* x, float* y, int64_t rows)>;
std::string function_engine(RowFunction function);

/// A request for `row_engine` and its right answer.
std::unique_ptr<TRITONBACKEND_Request> row_request(int64_t rows, unsigned seed);
void expect_right(const TRITONBACKEND_Request& request);
TRITONBACKEND_Input float_input(const std::string& name, std::vector<int64_t> shape,
                                const std::vector<float>& values);
std::vector<float> floats(const TRITONBACKEND_Output& output);

/// While it lives, instances of KIND_GPU compute on the CPU with inputs and outputs in memory that
/// only the plugin's copies can access.
class SimulatedGpu {
public:
    SimulatedGpu();
    ~SimulatedGpu();
    SimulatedGpu(const SimulatedGpu&) = delete;
    SimulatedGpu& operator=(const SimulatedGpu&) = delete;
};

class Scene {
public:
    explicit Scene(const std::string& engine, std::string config = "{}");
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    /// Each returns the text of the error, "" for none.
    std::string start_backend();
    std::string start_model();
    std::string start_instances(int count);
    std::string start(int instances = 1);
    /// All requests in one call.
    std::string execute(const std::vector<TRITONBACKEND_Request*>& requests, size_t instance = 0);
    void stop_model();
    void stop();

    TRITONBACKEND_Backend backend;
    TRITONBACKEND_Model model;
    std::vector<std::unique_ptr<TRITONBACKEND_ModelInstance>> instances;
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;

private:
    Folder folder_;
};

} // namespace ingot::triton
