// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/model.h"

#include "base/file.h"

#include <nlohmann/json.hpp>

#include <thread>

namespace ingot::triton {

namespace {

constexpr const char* file_names[] = {"model.engine", "model.plan", "model.onnx"};
constexpr int64_t default_batch_of_server = 4; // its documented default

std::string config_text(TRITONBACKEND_Model* model) {
    return take_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_ModelConfig, model, 1U));
}

/// --backend-config=default-max-batch-size=N: for models that nothing bounds.
int64_t default_max_batch(TRITONBACKEND_Model* model) {
    auto* backend = get_from<TRITONBACKEND_Backend*>(TRITONBACKEND_ModelBackend, model);
    std::string text =
        read_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_BackendConfig, backend));
    auto o = nlohmann::json::parse(text, nullptr, false);
    if (o.is_discarded() || !o.contains("cmdline")) {
        return default_batch_of_server;
    }
    std::string value = o["cmdline"].value("default-max-batch-size", "");
    bool is_number = !value.empty() && value.size() < 10 &&
                     value.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::stoll(value) : default_batch_of_server;
}

int32_t cores() {
    return static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

void set_config(TRITONBACKEND_Model* model, const std::string& json) {
    TRITONSERVER_Message* message = nullptr;
    check(TRITONSERVER_MessageNewFromSerializedJson(&message, json.data(), json.size()));
    TRITONSERVER_Error* error = TRITONBACKEND_ModelSetConfig(model, 1, message);
    ignore(TRITONSERVER_MessageDelete(message));
    check(error);
}

} // namespace

Model::Model(BackendState& backend, TRITONBACKEND_Model* model)
    : backend_(backend), name_(get_from<const char*>(TRITONBACKEND_ModelName, model)),
      version_(get_from<uint64_t>(TRITONBACKEND_ModelVersion, model)),
      subject_(str(name_, " version ", version_)),
      logger_(std::make_shared<ServerLogger>(subject_)),
      metrics_(backend.metrics, name_, version_) {
    with_place([&] { return str("model '", name_, "' version ", version_); },
               [&] {
                   config_ = read_config(config_text(model));
                   bytes_ = read_engine(find_file(model), config_.fp16, *logger_);
                   first_ = engine({Device::kCPU, 0});
                   if (get_from<bool>(TRITONBACKEND_ModelAutoCompleteConfig, model)) {
                       auto completed = complete_config(config_, *first_, default_max_batch(model));
                       if (completed) {
                           set_config(model, *completed);
                           config_ = read_config(*completed);
                       }
                   }
                   check_config(config_, *first_);
                   for (const std::string& note : config_.notes) {
                       log(TRITONSERVER_LOG_INFO, str(subject_, ": ", note));
                   }
               });
}

std::string Model::find_file(TRITONBACKEND_Model* model) const {
    TRITONBACKEND_ArtifactType type{};
    const char* folder = nullptr;
    check(TRITONBACKEND_ModelRepository(model, &type, &folder));
    require(type == TRITONBACKEND_ARTIFACT_FILESYSTEM, ErrorCode::Unsupported,
            "the model repository is no folder");
    std::string version_folder = str(folder, "/", version_, "/");
    // A load request brings a configuration along: what it names stays inside the folder.
    require(config_.file.find('/') == std::string::npos && config_.file != "..",
            ErrorCode::InvalidArgument, "default_model_filename '", config_.file,
            "' names a file elsewhere: it lies in the folder of the version");
    std::vector<std::string> tried;
    if (!config_.file.empty()) {
        tried.push_back(config_.file);
    } else {
        tried.assign(std::begin(file_names), std::end(file_names));
    }
    for (const std::string& name : tried) {
        if (file_exists(version_folder + name)) {
            return version_folder + name;
        }
    }
    fail(ErrorCode::InvalidArgument, "the folder of the version has no ", join(tried, ", "),
         ": put the engine there, or name it in default_model_filename");
}

std::shared_ptr<const Engine> Model::engine(const Target& target) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const Engine> found = engines_[target].lock();
    if (found == nullptr) {
        LoadRequest request{target, config_.profile, config_.parameters.threads};
        if (request.threads == 0) {
            request.threads = std::max(1, cores() / std::max(1, config_.cpu_instances));
        }
        found = load_engine(bytes_, request, logger_);
        engines_[target] = found;
    }
    first_.reset();
    return found;
}

} // namespace ingot::triton
