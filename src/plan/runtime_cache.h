// SPDX-License-Identifier: Apache-2.0
// The runtime cache: compiled kernels in a folder, one file an entry, shared by any number of
// processes. A full or read-only disk costs the cache, never the run.
#pragma once

#include "base/hash.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::plan {

struct CacheKey {
    Hash128 hash;
    std::string compiler; // kept in the entry, compared when it is found
};
/// `compiler`: what Gpu::compiler() says. Kernels' ABI version is part of the key.
CacheKey cache_key(std::string_view text, std::string_view compiler);

/// Thread safe; the folder may change under it.
class RuntimeCache {
public:
    /// The folder is made when the first entry is added.
    explicit RuntimeCache(std::string folder);
    /// Under the user's cache folder: INGOT_RUNTIME_CACHE, else XDG_CACHE_HOME/ingot/kernels, else
    /// ~/.cache/ingot/kernels; "" when none is known.
    static std::string default_folder();

    const std::string& folder() const { return folder_; }
    /// The binary of an undamaged entry. A damaged one is removed.
    std::optional<std::string> find(const CacheKey& key);
    /// Published by one rename; `nvrtc` names the version that compiled it. Failing is logged once.
    void add(const CacheKey& key, std::string_view binary, const std::string& nvrtc) noexcept;

    struct Entry {
        std::string file; // name within the folder
        uint64_t bytes = 0;
        std::string compiler;
        std::string nvrtc;   // the version that compiled it
        std::string problem; // why it cannot be used; "" when whole
    };
    /// Every file of the folder that has an entry's name, in order of names.
    std::vector<Entry> list() const;
    /// Removes all entries; returns how many.
    int clear();

private:
    std::string folder_;
};

} // namespace ingot::plan
