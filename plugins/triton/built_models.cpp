// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/built_models.h"

#include "base/file_lock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/private_files.h"
#include "ingot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace ingot::triton {

namespace fs = std::filesystem;

namespace {

// A folder with more files is no version's folder.
constexpr size_t most_files = 10'000;
constexpr std::string_view suffix = ".engine";

std::atomic<int64_t>& limit() {
    static std::atomic<int64_t> bytes{BuiltModel::kept_bytes};
    return bytes;
}

/// Passes on what a load can do without, as one warning.
template <class Do>
void attempt(const std::string& subject, const Do& act) {
    try {
        act();
    } catch (const std::exception& e) {
        log(TRITONSERVER_LOG_WARN, str(subject, ": ", e.what()));
    }
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

void add_text(HashStream& hash, std::string_view text) {
    uint64_t size = text.size(); // so that texts in a row are told apart
    hash.add(std::as_bytes(std::span(&size, 1)));
    hash.add(bytes_of(text));
}

/// The key; "" where the folder is none of a model.
std::string key_of(const std::string& path, const BuildChoices& choices) {
    std::string folder = parent_folder(path);
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            files.push_back(entry.path().string());
        }
        if (files.size() > most_files) {
            return {};
        }
    }
    std::sort(files.begin(), files.end());
    HashStream hash;
    add_text(hash, version());
    add_text(hash, choices.fp16 ? "fp16" : "as typed");
    add_text(hash, choices.batch_invariant ? "batch invariant" : "");
    for (const std::string& name : choices.optional_inputs) {
        add_text(hash, "optional input");
        add_text(hash, name);
    }
    add_text(hash, path.substr(folder.size()));
    for (const std::string& file : files) {
        add_text(hash, file.substr(folder.size()));
        std::shared_ptr<const MappedFile> content = MappedFile::open(file);
        uint64_t size = content->bytes().size();
        hash.add(std::as_bytes(std::span(&size, 1)));
        hash.add(content->bytes());
        content->release(content->bytes());
    }
    return to_hex(hash.sha());
}

/// Guards an engine's bytes, and that they lie under their own key.
Hash128 digest_of(const std::string& key, std::span<const std::byte> engine) {
    HashStream hash(false);
    hash.add(bytes_of(key));
    hash.add(engine);
    return hash.xxh3();
}

struct Entry {
    fs::path path;
    int64_t bytes = 0;
    fs::file_time_type used;
};

void remove_least_recently_used(const std::string& folder, const std::string& but) {
    std::vector<Entry> entries;
    int64_t total = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::error_code gone; // another process removes too
        auto bytes = static_cast<int64_t>(entry.file_size(gone));
        auto used = entry.last_write_time(gone);
        if (!gone && entry.path().string().ends_with(suffix)) {
            entries.push_back({entry.path(), bytes, used});
            total += bytes;
        }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const Entry& e : entries) {
        if (total <= limit() || e.path == but) {
            continue;
        }
        std::error_code ignored;
        fs::remove(e.path, ignored);
        total -= e.bytes;
    }
}

} // namespace

BuiltModel::BuiltModel(const std::string& path, const BuildChoices& choices) {
    std::string kernels = getCacheFolder();
    if (kernels.empty()) {
        return;
    }
    attempt("built models are not kept", [&] {
        key_ = key_of(path, choices);
        folder_ = key_.empty() ? "" : kernels + "/built";
    });
}

std::string BuiltModel::path() const {
    return str(folder_, '/', key_, suffix);
}

std::optional<BuiltModel::Kept> BuiltModel::find() const {
    if (folder_.empty() || !file_exists(path())) {
        return std::nullopt;
    }
    std::optional<Kept> out;
    attempt("a kept model is not used", [&] {
        std::string problem = why_untrusted(folder_);
        problem = problem.empty() ? why_untrusted(path()) : problem;
        require(problem.empty(), ErrorCode::Io, problem);
        std::shared_ptr<const MappedFile> file = MappedFile::open(path());
        Hash128 digest;
        require(file->bytes().size() > sizeof digest, ErrorCode::Io, path(), " is cut short");
        std::span<const std::byte> engine =
            file->bytes().first(file->bytes().size() - sizeof digest);
        std::memcpy(&digest, engine.data() + engine.size(), sizeof digest);
        require(digest == digest_of(key_, engine), ErrorCode::Io, path(),
                " is damaged; the model is built again");
        (void)utimensat(AT_FDCWD, path().c_str(), nullptr, 0);
        out = Kept{file, engine};
    });
    return out;
}

void BuiltModel::keep(std::span<const std::byte> engine) const {
    if (folder_.empty() || static_cast<int64_t>(engine.size()) > limit()) {
        return;
    }
    attempt("a built model is not kept", [&] {
        make_private_folder(folder_);
        std::string problem = why_untrusted(folder_);
        require(problem.empty(), ErrorCode::Io, problem);
        Hash128 digest = digest_of(key_, engine);
        {
            AtomicFile file(path());
            file.write(engine);
            file.write(std::as_bytes(std::span(&digest, 1)));
            file.commit();
        }
        FolderLock turn(folder_);
        remove_least_recently_used(folder_, path());
    });
}

void set_limit_of_built_models(int64_t bytes) {
    limit() = bytes;
}

} // namespace ingot::triton
