// SPDX-License-Identifier: Apache-2.0
// ingot cache ls|verify|clear: the runtime cache.
#include "api/options.h"
#include "api/options/common.h"
#include "api/options/inspect.h"
#include "api/options/run.h"
#include "backends/backends.h"
#include "base/error.h"
#include "cache/runtime_cache.h"
#include "commands.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace ingot::tool {

namespace {

using plan::RuntimeCache;

/// The fault of an entry; "" for a sound one.
std::string fault(const RuntimeCache::Entry& e, bool strict) {
    if (!e.problem.empty() || !strict) {
        return e.problem;
    }
    std::string here = kernel_compiler();
    return e.nvrtc == here
               ? std::string()
               : str("it was compiled by ", e.nvrtc.empty() ? "an unknown NVRTC" : e.nvrtc,
                     ", found here: ", here.empty() ? "none" : here);
}

int print_json(const RuntimeCache& c, bool only_faults, bool strict) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    int faults = 0;
    for (const RuntimeCache::Entry& e : c.list()) {
        std::string problem = fault(e, strict);
        faults += problem.empty() ? 0 : 1;
        if (!only_faults || !problem.empty()) {
            list.push_back({{"file", e.file},
                            {"bytes", e.bytes},
                            {"compiler", e.compiler},
                            {"nvrtc", e.nvrtc},
                            {"problem", problem}});
        }
    }
    std::printf("%s\n", list.dump(1).c_str());
    return only_faults && faults > 0 ? 1 : 0;
}

int list(const RuntimeCache& c, bool only_faults, bool strict) {
    uint64_t bytes = 0;
    int entries = 0;
    int faults = 0;
    for (const RuntimeCache::Entry& e : c.list()) {
        std::string problem = fault(e, strict);
        entries++;
        bytes += e.bytes;
        faults += problem.empty() ? 0 : 1;
        if (!only_faults || !problem.empty()) {
            std::printf("%s  %8llu  %s  %s%s%s\n", e.file.c_str(),
                        static_cast<unsigned long long>(e.bytes), e.compiler.c_str(),
                        e.nvrtc.c_str(), problem.empty() ? "" : "  ", problem.c_str());
        }
    }
    std::printf("%d kernels, %llu bytes, %d faulty, in %s\n", entries,
                static_cast<unsigned long long>(bytes), faults, c.path().c_str());
    return only_faults && faults > 0 ? 1 : 0;
}

} // namespace

int cache(const Options& o) {
    bool is_file = !o.run().runtime_cache_file.empty();
    std::string path = is_file                         ? o.run().runtime_cache_file
                       : o.run().runtime_cache.empty() ? RuntimeCache::default_folder()
                                                       : o.run().runtime_cache;
    require(!path.empty(), ErrorCode::InvalidArgument,
            "no cache folder is known (HOME is not set): name one by --runtimeCacheDir");
    require(o.model == "ls" || o.model == "verify" || o.model == "clear",
            ErrorCode::InvalidArgument, "cache ", o.model, ": expected ls, verify or clear");
    RuntimeCache c(path, is_file ? RuntimeCache::Kind::File : RuntimeCache::Kind::Folder);
    if (o.model == "clear") {
        std::printf("%d kernels removed from %s\n", c.clear(), path.c_str());
        return 0;
    }
    if (o.common().json) {
        return print_json(c, o.model == "verify", o.inspect().nvrtc);
    }
    return list(c, o.model == "verify", o.inspect().nvrtc);
}

} // namespace ingot::tool
