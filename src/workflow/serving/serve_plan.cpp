// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/serve_plan.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/private_files.h"

#include <algorithm>
#include <filesystem>
#include <random>

namespace ingot::serving {

namespace {

constexpr std::string_view closable[] = {"model-repository", "shared-memory", "trace", "logging"};
constexpr std::string_view key_header = "ingot-key";
constexpr int64_t room_beside_body = 65536; // headers, and frames of HTTP/2

constexpr std::string_view metrics_lua =
    R"lua(-- Written by ingot serve: the metrics of all workers as one page.
local arguments = table.pack(...)
local state_file = arguments[1]
local workers = {}
for i = 2, arguments.n do
    local name, address = arguments[i]:match("^(.-)=(.*)$")
    workers[#workers + 1] = {name = name, address = address}
end

-- Lines of one family stand together, below one HELP and one TYPE.
local function new_page()
    local page = {order = {}, families = {}}
    function page:family(name)
        if not self.families[name] then
            self.families[name] = {help = nil, type = nil, samples = {}}
            self.order[#self.order + 1] = name
        end
        return self.families[name]
    end
    function page:add(text, worker)
        local current = ""
        for line in text:gmatch("[^\r\n]+") do
            local kind, name = line:match("^# (%u+) (%S+)")
            if kind == "HELP" or kind == "TYPE" then
                current = name
                local family = self:family(name)
                family[kind:lower()] = family[kind:lower()] or line
            elseif line:match("^[%a_:]") then
                local sample, rest = line:match("^([%w_:]+)(.*)$")
                local belongs = current ~= "" and sample:sub(1, #current) == current
                if worker then
                    local label = '{worker="' .. worker .. '"'
                    if rest:sub(1, 2) == "{}" then
                        rest = label .. rest:sub(2)
                    elseif rest:sub(1, 1) == "{" then
                        rest = label .. "," .. rest:sub(2)
                    else
                        rest = label .. "}" .. rest
                    end
                end
                local samples = self:family(belongs and current or sample).samples
                samples[#samples + 1] = sample .. rest
            end
        end
    end
    function page:text()
        local lines = {}
        for _, name in ipairs(self.order) do
            local family = self.families[name]
            lines[#lines + 1] = family.help
            lines[#lines + 1] = family.type
            for _, sample in ipairs(family.samples) do
                lines[#lines + 1] = sample
            end
        end
        return table.concat(lines, "\n") .. "\n"
    end
    return page
end

core.register_service("ingot_metrics", "http", function(applet)
    local page = new_page()
    page:add("# HELP ingot_serve_worker_up Whether the worker's metrics could be read\n" ..
             "# TYPE ingot_serve_worker_up gauge\n")
    for _, worker in ipairs(workers) do
        local client = core.httpclient()
        local answer = client:get{url = "http://" .. worker.address .. "/metrics", timeout = 2000}
        local up = answer.status == 200
        page:add("ingot_serve_worker_up " .. (up and 1 or 0), worker.name)
        if up then
            page:add(answer.body, worker.name)
        end
    end
    local file = io.open(state_file, "r")
    if file then
        page:add(file:read("a"))
        file:close()
    end
    local text = page:text()
    applet:set_status(200)
    applet:add_header("content-type", "text/plain; version=0.0.4")
    applet:add_header("content-length", #text)
    applet:start_response()
    applet:send(text)
end)
)lua";

std::string closed_endpoints(const ServePlan& plan) {
    std::string out;
    for (std::string_view name : closable) {
        if (std::find(plan.open.begin(), plan.open.end(), name) == plan.open.end()) {
            append(out, str(out.empty() ? "" : ",", name));
        }
    }
    return out;
}

std::string quoted(const std::string& word) {
    std::string out = "'";
    for (char c : word) {
        out += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return out + "'";
}

std::string backend_text(const ServePlan& plan, std::string_view name, bool is_grpc) {
    std::string out = str("\nbackend ", name,
                          "\n"
                          "    balance leastconn\n"
                          "    option httpchk\n"
                          "    http-check send meth GET uri /v2/health/live\n"
                          "    http-check expect status 200\n"
                          "    http-request disable-l7-retry if { req.body_size gt ",
                          plan.retry_bytes, " }\n");
    for (size_t i = 0; i < plan.workers.size(); ++i) {
        const WorkerPlan& w = plan.workers[i];
        append(out, str("    server w", i, " 127.0.0.1:", is_grpc ? w.grpc : w.http));
        append(out, is_grpc ? str(" proto h2 check check-proto h1 port ", w.http)
                            : std::string(" check"));
        append(out, w.given_up ? " disabled\n" : "\n");
    }
    return out;
}

} // namespace

std::string random_key() {
    std::random_device random;
    std::string out;
    for (int i = 0; i < 16; ++i) {
        append_hex(out, static_cast<uint8_t>(random()));
    }
    return out;
}

ChildCommand worker_command(const ServePlan& plan, size_t worker) {
    const WorkerPlan& w = plan.workers[worker];
    ChildCommand out;
    out.cpus = w.cpus;
    out.environment = {{"CUDA_VISIBLE_DEVICES", w.devices}};
    // A model that cannot be loaded is no reason to serve none of the others.
    out.arguments = {plan.tritonserver,
                     str("--model-repository=", plan.repository),
                     str("--backend-directory=", plan.backends),
                     "--exit-on-error=false",
                     str("--exit-timeout-secs=", plan.drain_seconds),
                     "--http-address=127.0.0.1",
                     str("--http-port=", w.http),
                     "--grpc-address=127.0.0.1",
                     str("--grpc-port=", w.grpc),
                     "--metrics-address=127.0.0.1",
                     str("--metrics-port=", w.metrics)};
    // A gRPC answer of UNAVAILABLE is none that the proxy tries again; a connection that ends is.
    for (std::string_view backend : {"ingot", "tensorrt", "onnxruntime"}) {
        out.arguments.push_back(str("--backend-config=", backend, ",after-loss=hold"));
    }
    if (std::find(plan.open.begin(), plan.open.end(), "model-repository") != plan.open.end()) {
        out.arguments.insert(out.arguments.end(),
                             {"--model-control-mode=explicit", "--load-model=*"});
    }
    if (std::string closed = closed_endpoints(plan); !closed.empty()) {
        out.arguments.push_back(
            str("--http-restricted-api=", closed, ":", key_header, "=", plan.key));
        out.arguments.push_back(
            str("--grpc-restricted-protocol=", closed, ":", key_header, "=", plan.key));
    }
    out.arguments.insert(out.arguments.end(), plan.server_options.begin(),
                         plan.server_options.end());
    return out;
}

ChildCommand proxy_command(const ServePlan& plan) {
    // Buffers hold whole requests. The C library's defaults give such blocks back to the system
    // after each request, and each page of the next one is a fault: 1.1 ms in place of 0.2.
    constexpr const char* most_kept = "33554432";
    return {{plan.haproxy, "-db", "-f", plan.proxy_file()},
            {{"MALLOC_MMAP_THRESHOLD_", most_kept}, {"MALLOC_TRIM_THRESHOLD_", "268435456"}},
            {}};
}

std::string proxy_config(const ServePlan& plan) {
    std::string metrics = str("    lua-load ", plan.folder, "/metrics.lua ", plan.state_file());
    for (size_t i = 0; i < plan.workers.size(); ++i) {
        append(metrics, str(" ", i, "=127.0.0.1:", plan.workers[i].metrics));
    }
    std::string out = str(
        "# Written by ingot serve.\n"
        "global\n"
        "    maxconn 4096\n"
        "    stats socket ",
        plan.proxy_socket(),
        " mode 600 level admin\n"
        "    hard-stop-after ",
        plan.drain_seconds, "s\n    tune.bufsize ", plan.retry_bytes + room_beside_body, "\n",
        "    # A request shares its connection with no other. HAProxy drops what a dead server\n"
        "    # had answered when it meets the error while it sends another stream's request.\n"
        "    .if version_atleast(2.8)\n"
        "        tune.h2.be.max-concurrent-streams 1\n"
        "    .endif\n",
        metrics,
        "\n\n"
        "defaults\n"
        "    mode http\n"
        "    timeout connect 500ms\n"
        "    timeout check 5s\n"
        "    timeout client 600s\n"
        "    timeout server 600s\n"
        "    timeout http-request 60s\n"
        "    timeout http-keep-alive 60s\n"
        "    timeout queue 10s\n"
        "    # One more try, on another worker. 500 is the answer of a batch that has hurt a\n"
        "    # device, and is never tried again.\n"
        "    retries 1\n"
        "    option redispatch 1\n"
        "    retry-on conn-failure empty-response junk-response 503\n"
        "    option http-buffer-request\n"
        "    # Clients that keep connections get one more answer before they are closed.\n"
        "    option idle-close-on-response\n"
        "    default-server inter 200ms downinter 100ms fall 1 rise 1\n"
        "\nfrontend http\n    bind ",
        plan.address, ":", plan.http,
        "\n    # The server takes forms apart on its stack: one of 4 MB would end it.\n"
        "    http-request set-header Content-Type application/octet-stream if "
        "{ req.hdr(content-type) -m sub -i x-www-form-urlencoded }\n"
        "    default_backend http_workers\n"
        "\nfrontend grpc\n    bind ",
        plan.address, ":", plan.grpc,
        " proto h2\n    default_backend grpc_workers\n"
        "\nfrontend metrics\n    bind ",
        plan.address, ":", plan.metrics,
        "\n    http-request use-service lua.ingot_metrics if { path /metrics }\n"
        "    http-request return status 404\n");
    return out + backend_text(plan, "http_workers", false) +
           backend_text(plan, "grpc_workers", true);
}

std::string metrics_script() {
    return std::string(metrics_lua);
}

std::string script_of(const ChildCommand& command) {
    std::string out = "#!/bin/sh\n# Written by ingot serve.\nexec";
    if (!command.environment.empty()) {
        append(out, " env");
    }
    for (const auto& [name, value] : command.environment) {
        append(out, str(" ", name, "=", quoted(value)));
    }
    if (!command.cpus.empty()) {
        std::string list;
        for (int cpu : command.cpus) {
            append(list, str(list.empty() ? "" : ",", cpu));
        }
        append(out, str(" taskset -c ", list));
    }
    for (const std::string& word : command.arguments) {
        append(out, str(" \\\n    ", quoted(word)));
    }
    return out + "\n";
}

void write_files(const ServePlan& plan, bool scripts) {
    make_private_folder(plan.folder);
    write_file(plan.proxy_file(), proxy_config(plan));
    write_file(plan.folder + "/metrics.lua", metrics_script());
    if (!scripts) {
        return;
    }
    auto write_script = [&](const std::string& name, const ChildCommand& command) {
        std::string path = str(plan.folder, "/", name);
        write_file(path, script_of(command));
        std::filesystem::permissions(path, std::filesystem::perms::owner_all); // it has the key
    };
    for (size_t i = 0; i < plan.workers.size(); ++i) {
        write_script(str("worker-", i, ".sh"), worker_command(plan, i));
    }
    write_script("proxy.sh", proxy_command(plan));
}

std::vector<std::string> listed_devices(const std::string& text) {
    std::vector<std::string> out;
    bool last_is_gpu = false; // the last of `out`, whose slices may follow
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        at = end + 1;
        size_t id = line.find("UUID: ");
        size_t close = line.find(')', id == std::string::npos ? 0 : id);
        if (id == std::string::npos || close == std::string::npos) {
            continue;
        }
        id += std::string_view("UUID: ").size();
        bool is_gpu = line.starts_with("GPU ");
        if (!is_gpu && last_is_gpu) {
            out.pop_back();
        }
        out.push_back(line.substr(id, close - id));
        last_is_gpu = is_gpu;
    }
    return out;
}

} // namespace ingot::serving
