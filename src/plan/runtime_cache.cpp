// SPDX-License-Identifier: Apache-2.0
#include "plan/runtime_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "plan/kernel_entry.h"
#include "plan/kernel_file.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>

namespace ingot::plan {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".kernel";

std::string path_of(const std::string& folder, const CacheKey& key) {
    return folder + "/" + to_text(key.hash) + std::string(suffix);
}

RuntimeCache::Entry entry_of(std::string name, std::span<const std::byte> bytes) {
    KernelEntry p = parse_entry(bytes);
    return {std::move(name), bytes.size(), std::string(p.compiler), std::string(p.nvrtc),
            p.problem};
}

} // namespace

CacheKey cache_key(std::string_view text, std::string_view compiler) {
    HashStream s(false);
    std::string head = str("abi ", kernel_abi, ' ', compiler, '\n');
    s.add(std::as_bytes(std::span(head)));
    s.add(std::as_bytes(std::span(text)));
    return {s.xxh3(), std::string(compiler)};
}

RuntimeCache::RuntimeCache(std::string place, Kind kind)
    : place_(std::move(place)),
      file_(kind == Kind::Folder ? nullptr : std::make_unique<KernelFile>(place_)) {}

std::string RuntimeCache::bytes() const {
    return file_ == nullptr ? std::string() : file_->bytes();
}

bool RuntimeCache::merge(std::span<const std::byte> bytes) {
    return file_ != nullptr && file_->merge(bytes);
}

RuntimeCache::~RuntimeCache() {
    flush();
}

std::string RuntimeCache::default_folder() {
    if (const char* chosen = std::getenv("INGOT_RUNTIME_CACHE")) {
        return std::string_view(chosen) == "none" ? "" : chosen;
    }
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0) {
        return str(xdg, "/ingot/kernels");
    }
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) {
        return str(home, "/.cache/ingot/kernels");
    }
    return {};
}

std::optional<std::string> RuntimeCache::find(const CacheKey& key) {
    std::string path = path_of(place_, key);
    std::error_code ignored;
    try {
        std::shared_ptr<const MappedFile> file;
        std::optional<std::string> kept;
        if (file_ != nullptr) {
            kept = file_->find(key.hash);
        } else if (fs::exists(path, ignored)) {
            file = MappedFile::open(path);
        }
        if (!kept && file == nullptr) {
            return std::nullopt;
        }
        KernelEntry p = parse_entry(kept ? std::as_bytes(std::span(*kept)) : file->bytes());
        if (p.problem.empty() && p.compiler == key.compiler) {
            return std::string(p.binary);
        }
        log(LogLevel::Warning, "runtime cache: ", path,
            " is left out: ", p.problem.empty() ? "it was made by another compiler" : p.problem);
        if (file != nullptr) {
            fs::remove(path, ignored);
        }
    } catch (const Error& e) {
        log(LogLevel::Verbose, "runtime cache: ", e.what());
    }
    return std::nullopt;
}

void RuntimeCache::add(const CacheKey& key, std::string_view binary,
                       const std::string& nvrtc) noexcept {
    static std::atomic<bool> warned{false};
    try {
        std::string entry = encode_entry(key.compiler, nvrtc, binary);
        if (file_ != nullptr) {
            file_->add(key.hash, std::move(entry));
            return;
        }
        std::error_code problem;
        fs::create_directories(place_, problem);
        write_file(path_of(place_, key), entry);
    } catch (const std::exception& e) {
        if (!warned.exchange(true)) {
            log(LogLevel::Warning, "runtime cache: nothing is kept: ", e.what());
        }
    }
}

void RuntimeCache::flush() noexcept {
    if (file_ != nullptr) {
        file_->write();
    }
}

std::vector<RuntimeCache::Entry> RuntimeCache::list_folder() const {
    std::vector<Entry> all;
    std::error_code problem;
    for (const auto& f : fs::directory_iterator(place_, problem)) {
        std::string name = f.path().filename().string();
        if (!name.ends_with(suffix)) {
            continue;
        }
        try {
            auto file = MappedFile::open(f.path().string());
            all.push_back(entry_of(name, file->bytes()));
        } catch (const Error& error) {
            all.push_back({name, f.file_size(problem), {}, {}, error.message()});
        }
    }
    return all;
}

std::vector<RuntimeCache::Entry> RuntimeCache::list() const {
    std::vector<Entry> all;
    if (file_ == nullptr) {
        all = list_folder();
    } else {
        for (const KernelFile::Item& item : file_->list()) {
            all.push_back(entry_of(item.name, std::as_bytes(std::span(item.entry))));
            if (!item.problem.empty()) {
                all.back().problem = item.problem;
            }
        }
    }
    std::sort(all.begin(), all.end(),
              [](const Entry& a, const Entry& b) { return a.file < b.file; });
    return all;
}

int RuntimeCache::clear() {
    if (file_ != nullptr) {
        return file_->clear();
    }
    int removed = 0;
    std::error_code problem;
    for (const Entry& e : list()) {
        removed += fs::remove(fs::path(place_) / e.file, problem) ? 1 : 0;
    }
    return removed;
}

} // namespace ingot::plan
