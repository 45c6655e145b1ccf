// SPDX-License-Identifier: Apache-2.0
// Model: a version of a model in the server, with an engine for each device that its instances use.
#pragma once

#include "plugins/triton/backend_state.h"
#include "plugins/triton/config.h"
#include "plugins/triton/host_policy.h"

#include <map>
#include <mutex>
#include <tuple>

namespace ingot::triton {

class Model {
public:
    /// Reads the model's file, completes its configuration where the server wants that, and checks
    /// it. Errors: naming what does not fit.
    Model(BackendState& backend, TRITONBACKEND_Model* model);
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    /// "digits version 3".
    const std::string& subject() const { return subject_; }
    const std::string& name() const { return name_; }
    uint64_t version() const { return version_; }
    const ModelConfig& config() const { return config_; }
    ModelMetrics& metrics() { return metrics_; }
    Watch& watch() { return backend_.watch; }
    /// Whether requests that come after the loss of the device are left unanswered.
    bool holds_after_loss() const { return holds_after_loss_; }
    Gpus& gpus() { return backend_.gpus; }
    /// Loaded when the first instance asks, then shared; on the CPU by the instances of a host
    /// policy, since its threads run on the policy's cores, as the calling thread does. From any
    /// thread.
    std::shared_ptr<const Engine> engine(const Target& target, const HostPolicy& policy);

private:
    std::string find_file(TRITONBACKEND_Model* model) const;

    BackendState& backend_;
    std::string name_;
    uint64_t version_ = 0;
    std::string subject_;
    std::shared_ptr<ServerLogger> logger_;
    ModelMetrics metrics_;
    ModelConfig config_;
    EngineTrust trust_;
    bool holds_after_loss_ = false;
    EngineBytes bytes_;
    std::mutex mutex_;
    struct Place {
        Target target;
        std::string policy; // "": of none
        bool operator<(const Place& other) const {
            return std::tie(target, policy) < std::tie(other.target, other.policy);
        }
    };
    std::map<Place, std::weak_ptr<const Engine>> engines_; // instances own them
    /// That of the CPU, which described the model, until the first instance has its own.
    std::shared_ptr<const Engine> first_;
};

} // namespace ingot::triton
