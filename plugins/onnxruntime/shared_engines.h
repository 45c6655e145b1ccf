// SPDX-License-Identifier: Apache-2.0
// SharedEngines: engines that sessions with ep.share_ep_contexts use together.
#pragma once

#include "plugins/onnxruntime/engine.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ingot::ort {

/// An engine's weights are in memory once for all sessions that share it; it goes with the last of
/// them. Thread safe: sessions that share load one after the other.
class SharedEngines {
public:
    struct Found {
        std::shared_ptr<const LoadedEngine> engine;
        bool is_shared = false; // another session had loaded it
        bool streams = false;   // it is this session's own: a budget of weights is one engine's
    };
    /// The engine of this key that a session still has, else the one that `load` makes. Errors:
    /// those of `load`.
    Found get(const std::string& key, const std::function<LoadedEngine()>& load);

private:
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<const LoadedEngine>> engines_;
};

/// Equal for engines that can be one: of the same digest on the same device, trusted alike, with
/// the same table of weights that they lack.
std::string engine_key(const std::string& digest, const std::string& left_out, const Target& target,
                       const EngineTrust& trust);

/// ep.share_ep_contexts and ep.stop_share_ep_contexts of a session.
struct Sharing {
    bool share = false;
    bool stop = false; // sessions after this one share among themselves
};
/// Errors: InvalidArgument for other values than those of a bool.
Sharing sharing_options(const OptionMap& entries);

} // namespace ingot::ort
