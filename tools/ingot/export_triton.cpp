// SPDX-License-Identifier: Apache-2.0
// ingot export-triton: publishes a model as a new version in a repository of Triton Inference
// Server.
#include "api/options/common.h"
#include "api/options/serving.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/process.h"
#include "commands.h"
#include "common.h"
#include "workflow/serving/http.h"
#include "workflow/serving/model_config.h"
#include "workflow/serving/repository.h"

#include <cstdio>
#include <filesystem>
#include <thread>

namespace ingot::tool {

namespace {

using namespace serving;

constexpr int64_t usual_max_batch = 8; // where neither an option nor a profile bounds it
constexpr double lock_seconds = 600;
constexpr double load_seconds = 600;
constexpr double ready_seconds = 60;

Placement placement(const Options& o) {
    require(!o.serving().on_cpu || o.serving().on_gpus.empty(), ErrorCode::InvalidArgument,
            "--cpu and --gpus are given: leave one of them out");
    Placement p;
    p.instances = o.serving().instances;
    p.kind = o.serving().on_cpu             ? Placement::Kind::Cpu
             : !o.serving().on_gpus.empty() ? Placement::Kind::Gpu
                                            : Placement::Kind::Auto;
    if (p.kind == Placement::Kind::Gpu && o.serving().on_gpus != "all") {
        for (double v : parse_numbers(o.serving().on_gpus)) {
            require(v >= 0 && v < 1024 && v == static_cast<int>(v), ErrorCode::InvalidArgument,
                    "--gpus ", o.serving().on_gpus,
                    ": numbers of GPUs joined by commas, or all, are expected");
            p.gpus.push_back(static_cast<int>(v));
        }
    }
    return p;
}

int64_t max_batch(const Options& o, const Interface& interface) {
    int64_t asked = o.serving().max_batch;
    if (!interface.takes_batches()) {
        require(asked == 0 && o.serving().buckets.empty(), ErrorCode::InvalidArgument,
                asked != 0 ? "--max-batch" : "--buckets",
                ": the model takes no batches, since not every input and output begins with a size "
                "that is open; leave the option out, or export the model with an open first size");
        return 0;
    }
    require(interface.most_rows == 0 || asked <= interface.most_rows, ErrorCode::InvalidArgument,
            "--max-batch ", asked, ": the engine's profile allows ", interface.most_rows,
            " rows; build it with larger --maxShapes");
    return asked != 0 ? asked : interface.most_rows != 0 ? interface.most_rows : usual_max_batch;
}

ServedModel served_model(const Options& o, const Interface& interface) {
    ServedModel m;
    m.name = o.serving().model_name;
    m.max_batch = max_batch(o, interface);
    m.buckets = o.serving().buckets.empty() ? default_buckets(m.max_batch)
                                            : parse_buckets(o.serving().buckets, m.max_batch);
    m.queue_delay_us = o.serving().queue_delay;
    m.placement = placement(o);
    m.warm_up = o.serving().server_warm_up;
    return m;
}

const Backend& backend_of(const Placement& p) {
    std::string why;
    const Backend* cuda = p.kind == Placement::Kind::Cpu ? nullptr
                          : p.gpus.empty()               ? cuda_backend(why)
                                                         : cuda_backend(p.gpus.front(), why);
    require(cuda != nullptr || p.kind != Placement::Kind::Gpu, ErrorCode::Unsupported,
            "--gpus: the model cannot be checked: ", why, "; publish it on a machine with a GPU");
    return cuda != nullptr ? *cuda : cpu_backend();
}

/// Runs the model with each row count, on zeros as the backend does.
int check_runs(const Options& o) {
    std::shared_ptr<const Engine> engine = open_model(o, o.model);
    ServedModel model = served_model(o, interface_of(*engine));
    const Graph& g = engine->graph();
    Context context(engine, backend_of(model.placement), compile_options(o, *engine));
    std::vector<int64_t> counts = model.buckets;
    if (counts.empty()) {
        counts.push_back(0);
    }
    for (int64_t rows : counts) {
        std::vector<Tensor> inputs;
        for (Tensor& t : load_inputs(*engine, input_source(o)).tensors) {
            Shape shape = t.shape();
            if (rows > 0) {
                shape[0] = rows;
            }
            inputs.push_back(Tensor::zeros(t.dtype(), shape));
        }
        std::vector<Tensor> outputs =
            with_place([&] { return rows > 0 ? str("a batch of ", rows) : std::string("a run"); },
                       [&] { return context.run(inputs); });
        for (size_t i = 0; rows > 0 && i < outputs.size(); ++i) {
            require(!outputs[i].shape().empty() && outputs[i].shape()[0] == rows,
                    ErrorCode::Unsupported, "output '", g.output_names()[i], "' has shape ",
                    outputs[i].shape(), " for a batch of ", rows,
                    ": one row for each of the batch is expected; build the engine with a fixed "
                    "first size to serve it without batches");
        }
    }
    std::printf("runs %s\n", model.max_batch > 0 ? "with every row count" : "once");
    return 0;
}

/// The same in a process of its own, which a crash ends alone.
void check_in_child(const Options& o, const std::string& file, const ServedModel& model) {
    std::error_code error;
    std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
    std::vector<std::string> words = {error ? "ingot" : self, "export-triton", file,
                                      "--check-only"};
    auto add = [&words](const char* name, const std::string& value) {
        words.insert(words.end(), {name, value});
    };
    if (model.max_batch > 0) {
        add("--max-batch", str(model.max_batch));
        std::string list;
        for (int64_t rows : model.buckets) {
            append(list, str(list.empty() ? "" : ",", rows));
        }
        add("--buckets", list);
    }
    if (o.serving().on_cpu) {
        words.emplace_back("--cpu");
    }
    if (!o.serving().on_gpus.empty()) {
        add("--gpus", o.serving().on_gpus);
    }
    if (!o.common().shapes.empty()) {
        add("--shapes", o.common().shapes);
    }
    if (o.common().timeout > 0) {
        add("--timeout", str(o.common().timeout));
    }
    ProcessResult result = run_process(words);
    check_interrupt();
    require(result.exit_code == 0, ErrorCode::InvalidEngine, o.model,
            " is not published: its check ended with exit code ", result.exit_code,
            result.exit_code > 128 ? " (a signal)" : "", " and says: ", result.output);
}

void compare_with_served(const Options& o, const ModelFolder& folder, const Interface& next) {
    require(!folder.has_foreign_config() || o.serving().replace_config, ErrorCode::InvalidArgument,
            folder.path,
            "/config.pbtxt was not written by ingot export-triton; --replace-config replaces it");
    if (!folder.served || o.serving().allow_changed_interface) {
        return;
    }
    std::string file = folder.file_of(*folder.served);
    std::vector<std::string> changes;
    try {
        require(!file.empty(), ErrorCode::Io, folder.path, '/', *folder.served,
                " has no model.engine, model.plan or model.onnx");
        changes = differences(interface_of(*open_model(o, file)), next);
    } catch (const Error& e) {
        fail(ErrorCode::InvalidEngine, "version ", *folder.served,
             ", which is served now, cannot be compared: ", e.what(),
             "; --allow-changed-interface publishes without a comparison");
    }
    require(changes.empty(), ErrorCode::InvalidArgument, "version ", *folder.served,
            " is served now, and clients would notice: ", join(changes, "; "),
            ". --allow-changed-interface publishes nevertheless");
}

std::string error_in(const HttpAnswer& answer) {
    try {
        return Json::parse(answer.body, 4).at("error").get<std::string>();
    } catch (const Error&) {
        return answer.body;
    }
}

/// Errors: Io with what the server says.
void load(const std::string& url, const std::string& name, int64_t version) {
    std::string model = str("/v2/repository/models/", name);
    HttpAnswer answer = http_post(url, model + "/load", "{}", load_seconds);
    require(answer.status == 200, ErrorCode::Io, url, " does not load ", name, ": ", answer.status,
            ' ', error_in(answer));
    double end = seconds_now() + ready_seconds;
    std::string ready = str("/v2/models/", name, "/versions/", version, "/ready");
    while ((answer = http_get(url, ready, ready_seconds)).status != 200) {
        check_interrupt();
        require(seconds_now() < end, ErrorCode::Io, url, " has loaded ", name, ", and version ",
                version, " is not ready after ", ready_seconds, " s: ", answer.status, ' ',
                error_in(answer));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

/// Loads in all servers; on failure all serve what they did before.
void load_everywhere(const Options& o, Publication& publication, const ModelFolder& before,
                     int64_t version) {
    const std::vector<std::string>& urls = o.serving().load_urls;
    size_t asked = 0;
    try {
        for (const std::string& url : urls) {
            asked++;
            load(url, o.serving().model_name, version);
        }
    } catch (Error& e) {
        clear_interrupt(); // what follows is no longer to be interrupted
        publication.undo();
        std::string model = str("/v2/repository/models/", o.serving().model_name);
        std::string state = before.served ? str("version ", *before.served, " is served again")
                                          : std::string("the model is removed again");
        for (size_t i = 0; i < asked; ++i) {
            try {
                http_post(urls[i], model + (before.served ? "/load" : "/unload"), "{}",
                          load_seconds);
            } catch (const Error& other) {
                append(state, str(", but ", other.what()));
            }
        }
        throw Error(e.code(), str(e.what(), "; ", state));
    }
}

void put_engine(const Options& o, const Engine& engine, const std::string& file) {
    if (is_engine_file(o.model)) {
        write_file(file, MappedFile::open(o.model)->bytes());
    } else {
        write_engine(file, engine, as_built(engine));
    }
}

void report(const Options& o, const ServedModel& m, const ModelFolder& before,
            const std::vector<int64_t>& removed) {
    std::string place = str(before.path, '/', m.version);
    if (o.common().json) {
        Json out = Json::object();
        out.set("model", m.name);
        out.set("version", m.version);
        out.set("path", place);
        out.set("published", !o.serving().dry_run);
        out.set("served_before", before.served ? Json(*before.served) : Json());
        out.set("max_batch_size", m.max_batch);
        out.set("buckets", m.buckets);
        out.set("removed_versions", removed);
        out.set("loaded", o.serving().load_urls);
        std::printf("%s\n", out.dump(2).c_str());
        return;
    }
    std::printf("%s: version %lld %s %s", m.name.c_str(), static_cast<long long>(m.version),
                o.serving().dry_run ? "would be published in" : "published in", place.c_str());
    std::printf("%s\n", before.served ? str("; before: ", *before.served).c_str() : "");
    if (m.max_batch > 0) {
        std::printf("batches of up to %lld rows; prepared: %s\n",
                    static_cast<long long>(m.max_batch), str(m.buckets).c_str());
    }
    for (int64_t version : removed) {
        std::printf("version %lld removed\n", static_cast<long long>(version));
    }
}

} // namespace

int export_triton(const Options& o) {
    if (o.serving().check_only) {
        return check_runs(o);
    }
    const std::string& repository = o.serving().repository;
    const std::string& name = o.serving().model_name;
    require(!repository.empty(), ErrorCode::InvalidArgument,
            "where should the model go? give --repository DIR");
    require(!name.empty(), ErrorCode::InvalidArgument,
            "how is the model called there? give --name NAME");
    std::shared_ptr<const Engine> engine = open_model(o, o.model);
    Interface interface = interface_of(*engine);
    ServedModel model = served_model(o, interface);
    config_text(model, interface); // its errors, before anything is written
    FolderLock lock(repository, lock_seconds);
    ModelFolder before = read_model_folder(repository, name);
    compare_with_served(o, before, interface);
    model.version = o.serving().model_version != 0 ? o.serving().model_version
                    : before.versions.empty()      ? 1
                                                   : before.versions.back() + 1;
    require(std::find(before.versions.begin(), before.versions.end(), model.version) ==
                before.versions.end(),
            ErrorCode::InvalidArgument, before.path, '/', model.version,
            " exists; leave --version out for the next number");
    Publication publication(repository, name, model.version, o.serving().staging, lock.held());
    put_engine(o, *engine, publication.file());
    check_in_child(o, publication.file(), model);
    std::vector<int64_t> removed;
    if (!o.serving().dry_run) {
        publication.commit(config_text(model, interface));
        load_everywhere(o, publication, before, model.version);
        if (o.serving().prune > 0) {
            removed = prune(read_model_folder(repository, name), o.serving().prune);
        }
    }
    report(o, model, before, removed);
    return 0;
}

} // namespace ingot::tool
