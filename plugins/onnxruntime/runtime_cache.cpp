// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/runtime_cache.h"

#include "base/file.h"

#include <algorithm>
#include <filesystem>

namespace ingot::ort {

namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".kernels";

/// Removes our oldest files until the rest fits `limit`; `kept` stays.
void make_room(const std::string& folder, const std::string& kept, uint64_t limit) {
    struct Found {
        fs::file_time_type time;
        uint64_t bytes;
        fs::path path;
    };
    std::vector<Found> files;
    uint64_t all = 0;
    for (const fs::directory_entry& e : fs::directory_iterator(folder)) {
        std::error_code error;
        if (e.path().extension() == suffix && e.is_regular_file(error)) {
            files.push_back({e.last_write_time(error), e.file_size(error), e.path()});
            all += files.back().bytes;
        }
    }
    std::sort(files.begin(), files.end(),
              [](const Found& a, const Found& b) { return a.time < b.time; });
    for (const Found& f : files) {
        std::error_code error;
        if (all > limit && f.path != kept && fs::remove(f.path, error)) {
            all -= f.bytes;
        }
    }
}

} // namespace

std::string prepare_cache_folder(const std::string& folder, const Log& log) {
    std::error_code error;
    fs::path path = fs::absolute(folder, error);
    if (!error) {
        fs::create_directories(path, error);
    }
    bool usable = !error && fs::is_directory(path, error);
    if (!usable) {
        log.warning(str("nv_runtime_cache_path '", folder, "' cannot be used: ",
                        error ? error.message() : std::string("it is no folder"),
                        "; kernels are not kept"));
        return "";
    }
    return path.string();
}

RuntimeCache::RuntimeCache(std::string folder, const std::string& identity, uint64_t limit, Log log,
                           Log closing_log)
    : folder_(std::move(folder)), path_((fs::path(folder_) / (identity + suffix)).string()),
      limit_(limit), log_(log), closing_log_(closing_log) {}

void RuntimeCache::attach(nvinfer1::IRuntimeConfig& config) {
    if (cache_ == nullptr) {
        cache_.reset(config.createRuntimeCache());
        if (cache_ == nullptr) {
            return;
        }
        try {
            if (file_exists(path_)) {
                auto file = MappedFile::open(path_);
                bool is_read = cache_->deserialize(file->bytes().data(), file->bytes().size());
                log_.info(
                    is_read
                        ? str("runtime cache: ", file->bytes().size(), " bytes from '", path_, "'")
                        : str("'", path_, "' is damaged or of another release; it is replaced"));
            }
        } catch (const Error& e) {
            log_.warning(str("the configured cache could not be read: ", e.what()));
        }
    }
    config.setRuntimeCache(*cache_);
}

RuntimeCache::~RuntimeCache() {
    try {
        save();
    } catch (const std::exception& e) {
        closing_log_.warning(str("[NvTensorRTRTX EP] Failed to save runtime cache: ", e.what()));
    } catch (...) {
        closing_log_.warning("[NvTensorRTRTX EP] Failed to save runtime cache");
    }
}

void RuntimeCache::save() const {
    if (cache_ == nullptr) {
        return;
    }
    std::unique_ptr<nvinfer1::IHostMemory> bytes(cache_->serialize());
    require(bytes != nullptr, ErrorCode::Internal, "there is nothing to write");
    write_file(path_, std::span(static_cast<const std::byte*>(bytes->data()), bytes->size()));
    closing_log_.info(str("runtime cache: ", bytes->size(), " bytes to '", path_, "'"));
    make_room(folder_, path_, limit_);
}

} // namespace ingot::ort
