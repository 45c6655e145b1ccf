// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/shared_engines.h"

#include "base/error.h"

namespace ingot::ort {

SharedEngines::Found SharedEngines::get(const std::string& key,
                                        const std::function<LoadedEngine()>& load) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(engines_, [](const auto& e) { return e.second.expired(); });
    if (auto it = engines_.find(key); it != engines_.end()) {
        if (std::shared_ptr<const LoadedEngine> engine = it->second.lock()) {
            return {std::move(engine), true, false};
        }
    }
    auto engine = std::make_shared<const LoadedEngine>(load());
    if (engine->engine->getStreamableWeightsSize() > 0) {
        return {std::move(engine), false, true};
    }
    engines_[key] = engine;
    return {std::move(engine), false, false};
}

std::string engine_key(const std::string& digest, const std::string& left_out, const Target& target,
                       const EngineTrust& trust) {
    return str(digest, ' ', static_cast<int>(target.device), ' ', target.ordinal, ' ',
               trust.only_signed, trust.allow_code, ' ', left_out, ' ', trust.keys);
}

Sharing sharing_options(const OptionMap& entries) {
    auto flag = [&](const char* key) {
        auto it = entries.find(key);
        return it != entries.end() && !it->second.empty() && parse_bool(key, it->second);
    };
    return {flag("ep.share_ep_contexts"), flag("ep.stop_share_ep_contexts")};
}

} // namespace ingot::ort
