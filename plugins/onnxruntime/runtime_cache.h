// SPDX-License-Identifier: Apache-2.0
// RuntimeCache: compiled kernels of one engine in a file of nv_runtime_cache_path, named by what
// the engine is. Failures are logged as warnings and never fail a session.
#pragma once

#include "NvInferRuntime.h"
#include "plugins/onnxruntime/log.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ingot::ort {

/// Makes the folder. Returns its absolute path; "", with a warning, where it is unusable.
std::string prepare_cache_folder(const std::string& folder, const Log& log);

class RuntimeCache {
public:
    /// Reads the file for the engine of this identity, a text of hex digits. `limit` bounds the
    /// folder's files in total; the oldest are removed.
    /// `closing_log` is for the destructor: ONNX Runtime may end the session's logger before it.
    RuntimeCache(std::string folder, const std::string& identity, uint64_t limit, Log log,
                 Log closing_log);
    /// Writes the file, whole or not at all.
    ~RuntimeCache();
    RuntimeCache(const RuntimeCache&) = delete;
    RuntimeCache& operator=(const RuntimeCache&) = delete;
    /// Makes contexts of this configuration use the cache.
    void attach(nvinfer1::IRuntimeConfig& config);

private:
    void save() const;
    std::string folder_;
    std::string path_;
    uint64_t limit_;
    Log log_;
    Log closing_log_;
    std::unique_ptr<nvinfer1::IRuntimeCache> cache_;
};

} // namespace ingot::ort
