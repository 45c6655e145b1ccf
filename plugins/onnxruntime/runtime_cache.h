// SPDX-License-Identifier: Apache-2.0
// RuntimeCache: compiled kernels of one engine in a file of nv_runtime_cache_path, named by the
// engine's content. Whatever fails is one warning: a session never suffers from it.
#pragma once

#include "NvInferRuntime.h"
#include "plugins/onnxruntime/log.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ingot::ort {

/// Makes the folder. Its absolute path; "", with a warning, where it cannot be used.
std::string prepare_cache_folder(const std::string& folder, const Log& log);

class RuntimeCache {
public:
    /// Reads what is there for the engine of these bytes. `limit` is for the folder's files
    /// together; above it the oldest ones go.
    RuntimeCache(std::string folder, std::span<const std::byte> engine, uint64_t limit, Log log);
    /// Writes the file, whole or not at all.
    ~RuntimeCache();
    RuntimeCache(const RuntimeCache&) = delete;
    RuntimeCache& operator=(const RuntimeCache&) = delete;
    /// Makes contexts of this configuration use it.
    void attach(nvinfer1::IRuntimeConfig& config);

private:
    void save() const;
    std::string folder_;
    std::string path_;
    uint64_t limit_;
    Log log_;
    std::unique_ptr<nvinfer1::IRuntimeCache> cache_;
};

} // namespace ingot::ort
