// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/model.h"

#include "base/cpus.h"
#include "base/file.h"
#include "base/json.h"

#include <filesystem>

namespace ingot::triton {

namespace {

constexpr const char* file_names[] = {"model.engine", "model.plan", "model.onnx"};
constexpr int64_t default_batch_of_server = 4; // its documented default

std::string config_text(TRITONBACKEND_Model* model) {
    return take_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_ModelConfig, model, 1U));
}

/// Options for the backend from the server's command line: --backend-config=ingot,name=value.
std::map<std::string, std::string> backend_options(TRITONBACKEND_Model* model) {
    auto* backend = get_from<TRITONBACKEND_Backend*>(TRITONBACKEND_ModelBackend, model);
    std::string text =
        read_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_BackendConfig, backend));
    return with_place([] { return std::string("the backend's configuration cannot be read"); },
                      [&] {
                          std::map<std::string, std::string> out;
                          Json o = Json::parse(text.empty() ? "{}" : text);
                          if (const Json* cmdline = o.find("cmdline")) {
                              for (const auto& [name, value] : cmdline->members()) {
                                  out.emplace(name, value.get<std::string>());
                              }
                          }
                          return out;
                      });
}

bool read_bool(const std::map<std::string, std::string>& options, const char* name) {
    auto it = options.find(name);
    if (it == options.end()) {
        return false;
    }
    require(it->second == "true" || it->second == "false", ErrorCode::InvalidArgument,
            "--backend-config=", name, ": true or false is expected, got '", it->second, "'");
    return it->second == "true";
}

/// An option of the server, not a parameter of the model: an untrusted engine could come with a
/// configuration that permits it.
EngineTrust read_trust(const std::map<std::string, std::string>& options) {
    EngineTrust out;
    out.only_signed = read_bool(options, "trusted-only");
    out.allow_code = read_bool(options, "allow-engine-code");
    if (auto it = options.find("trusted-keys"); it != options.end()) {
        constexpr uint64_t limit = 1U << 20U;
        out.keys = with_place([] { return std::string("--backend-config=trusted-keys"); },
                              [&] { return read_text_file(it->second, limit); });
    }
    require(!out.only_signed || !out.keys.empty(), ErrorCode::InvalidArgument,
            "--backend-config=trusted-only is given without trusted-keys: every engine would be "
            "refused");
    return out;
}

/// Whether a text is a number of at most nine digits.
bool is_short_number(const std::string& text) {
    return !text.empty() && text.size() < 10 &&
           text.find_first_not_of("0123456789") == std::string::npos;
}

/// after-loss: requests that come after the loss of the device get an error (answer), or none, so
/// that a proxy in front sends them to another server when this one ends (hold).
bool read_after_loss(const std::map<std::string, std::string>& options) {
    auto it = options.find("after-loss");
    std::string value = it == options.end() ? "answer" : it->second;
    require(value == "answer" || value == "hold", ErrorCode::InvalidArgument,
            "--backend-config=after-loss: answer or hold is expected, got '", value, "'");
    return value == "hold";
}

/// exit-delay-ms: from the loss of the device to the end of the process.
std::chrono::milliseconds read_exit_delay(const std::map<std::string, std::string>& options) {
    auto it = options.find("exit-delay-ms");
    if (it == options.end()) {
        return Watch::default_exit_delay;
    }
    require(is_short_number(it->second), ErrorCode::InvalidArgument,
            "--backend-config=exit-delay-ms: milliseconds are expected, got '", it->second, "'");
    return std::chrono::milliseconds(std::stoll(it->second));
}

/// default-max-batch-size: for models that nothing bounds.
int64_t default_max_batch(const std::map<std::string, std::string>& options) {
    auto it = options.find("default-max-batch-size");
    std::string value = it == options.end() ? "" : it->second;
    return is_short_number(value) ? std::stoll(value) : default_batch_of_server;
}

/// Threads of an instance on the CPU. The instances of a policy share its cores, to which the
/// server keeps the calling thread; "": all instances share all cores.
int32_t threads_of_one(const ModelConfig& config, const std::string& policy) {
    auto cores = static_cast<int32_t>(usable_cpus().size());
    int32_t instances = 0;
    for (const auto& [name, count] : config.cpu_instances) {
        instances += policy.empty() || name == policy ? count : 0;
    }
    return std::max(1, cores / std::max(1, instances));
}

/// The kind of thing at a path that is no file; "" for nothing.
const char* what_else(const std::string& path) {
    std::error_code ignored;
    switch (std::filesystem::symlink_status(path, ignored).type()) {
    case std::filesystem::file_type::none:
    case std::filesystem::file_type::not_found:
        return "";
    case std::filesystem::file_type::directory:
        return "a folder";
    case std::filesystem::file_type::symlink:
        return "a link that leads to no file";
    default:
        return "no file";
    }
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
    with_place(
        [&] { return str("model '", name_, "' version ", version_); },
        [&] {
            config_ = read_config(config_text(model));
            std::map<std::string, std::string> options = backend_options(model);
            trust_ = read_trust(options);
            holds_after_loss_ = read_after_loss(options);
            backend.watch.set_exit_delay(read_exit_delay(options));
            std::string path = find_file(model);
            require(!trust_.only_signed || !path.ends_with(".onnx"), ErrorCode::InvalidArgument,
                    "'", path.substr(path.rfind('/') + 1),
                    "' is no engine, and --backend-config=trusted-only allows only engines "
                    "that a trusted key has signed: 'ingot build' and 'ingot sign' make one");
            bytes_ = read_engine(
                path, {config_.fp16, config_.parameters.batch_invariant, config_.optional_inputs()},
                *logger_);
            first_ = engine({Device::kCPU, 0}, {});
            if (get_from<bool>(TRITONBACKEND_ModelAutoCompleteConfig, model)) {
                auto completed = complete_config(config_, *first_, default_max_batch(options));
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
        std::string other = what_else(version_folder + name);
        require(other.empty(), ErrorCode::InvalidArgument, "'", name,
                "' in the folder of the version is ", other, ": put the engine there as a file");
    }
    fail(ErrorCode::InvalidArgument, "the folder of the version has no ", join(tried, ", "),
         ": put the engine there, or name it in default_model_filename");
}

std::shared_ptr<const Engine> Model::engine(const Target& target, const HostPolicy& policy) {
    std::lock_guard<std::mutex> lock(mutex_);
    bool is_placed = target.device == Device::kCPU && policy.has_effect();
    std::string place = is_placed ? policy.name : "";
    std::weak_ptr<const Engine>& known = engines_[{target, place}];
    std::shared_ptr<const Engine> found = known.lock();
    if (found == nullptr) {
        LoadRequest request{target, config_.profile, config_.parameters.threads, trust_, nullptr};
        if (target.device == Device::kGPU) {
            request.memory =
                std::make_unique<DeviceAllocator>(gpus().open(target.ordinal), metrics_);
        }
        if (request.threads == 0) {
            request.threads = threads_of_one(config_, place);
        }
        found = load_engine(bytes_, std::move(request), logger_);
        known = found;
    }
    first_.reset();
    return found;
}

} // namespace ingot::triton
