// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/host_policy.h"

#include "base/json.h"

namespace ingot::triton {

namespace {

/// Names that the server gives to instances whose configuration names no policy.
bool is_default(std::string_view name) {
    return name == "cpu" || name == "model" || name.starts_with("gpu_");
}

/// The text of a setting; "" if it is not there.
std::string text_of(const Json& settings, const char* name) {
    const Json* found = settings.find(name);
    if (found == nullptr) {
        return "";
    }
    try {
        return found->get<std::string>();
    } catch (const Error&) {
        return found->dump();
    }
}

/// The policy's name and settings. Errors: InvalidArgument.
Json::Member read_policy(const std::string& text) {
    try {
        Json o = Json::parse(text);
        require(o.members().size() == 1, ErrorCode::InvalidArgument, "one policy is expected");
        static_cast<void>(o.members()[0].value.members()); // or it is no object
        return o.members()[0];
    } catch (const Error&) {
        fail(ErrorCode::InvalidArgument, "the host policy is ", text,
             ", expected one name with its settings");
    }
}

} // namespace

HostPolicy read_host_policy(TRITONBACKEND_ModelInstance* instance) {
    std::string text =
        read_json(get_from<TRITONSERVER_Message*>(TRITONBACKEND_ModelInstanceHostPolicy, instance));
    Json::Member policy = read_policy(text);
    HostPolicy out;
    out.name = policy.key;
    out.cores = text_of(policy.value, "cpu-cores");
    out.node = text_of(policy.value, "numa-node");
    if (policy.value.members().empty() && !is_default(out.name)) {
        out.note = str("the host policy '", out.name,
                       "' has no settings: the server gets them by --host-policy=", out.name,
                       ",cpu-cores=0-3 and --host-policy=", out.name, ",numa-node=0");
    }
    return out;
}

} // namespace ingot::triton
