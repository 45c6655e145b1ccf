// SPDX-License-Identifier: Apache-2.0
#include "cache/runtime_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/private_files.h"
#include "cache/kernel_entry.h"
#include "cache/kernel_file.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

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

/// Why a folder is neither read nor written; "" when it may be used. Logs each reason once.
std::string refusal_of(const std::string& folder) {
    std::string why = why_untrusted(folder);
    if (!why.empty()) {
        static std::mutex mutex;
        static std::set<std::string> said;
        std::scoped_lock lock(mutex);
        if (said.insert(why).second) {
            log(LogLevel::Warning, "runtime cache: nothing is saved: ", why);
        }
    }
    return why;
}

/// Why an entry that was looked up is not used; "" when it is.
std::string problem_of(const KernelEntry& e, const CacheKey& key) {
    return !e.problem.empty()           ? e.problem
           : e.key != key.hash          ? "it holds the kernel of another key"
           : e.compiler != key.compiler ? "it was made by another compiler"
                                        : "";
}

} // namespace

CacheKey cache_key(std::string_view text, std::string_view compiler, uint32_t abi) {
    HashStream s(false);
    std::string head = str("abi ", abi, ' ', compiler, '\n');
    s.add(std::as_bytes(std::span(head)));
    s.add(std::as_bytes(std::span(text)));
    return {s.xxh3(), std::string(compiler)};
}

RuntimeCache::RuntimeCache(std::string path, Kind kind)
    : path_(std::move(path)),
      file_(kind == Kind::Folder ? nullptr : std::make_unique<KernelFile>(path_)) {}

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
    std::string path = path_of(path_, key);
    std::error_code ignored;
    try {
        std::shared_ptr<const MappedFile> file;
        std::optional<std::string> kept;
        if (file_ != nullptr) {
            kept = file_->find(key.hash);
        } else if (fs::exists(path, ignored) && refusal_of(path_).empty()) {
            std::string why = why_untrusted(path);
            require(why.empty(), ErrorCode::InvalidArgument, why);
            // Symbolic links cannot lead out of the folder.
            file = MappedFile::open_beneath(path_, fs::path(path).filename().string());
        }
        if (!kept && file == nullptr) {
            return std::nullopt;
        }
        KernelEntry p = parse_entry(kept ? std::as_bytes(std::span(*kept)) : file->bytes());
        std::string problem = problem_of(p, key);
        if (problem.empty()) {
            return std::string(p.binary);
        }
        log(LogLevel::Warning, "runtime cache: ", path, " is ignored: ", problem);
        if (file != nullptr) {
            fs::remove(path, ignored);
        }
    } catch (const Error& e) {
        bool odd = e.code() != ErrorCode::Io; // another process may have removed it
        log(odd ? LogLevel::Warning : LogLevel::Verbose, "runtime cache: ", e.what());
    }
    return std::nullopt;
}

void RuntimeCache::add(const CacheKey& key, std::string_view binary,
                       const std::string& nvrtc) noexcept {
    static std::atomic<bool> warned{false};
    try {
        std::string entry = encode_entry(key.hash, key.compiler, nvrtc, binary);
        if (file_ != nullptr) {
            file_->add(key.hash, std::move(entry));
            return;
        }
        make_private_folder(path_);
        if (refusal_of(path_).empty()) {
            write_file(path_of(path_, key), entry);
            keep_others_from_writing(path_of(path_, key));
        }
    } catch (const std::exception& e) {
        if (!warned.exchange(true)) {
            log(LogLevel::Warning, "runtime cache: nothing is saved: ", e.what());
        }
    }
}

std::unique_ptr<KeyLock> RuntimeCache::claim(const CacheKey& key,
                                             const std::function<bool()>& gives_up) {
    if (file_ != nullptr) {
        return nullptr;
    }
    make_private_folder(path_);
    if (!refusal_of(path_).empty()) {
        return nullptr;
    }
    return std::make_unique<KeyLock>(str(path_, "/.compiling"), key.hash.low, gives_up);
}

void RuntimeCache::flush() noexcept {
    if (file_ != nullptr) {
        file_->write();
    }
}

std::vector<RuntimeCache::Entry> RuntimeCache::list_folder() const {
    std::vector<Entry> all;
    std::error_code problem;
    std::string refusal = why_untrusted(path_);
    for (const auto& f : fs::directory_iterator(path_, problem)) {
        std::string name = f.path().filename().string();
        if (!name.ends_with(suffix)) {
            continue;
        }
        try {
            std::string why = refusal.empty() ? why_untrusted(f.path().string()) : refusal;
            require(why.empty(), ErrorCode::InvalidArgument, why);
            auto file = MappedFile::open_beneath(path_, name);
            all.push_back(entry_of(name, file->bytes()));
            const KernelEntry e = parse_entry(file->bytes());
            if (e.problem.empty() && name != to_text(e.key) + std::string(suffix)) {
                all.back().problem = "it holds the kernel of another key";
            }
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

bool RuntimeCache::is_empty() const {
    if (file_ != nullptr) {
        return file_->is_empty();
    }
    std::error_code problem;
    fs::directory_iterator files(path_, problem);
    return std::none_of(begin(files), end(files), [](const fs::directory_entry& f) {
        return f.path().filename().string().ends_with(suffix);
    });
}

int RuntimeCache::clear() {
    if (file_ != nullptr) {
        return file_->clear();
    }
    int removed = 0;
    std::error_code problem;
    for (const Entry& e : list()) {
        removed += fs::remove(fs::path(path_) / e.file, problem) ? 1 : 0;
    }
    return removed;
}

} // namespace ingot::plan
