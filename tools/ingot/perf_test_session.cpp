// SPDX-License-Identifier: Apache-2.0
// ingot perf-test: ONNX Runtime's library, libraries of providers, their devices, and options of
// sessions.
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/shared_library.h"
#include "perf_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace ingot::tool {

namespace {

namespace fs = std::filesystem;

constexpr const char* provider_name = "NvTensorRTRTXExecutionProvider";

/// libonnxruntime.so.* of the package that `python3` would import; "" without one.
std::string library_of_python() {
    constexpr const char* script = "import importlib.util as u; s = u.find_spec('onnxruntime'); "
                                   "print(s.submodule_search_locations[0] if s else '')";
    ProcessResult r = run_process({"python3", "-c", script});
    fs::path folder(r.output.substr(0, r.output.find('\n')));
    std::error_code ignored;
    if (r.exit_code == 0 && !folder.empty()) {
        for (const auto& entry : fs::directory_iterator(folder / "capi", ignored)) {
            if (entry.path().filename().string().starts_with("libonnxruntime.so")) {
                return entry.path().string();
            }
        }
    }
    return "";
}

/// The plugin of this build or installation.
std::string own_plugin() {
    constexpr const char* name = "libingot_onnxruntime.so";
    const char* variable = std::getenv("INGOT_ONNXRUNTIME");
    std::vector<std::string> places;
    if (variable != nullptr && *variable != '\0') {
        places.emplace_back(variable);
    }
    places.push_back(str(own_folder(), "/", name));
    places.push_back(str(own_folder(), "/../lib/", name));
    for (const std::string& p : places) {
        if (file_exists(p)) {
            return fs::absolute(p).string(); // relative paths start at ONNX Runtime's folder
        }
    }
    fail(ErrorCode::Io, "there is no execution provider at ", join(places, ", "),
         "; keep the parts of the installation, or of the build, together");
}

std::string text_of(const char* text) {
    return text == nullptr ? "" : text;
}

Pairs pairs_of(const OrtKeyValuePairs* from) {
    Pairs out;
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    if (from != nullptr) {
        Ort::GetApi().GetKeyValuePairs(from, &keys, &values, &count);
    }
    for (size_t i = 0; i < count; ++i) {
        out.emplace_back(keys[i], values[i]);
    }
    return out;
}

/// The devices of --select_ep_devices, else of --filter_ep_devices in its order, else all.
std::vector<const OrtEpDevice*> candidates(const Ort::Env& env, const PerfTestOptions& o) {
    const OrtApi& api = Ort::GetApi();
    std::vector<const OrtEpDevice*> all = ep_devices(env);
    std::vector<const OrtEpDevice*> out;
    for (const std::string& text : split(o.select_devices, ';')) {
        size_t index = std::strtoul(text.c_str(), nullptr, 10);
        require(text.find_first_not_of("0123456789") == std::string::npos && index < all.size(),
                ErrorCode::InvalidArgument, "--select_ep_devices: got '", text, "', expected 0 to ",
                all.size() - 1, "; see --list_ep_devices");
        out.push_back(all[index]);
    }
    if (!o.select_devices.empty() || o.device_filters.empty()) {
        return o.select_devices.empty() ? all : out;
    }
    for (const auto& wanted : o.device_filters) {
        for (const OrtEpDevice* d : all) {
            Pairs known = pairs_of(api.EpDevice_EpMetadata(d));
            Pairs options = pairs_of(api.EpDevice_EpOptions(d));
            Pairs hardware = pairs_of(api.HardwareDevice_Metadata(api.EpDevice_Device(d)));
            known.insert(known.end(), options.begin(), options.end());
            known.insert(known.end(), hardware.begin(), hardware.end());
            if (std::find(known.begin(), known.end(), wanted) != known.end() &&
                std::find(out.begin(), out.end(), d) == out.end()) {
                out.push_back(d);
            }
        }
    }
    require(!out.empty(), ErrorCode::InvalidArgument, "--filter_ep_devices: no device has ",
            o.filter_text, "; see --list_ep_devices");
    return out;
}

void append_provider(Ort::Env& env, Ort::SessionOptions& to, const std::string& name,
                     const std::vector<const OrtEpDevice*>& devices, const Pairs& options) {
    std::vector<const char*> keys;
    std::vector<const char*> values;
    for (const auto& [key, value] : options) {
        keys.push_back(key.c_str());
        values.push_back(value.c_str());
    }
    require(!devices.empty(), ErrorCode::Unsupported, name,
            ": no device runs it here; see --list_ep_devices. It needs an NVIDIA GPU of compute "
            "capability 8.0 or higher and its driver, or INGOT_ALLOW_CPU=1 for the CPU");
    Ort::ThrowOnError(Ort::GetApi().SessionOptionsAppendExecutionProvider_V2(
        to, env, devices.data(), devices.size(), keys.data(), values.data(), keys.size()));
}

/// Devices of one provider; only the one of option device_id, if given.
std::vector<const OrtEpDevice*> devices_of(const std::vector<const OrtEpDevice*>& all,
                                           const std::string& name, const Pairs& options) {
    const OrtApi& api = Ort::GetApi();
    std::vector<const OrtEpDevice*> out;
    for (const OrtEpDevice* d : all) {
        if (name != api.EpDevice_EpName(d)) {
            continue;
        }
        bool fits = true;
        for (const auto& [key, value] : options) {
            for (const auto& [own_key, own] : pairs_of(api.EpDevice_EpOptions(d))) {
                fits = fits && (key != "device_id" || own_key != key || own == value);
            }
        }
        if (fits) {
            out.push_back(d);
        }
    }
    return out;
}

void append_providers(Ort::Env& env, const PerfTestOptions& o, Ort::SessionOptions& to) {
    std::vector<const OrtEpDevice*> all = candidates(env, o);
    if (o.provider != "cpu") {
        std::vector<const OrtEpDevice*> own = devices_of(all, provider_name, o.provider_options);
        own.resize(std::min<size_t>(own.size(), 1)); // a session runs on one device
        append_provider(env, to, provider_name, own, o.provider_options);
    }
    std::vector<std::string> names = split(o.plugin_providers, ';');
    if (names.empty()) { // all providers of the libraries, each once
        std::set<std::string> seen;
        for (const auto& library : o.libraries) {
            seen.insert(library.first);
        }
        names.assign(seen.begin(), seen.end());
    }
    std::string_view texts = o.plugin_options;
    for (const std::string& name : names) {
        size_t end = std::min(texts.find(';'), texts.size());
        Pairs options = parse_pairs("--plugin_ep_options", texts.substr(0, end));
        texts.remove_prefix(std::min(end + 1, texts.size()));
        std::vector<const OrtEpDevice*> own = devices_of(all, name, options);
        if (o.select_devices.empty() && o.device_filters.empty()) {
            own.resize(std::min<size_t>(own.size(), 1));
        }
        append_provider(env, to, name, own, options);
    }
    require(texts.find_first_not_of(';') == texts.npos, ErrorCode::InvalidArgument,
            "--plugin_ep_options: '", std::string(texts), "' is left over; expected options of ",
            join(names, ", "), " only");
}

void set_threads(const PerfTestOptions& o, Ort::SessionOptions& to) {
    const OrtApi& api = Ort::GetApi();
    if (o.intra_threads > 0) {
        std::printf("Setting intra_op_num_threads to %lld\n",
                    static_cast<long long>(o.intra_threads));
        Ort::ThrowOnError(api.SetIntraOpNumThreads(to, static_cast<int>(o.intra_threads)));
    }
    if (o.inter_threads > 0) {
        std::printf("Setting inter_op_num_threads to %lld\n",
                    static_cast<long long>(o.inter_threads));
        Ort::ThrowOnError(api.SetInterOpNumThreads(to, static_cast<int>(o.inter_threads)));
    }
    if (!o.affinity.empty()) {
        to.AddConfigEntry("session.intra_op_thread_affinities", o.affinity.c_str());
    }
    if (o.no_spinning) {
        std::printf("Disabling intra-op thread spinning entirely\n");
        to.AddConfigEntry("session.intra_op.allow_spinning", "0");
    }
    if (o.no_spinning_between) {
        std::printf("Disabling intra-op thread spinning between runs\n");
        to.AddConfigEntry("session.force_spinning_stop", "1");
    }
    if (o.spin_duration >= 0) {
        to.AddConfigEntry("session.intra_op.spin_duration_us", str(o.spin_duration).c_str());
    }
    if (o.spin_backoff > 1) {
        to.AddConfigEntry("session.intra_op.spin_backoff_max", str(o.spin_backoff).c_str());
    }
    if (o.parallel) {
        Ort::ThrowOnError(api.SetSessionExecutionMode(to, ORT_PARALLEL));
    }
}

void set_sizes(const PerfTestOptions& o, Ort::SessionOptions& to) {
    const OrtApi& api = Ort::GetApi();
    for (const auto& [name, size] : o.free_names) {
        std::printf("Overriding dimension with name, %s, to %lld\n", name.c_str(),
                    static_cast<long long>(size));
        Ort::ThrowOnError(api.AddFreeDimensionOverrideByName(to, name.c_str(), size));
    }
    for (const auto& [denotation, size] : o.free_denotations) {
        std::printf("Overriding dimension with denotation, %s, to %lld\n", denotation.c_str(),
                    static_cast<long long>(size));
        Ort::ThrowOnError(api.AddFreeDimensionOverride(to, denotation.c_str(), size));
    }
}

void set_saving(const PerfTestOptions& o, Ort::SessionOptions& to) {
    if (o.optimized_model.empty()) {
        return;
    }
    Ort::ThrowOnError(Ort::GetApi().SetOptimizedModelFilePath(to, o.optimized_model.c_str()));
    if (!o.optimized_data.empty()) {
        to.AddConfigEntry("session.optimized_model_external_initializers_file_name",
                          o.optimized_data.c_str());
        if (o.optimized_minimum >= 0) {
            to.AddConfigEntry("session.optimized_model_external_initializers_min_size_in_bytes",
                              str(o.optimized_minimum).c_str());
        }
        if (o.optimized_prepacks) {
            to.AddConfigEntry("session.save_external_prepacked_constant_initializers", "1");
        }
    }
}

void set_level(const PerfTestOptions& o, Ort::SessionOptions& to) {
    to.SetGraphOptimizationLevel(o.level > ORT_ENABLE_LAYOUT
                                     ? ORT_ENABLE_ALL
                                     : static_cast<GraphOptimizationLevel>(o.level));
}

} // namespace

void open_onnxruntime(const PerfTestOptions& o) {
    const OrtApiBase* base = nullptr;
    try {
        base = &openOnnxRuntime(o.ort_library);
    } catch (const std::runtime_error& e) {
        std::string found = o.ort_library.empty() ? library_of_python() : "";
        if (found.empty()) {
            fail(ErrorCode::Io, o.ort_library.empty() ? "" : "--ort-library: ", e.what());
        }
        base = &openOnnxRuntime(found);
    }
    Ort::InitApi(&onnxRuntimeApi(*base));
}

Registered::Registered(Ort::Env& env, const PerfTestOptions& o) : env_(env) {
    auto add = [&](const std::string& name, const std::string& path) {
        Ort::ThrowOnError(
            Ort::GetApi().RegisterExecutionProviderLibrary(env_, name.c_str(), path.c_str()));
        names_.push_back(name);
    };
    try {
        for (const auto& [name, path] : o.libraries) {
            add(name, fs::absolute(path).string());
        }
        bool listed = std::find(names_.begin(), names_.end(), provider_name) != names_.end();
        if (!listed && (o.provider != "cpu" || (o.list_devices && o.libraries.empty()))) {
            add(provider_name, own_plugin());
        }
    } catch (...) {
        unregister();
        throw;
    }
}

Registered::~Registered() {
    unregister();
}

void Registered::unregister() {
    for (const std::string& name : names_) {
        Ort::Status ignored(Ort::GetApi().UnregisterExecutionProviderLibrary(env_, name.c_str()));
    }
}

std::vector<const OrtEpDevice*> ep_devices(const Ort::Env& env) {
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    Ort::ThrowOnError(Ort::GetApi().GetEpDevices(env, &devices, &count));
    return {devices, devices + count};
}

void list_ep_devices(const Ort::Env& env) {
    const OrtApi& api = Ort::GetApi();
    size_t number = 0;
    for (const OrtEpDevice* d : ep_devices(env)) {
        std::printf("===== device id %zu ======\nname: %s\nvendor: %s\n", number++,
                    text_of(api.EpDevice_EpName(d)).c_str(),
                    text_of(api.EpDevice_EpVendor(d)).c_str());
        auto print = [](const char* title, const Pairs& pairs) {
            std::printf("%s", pairs.empty() ? "" : title);
            for (const auto& [key, value] : pairs) {
                std::printf("  %s: %s\n", key.c_str(), value.c_str());
            }
        };
        print("metadata:\n", pairs_of(api.EpDevice_EpMetadata(d)));
        print("options:\n", pairs_of(api.EpDevice_EpOptions(d)));
        std::printf("\n");
    }
}

Ort::SessionOptions session_options(Ort::Env& env, const PerfTestOptions& o, bool compiles) {
    const OrtApi& api = Ort::GetApi();
    Ort::SessionOptions to;
    append_providers(env, o, to);
    set_sizes(o, to);
    for (const auto& [key, value] : o.session_entries) {
        to.AddConfigEntry(key.c_str(), value.c_str());
    }
    if (!o.custom_ops.empty()) {
        void* handle = nullptr; // stays open until the process ends
        Ort::ThrowOnError(api.RegisterCustomOpsLibrary(to, o.custom_ops.c_str(), &handle));
    }
    if (compiles) {
        return to;
    }
    set_level(o, to);
    set_threads(o, to);
    set_saving(o, to);
    if (!o.profile.empty()) {
        Ort::ThrowOnError(api.EnableProfiling(to, o.profile.c_str()));
    }
    if (o.no_arena) {
        Ort::ThrowOnError(api.DisableCpuMemArena(to));
    }
    if (o.no_pattern) {
        Ort::ThrowOnError(api.DisableMemPattern(to));
    }
    if (o.denormals) {
        to.AddConfigEntry("session.set_denormal_as_zero", "1");
    }
    return to;
}

} // namespace ingot::tool
