// SPDX-License-Identifier: Apache-2.0
#include "api/options.h"
#include "api/options/common.h"
#include "base/error.h"
#include "commands.h"
#include "onnx/importer.h"
#include "onnx/reader.h"
#include "onnx/string_ends.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace ingot::tool {

int check(const Options& o) {
    onnx::Model model = onnx::read_model_file(o.model);
    onnx::ImportResult r = onnx::import_model(model);
    if (o.common().json) {
        nlohmann::json list = nlohmann::json::array();
        for (const onnx::Refusal& n : r.refusals) {
            list.push_back({{"node", n.node},
                            {"domain", n.domain},
                            {"operator", n.type},
                            {"opset", n.opset},
                            {"reason", n.reason}});
        }
        std::printf(
            "%s\n",
            nlohmann::json{{"supported", r.refusals.empty()}, {"refused", list}}.dump(2).c_str());
        return r.refusals.empty() ? 0 : 1;
    }
    for (const onnx::Refusal& n : r.refusals) {
        std::printf("%s: %s%s%s (opset %lld): %s\n", n.node.c_str(), n.domain.c_str(),
                    n.domain.empty() ? "" : ".", n.type.c_str(), static_cast<long long>(n.opset),
                    n.reason.c_str());
    }
    if (r.refusals.empty()) {
        std::printf("%s: every node is supported\n", o.model.c_str());
        return 0;
    }
    std::string advice = onnx::string_advice(model);
    std::printf("%s%s", advice.c_str(), advice.empty() ? "" : "\n");
    std::printf("%s: %zu unsupported\n", o.model.c_str(), r.refusals.size());
    return 1;
}

} // namespace ingot::tool
