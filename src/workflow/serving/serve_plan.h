// SPDX-License-Identifier: Apache-2.0
// One machine's servers and the proxy in front of them, as files and command lines.
#pragma once

#include "base/child_process.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::serving {

/// One tritonserver, on 127.0.0.1.
struct WorkerPlan {
    std::string devices;   // its CUDA_VISIBLE_DEVICES; "": the CPU
    std::vector<int> cpus; // empty: all
    int64_t http = 0, grpc = 0, metrics = 0;
    bool given_up = false;
};

struct ServePlan {
    std::string folder; // of the files that write_files() makes
    std::string repository, backends, tritonserver, haproxy;
    std::string address; // where clients connect
    int64_t http = 0, grpc = 0, metrics = 0;
    std::vector<std::string> open; // endpoints: "model-repository", "shared-memory", ...
    int64_t retry_bytes = 0;       // the largest request that is repeated
    int64_t drain_seconds = 0;
    std::vector<std::string> server_options;
    std::string key; // that closed endpoints ask for; nobody is told
    std::vector<WorkerPlan> workers;

    std::string proxy_file() const { return folder + "/haproxy.cfg"; }
    std::string proxy_socket() const { return folder + "/haproxy.sock"; }
    std::string state_file() const { return folder + "/workers.prom"; }
};

/// 32 hexadecimal digits.
std::string random_key();
ChildCommand worker_command(const ServePlan& plan, size_t worker);
ChildCommand proxy_command(const ServePlan& plan);
std::string proxy_config(const ServePlan& plan);
/// Lua for the proxy: the metrics of all workers as one page, each with the label `worker`.
std::string metrics_script();
/// A script for /bin/sh that becomes the program.
std::string script_of(const ChildCommand& command);
/// Writes proxy_config() and metrics_script() into the folder; with `scripts` also worker-0.sh, ...
/// and proxy.sh, for another supervisor. Readable by this user alone. Errors: Io.
void write_files(const ServePlan& plan, bool scripts);

/// The devices of CUDA_VISIBLE_DEVICES for one worker each, from what `nvidia-smi -L` prints: its
/// MIG slices, and GPUs without any.
std::vector<std::string> listed_devices(const std::string& text);

} // namespace ingot::serving
