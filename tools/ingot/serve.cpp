// SPDX-License-Identifier: Apache-2.0
// ingot serve: the servers of this machine, guarded, behind one proxy.
#include "api/options/common.h"
#include "api/options/serving.h"
#include "base/cpus.h"
#include "base/error.h"
#include "base/file.h"
#include "base/private_files.h"
#include "base/process.h"
#include "base/shared_library.h"
#include "base/socket.h"
#include "commands.h"
#include "common.h"
#include "workflow/serving/supervisor.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace ingot::tool {

namespace {

using namespace serving;
namespace fs = std::filesystem;

std::string program(const std::string& option, const std::string& given, const std::string& name,
                    const std::string& usual, const std::string& remedy) {
    std::string found = find_program(given.empty() ? name : given);
    if (found.empty() && given.empty()) {
        found = find_program(usual);
    }
    require(!found.empty(), ErrorCode::Io, given.empty() ? name : given,
            " is no program that can be run", given.empty() ? str(", nor is ", usual) : "",
            "; name it by ", option, remedy);
    return fs::absolute(found);
}

/// The installation's folder of backends. Without an installation, one in `folder` with links to
/// the libraries beside this program, laid out as the server expects.
std::string backend_folder(const std::string& given, const std::string& folder) {
    fs::path own = own_folder();
    if (!given.empty()) {
        require(fs::is_directory(given), ErrorCode::Io, "--backends ", given,
                ": there is no such folder");
        return fs::absolute(given);
    }
    fs::path installed = own / "../lib/ingot/backends";
    if (fs::exists(installed / "ingot/libtriton_ingot.so")) {
        return fs::canonical(installed);
    }
    require(fs::exists(own / "libtriton_ingot.so"), ErrorCode::Io,
            "libtriton_ingot.so is neither in ", installed.string(), "/ingot nor in ", own.string(),
            "; name the folder that has ingot/libtriton_ingot.so by --backends");
    fs::path target = fs::path(folder) / "backends/ingot";
    fs::create_directories(target);
    for (const char* name : {"libtriton_ingot.so", "libingot.so", "libingot_cpu.so"}) {
        fs::remove(target / name);
        fs::create_symlink(own / name, target / name);
    }
    return fs::absolute(fs::path(folder) / "backends");
}

bool has_gpu_files() {
    std::error_code ignored;
    return fs::exists("/dev/nvidia0", ignored) || fs::exists("/dev/nvidia-caps", ignored) ||
           fs::exists("/dev/dxg", ignored);
}

/// One entry for each worker; "" for one on the CPU.
std::vector<std::string> worker_devices(const Options& o) {
    require(o.serving().workers == 0 || o.serving().devices.empty(), ErrorCode::InvalidArgument,
            "--workers and --devices are given: --workers counts servers on the CPU; leave one of "
            "them out");
    if (o.serving().workers > 0) {
        return std::vector<std::string>(static_cast<size_t>(o.serving().workers));
    }
    if (!o.serving().devices.empty()) {
        return parse_names(o.serving().devices);
    }
    std::vector<std::string> all;
    if (!find_program("nvidia-smi").empty()) {
        ProcessResult listed = run_process({"nvidia-smi", "-L"});
        all = listed.exit_code == 0 ? listed_devices(listed.output) : all;
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr && (!all.empty() || has_gpu_files())) {
        all = parse_names(visible);
    }
    require(!all.empty() || visible != nullptr || !has_gpu_files(), ErrorCode::Device,
            "there are GPUs, and nvidia-smi does not list them; name them by --devices, or serve "
            "on the CPU by --workers 1");
    return all.empty() ? std::vector<std::string>(1) : all;
}

/// The part of worker `i` of `count`, where each gets a core at least; else none, which means all.
std::vector<int> share_of_cpus(size_t i, size_t count) {
    std::vector<int> all = usable_cpus();
    if (count < 2 || all.size() < count) {
        return {};
    }
    auto at = [&](size_t n) { return all.begin() + static_cast<int64_t>(all.size() * n / count); };
    return {at(i), at(i + 1)};
}

/// Three ports for each worker, past those that are taken unless the files are only written.
void choose_ports(const Options& o, ServePlan& plan) {
    int64_t next = o.serving().worker_port;
    auto take = [&] {
        while (o.serving().write_only.empty() && next <= 65535 &&
               !port_is_free("127.0.0.1", static_cast<uint16_t>(next))) {
            next++;
        }
        require(next <= 65535, ErrorCode::InvalidArgument, "--worker-port ",
                o.serving().worker_port, ": not enough free ports follow for ", plan.workers.size(),
                " workers");
        return next++;
    };
    for (WorkerPlan& w : plan.workers) {
        w.http = take();
        w.grpc = take();
        w.metrics = take();
    }
}

void require_free_ports(const ServePlan& plan) {
    auto check = [&](const char* option, int64_t port) {
        require(port_is_free(plan.address, static_cast<uint16_t>(port)), ErrorCode::Io, option, ' ',
                port, ": the port is in use on ", plan.address, "; name another");
    };
    check("--http-port", plan.http);
    check("--grpc-port", plan.grpc);
    check("--metrics-port", plan.metrics);
}

ServePlan make_plan(const Options& o, const std::string& folder) {
    ServePlan plan;
    plan.folder = fs::absolute(folder);
    require(plan.folder.find_first_of(" \t\n\"'\\#") == std::string::npos,
            ErrorCode::InvalidArgument, plan.folder,
            ": HAProxy's configuration cannot name a path with blanks, quotes, '\\' or '#'");
    require(fs::is_directory(o.model), ErrorCode::Io, o.model,
            ": there is no such model repository; ingot export-triton fills one");
    plan.repository = fs::absolute(o.model);
    plan.tritonserver =
        program("--tritonserver", o.serving().tritonserver, "tritonserver",
                "/opt/tritonserver/bin/tritonserver", "; docs/serving.md says where to get it");
    plan.haproxy = program("--haproxy", o.serving().haproxy, "haproxy", "/usr/sbin/haproxy",
                           ", or install the package haproxy");
    plan.backends = backend_folder(o.serving().backends, folder);
    plan.address = o.serving().address;
    plan.http = o.serving().http_port;
    plan.grpc = o.serving().grpc_port;
    plan.metrics = o.serving().metrics_port;
    plan.open = o.serving().open_endpoints;
    plan.retry_bytes = o.serving().retry_bytes;
    plan.drain_seconds = o.serving().drain;
    plan.server_options = o.serving().server_options;
    plan.key = random_key();
    std::vector<std::string> devices = worker_devices(o);
    for (size_t i = 0; i < devices.size(); ++i) {
        WorkerPlan w;
        w.devices = devices[i];
        if (w.devices.empty()) {
            w.cpus = share_of_cpus(i, devices.size());
        }
        plan.workers.push_back(w);
    }
    choose_ports(o, plan);
    return plan;
}

RestartRules restart_rules(const Options& o) {
    RestartRules rules;
    rules.deaths = static_cast<int>(o.serving().restart_limit);
    rules.window = std::chrono::seconds(o.serving().restart_window);
    rules.healthy_after = std::chrono::seconds(o.serving().healthy_after);
    return rules;
}

} // namespace

int serve(const Options& o) {
    try {
        if (!o.serving().write_only.empty()) {
            make_private_folder(o.serving().write_only);
            ServePlan plan = make_plan(o, o.serving().write_only);
            write_files(plan, true);
            std::printf("%s: haproxy.cfg, metrics.lua, proxy.sh and worker-0.sh to worker-%zu.sh\n",
                        o.serving().write_only.c_str(), plan.workers.size() - 1);
            return 0;
        }
        TemporaryFolder folder;
        ServePlan plan = make_plan(o, folder.path());
        require_free_ports(plan);
        write_files(plan, false);
        ProcessResult checked = run_process({plan.haproxy, "-c", "-f", plan.proxy_file()});
        require(checked.exit_code == 0, ErrorCode::Io, plan.haproxy,
                " does not take its configuration: ", checked.output);
        supervise({plan, restart_rules(o), std::chrono::seconds(o.serving().silence),
                   [](const std::string& event) {
                       std::printf("ingot serve: %s\n", event.c_str());
                       std::fflush(stdout);
                   }});
    } catch (const fs::filesystem_error& e) {
        fail(ErrorCode::Io, "serve ", o.model, ": ", e.what());
    }
    return 0;
}

} // namespace ingot::tool
