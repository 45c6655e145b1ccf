// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/run_settings.h"

#include "base/file.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

namespace ingot::ort {

namespace {

struct ThreadRun {
    const RunSettings* session = nullptr;
    RunOptions options;
};
// The host passes a run's options to the provider on the running thread, and nothing to nodes.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local ThreadRun thread_run;

std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + '"';
}

std::string default_path() {
    std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    char text[32] = {};
    std::strftime(text, sizeof(text), "%Y%m%d_%H%M%S", &parts);
    return str("trt_rtx_profile_", text, "_", getpid(), ".json");
}

} // namespace

namespace {

/// The id of the run's graph, under either of its names. The default is 0.
int64_t graph_of(const Host& host, const OrtRunOptions* options) {
    constexpr const char* names[] = {"gpu_graph_id", "cuda_graph_annotation_id"};
    std::optional<int64_t> found;
    for (const char* name : names) {
        const char* text = host.api->GetRunConfigEntry(options, name);
        if (text == nullptr) {
            continue;
        }
        int64_t id = parse_int(name, text);
        require(id >= -1, ErrorCode::InvalidArgument, "run option \"", name, "\" is ", id,
                ", expected the number of a graph, 0 or more, or -1 for a run without one");
        require(!found || *found == id, ErrorCode::InvalidArgument, "run options \"", names[0],
                "\" and \"", names[1], "\" are the same option: got ", found.value_or(0), " and ",
                id, "; give one of them");
        found = id;
    }
    return found.value_or(0);
}

} // namespace

RunOptions read_run_options(const Host& host, const OrtRunOptions* options, int32_t device) {
    RunOptions out;
    if (const char* text = host.api->GetRunConfigEntry(options, "nv_profile_index")) {
        out.profile = parse_int("nv_profile_index", text);
    }
    out.graph = graph_of(host, options);
    // The host has checked the form: "cpu:0;gpu:0".
    if (const char* text =
            host.api->GetRunConfigEntry(options, "memory.enable_memory_arena_shrinkage")) {
        out.shrinks =
            device >= 0 && str(';', text, ';').find(str(";gpu:", device, ';')) != std::string::npos;
    }
    return out;
}

RunOptions RunSettings::run_options() const {
    return thread_run.session == this ? thread_run.options : RunOptions{};
}

void RunSettings::set_run_options(std::optional<RunOptions> given) const {
    thread_run = given ? ThreadRun{this, *given} : ThreadRun{};
}

StreamingBudget StreamingBudget::parse(std::string_view text) {
    const std::string whole(text);
    auto invalid = [&](const char* why) {
        fail(ErrorCode::InvalidArgument, "Invalid nv_weight_streaming_budget: ", whole, ". ", why);
    };
    StreamingBudget out;
    double v = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || !std::isfinite(v)) {
        invalid("Expected 0, -1, 1, a number of bytes with or without B, K, M or G, or a "
                "percentage.");
    }
    text.remove_prefix(static_cast<size_t>(at - text.data()));
    out.amount_ = v;
    if (text == "%") {
        if (v < 0 || v > 100) {
            invalid("The weight streaming percentage must be between 0 and 100.");
        }
        out.kind_ = Kind::Percent;
        return out;
    }
    constexpr std::string_view units = "BKMG";
    if (!text.empty()) {
        size_t unit = units.find(text.front());
        if (text.size() != 1 || unit == std::string_view::npos) {
            invalid("Invalid unit specifier. Valid base-2 unit suffixes include: B, K, M, G.");
        }
        out.amount_ = std::ldexp(v, static_cast<int>(unit) * 10);
    } else if (v == 0 || v == -1 || v == 1) {
        out.kind_ = v == 0 ? Kind::Off : v == 1 ? Kind::Least : Kind::Automatic;
        return out;
    }
    if (out.amount_ < 0 || out.amount_ > 9e18) {
        invalid("The number of bytes must be 0 or more.");
    }
    out.kind_ = Kind::Bytes;
    return out;
}

std::optional<int64_t> StreamingBudget::bytes(int64_t streamable, int64_t automatic) const {
    switch (kind_) {
    case Kind::Off:
        return std::nullopt;
    case Kind::Automatic:
        return automatic;
    case Kind::Least:
        return 0;
    case Kind::Percent:
        return static_cast<int64_t>(static_cast<double>(streamable) * amount_ / 100);
    case Kind::Bytes:
        break;
    }
    return static_cast<int64_t>(amount_);
}

void RunSettings::set_dynamic_option(const std::string& key, const std::string& value) {
    constexpr const char* workload = "ep.dynamic.workload_type";
    constexpr const char* streaming = "nv_weight_streaming_budget";
    if (key == workload) {
        require(value == "Default" || value == "Efficient", ErrorCode::InvalidArgument,
                "dynamic option \"", key, "\" is \"", value, "\", expected Default or Efficient");
        std::lock_guard<std::mutex> lock(mutex);
        low_priority = value == "Efficient";
    } else if (key == streaming) {
        StreamingBudget parsed = StreamingBudget::parse(value);
        std::lock_guard<std::mutex> lock(mutex);
        budget = parsed;
    } else {
        fail(ErrorCode::InvalidArgument, "Unknown dynamic option: \"", key, "\"; known are \"",
             workload, "\" and \"", streaming, "\"");
    }
    ++changes;
}

ProfileFile::ProfileFile(std::string path, Log log)
    : path_(path.empty() ? default_path() : std::move(path)), log_(log) {}

size_t ProfileFile::add_subgraph(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t number = runs_.size();
    runs_.push_back(0);
    events_ += str(events_.empty() ? "" : ",\n", R"({"name":"process_name","ph":"M","pid":)",
                   number, R"(,"args":{"name":)", json_text(name), "}}");
    return number;
}

void ProfileFile::add_run(size_t subgraph, const std::vector<LayerTime>& layers) {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t run = runs_.at(subgraph)++;
    double at = 0;
    for (const LayerTime& l : layers) {
        events_ +=
            str(",\n", R"({"name":)", json_text(l.name),
                R"(,"cat":"nv::trt::layer","ph":"X","ts":)", at, R"(,"dur":)", l.us, R"(,"pid":)",
                subgraph, R"(,"tid":)", run, R"(,"args":{"onnx_nodes":)", json_text(l.name), "}}");
        at += l.us;
    }
    try {
        write_file(path_, str("[\n", events_, "\n]\n"));
    } catch (const Error& e) {
        if (!std::exchange(warned_, true)) {
            log_.warning(str("the profile is not written: ", e.what()));
        }
    }
}

} // namespace ingot::ort
