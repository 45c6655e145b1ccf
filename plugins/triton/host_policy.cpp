// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/host_policy.h"

#include <nlohmann/json.hpp>

namespace ingot::triton {

namespace {

/// Names that the server gives to instances whose configuration names no policy.
bool is_default(std::string_view name) {
    return name == "cpu" || name == "model" || name.starts_with("gpu_");
}

std::string text_of(const nlohmann::json& settings, const char* name) {
    auto found = settings.find(name);
    return found == settings.end() ? ""
           : found->is_string()    ? found->get<std::string>()
                                   : found->dump();
}

} // namespace

HostPolicy read_host_policy(TRITONBACKEND_ModelInstance* instance) {
    std::string text =
        read_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_ModelInstanceHostPolicy, instance));
    auto o = nlohmann::json::parse(text, nullptr, false);
    require(o.is_object() && o.size() == 1 && o.begin()->is_object(), ErrorCode::InvalidArgument,
            "the host policy is ", text, ", expected one name with its settings");
    HostPolicy out;
    out.name = o.begin().key();
    out.cores = text_of(*o.begin(), "cpu-cores");
    out.node = text_of(*o.begin(), "numa-node");
    if (o.begin()->empty() && !is_default(out.name)) {
        out.note = str("the host policy '", out.name,
                       "' has no settings: the server gets them by --host-policy=", out.name,
                       ",cpu-cores=0-3 and --host-policy=", out.name, ",numa-node=0");
    }
    return out;
}

} // namespace ingot::triton
