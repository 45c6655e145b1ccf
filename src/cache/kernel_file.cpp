// SPDX-License-Identifier: Apache-2.0
#include "cache/kernel_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/private_files.h"
#include "cache/kernel_entry.h"

#include <cstring>
#include <filesystem>

namespace ingot::plan {

namespace {

namespace fs = std::filesystem;

constexpr char magic[8] = {'I', 'N', 'G', 'O', 'T', 'K', 'R', 'S'};

/// Precedes each entry.
struct Record {
    uint64_t key_high;
    uint64_t key_low;
    uint64_t bytes;
    uint64_t check; // hash of the other three fields
};

uint64_t check_of(const Record& r) {
    return hash_bytes(&r, offsetof(Record, check));
}

std::string name_of(const std::pair<uint64_t, uint64_t>& key) {
    return to_text(Hash128{key.first, key.second});
}

} // namespace

KernelFile::KernelFile(std::string path) : path_(std::move(path)) {
    Contents c = read();
    entries_ = std::move(c.entries);
    foreign_ = c.foreign;
    if (foreign_ && c.faults.empty()) {
        log(LogLevel::Warning, "runtime cache: ", path_,
            " is not a file of kernels; it is not changed, and new kernels are not saved");
    }
    for (const Item& f : c.faults) {
        log(LogLevel::Warning, "runtime cache: ", path_, ": ", f.name, " is ignored: ", f.problem);
    }
}

void KernelFile::parse(std::span<const std::byte> bytes, Contents& c) {
    c.foreign = bytes.size() < sizeof magic || std::memcmp(bytes.data(), magic, sizeof magic) != 0;
    size_t at = sizeof magic;
    while (!c.foreign && at < bytes.size()) {
        Record r{};
        size_t left = bytes.size() - at;
        if (left >= sizeof r) {
            std::memcpy(&r, bytes.data() + at, sizeof r);
        }
        if (left < sizeof r || check_of(r) != r.check || left - sizeof r < r.bytes) {
            c.faults.push_back(
                {str("bytes ", at, " to ", bytes.size()), {}, "they are not whole kernels"});
            return;
        }
        std::span<const std::byte> entry = bytes.subspan(at + sizeof r, r.bytes);
        at += sizeof r + r.bytes;
        std::pair<uint64_t, uint64_t> key{r.key_high, r.key_low};
        KernelEntry e = parse_entry(entry);
        if (e.problem.empty() && e.key != Hash128{r.key_high, r.key_low}) {
            e.problem = "it holds the kernel of another key";
        }
        std::string text(reinterpret_cast<const char*>(entry.data()), entry.size());
        if (e.problem.empty()) {
            c.entries.insert_or_assign(key, std::move(text));
        } else {
            c.faults.push_back({name_of(key), std::move(text), e.problem});
        }
    }
}

KernelFile::Contents KernelFile::read() const {
    Contents c;
    std::error_code ignored;
    if (!fs::exists(path_, ignored)) {
        return c;
    }
    if (std::string why = why_untrusted(path_); !why.empty()) {
        c.foreign = true;
        c.faults.push_back({path_, {}, why});
        return c;
    }
    if (fs::is_empty(path_, ignored)) {
        return c;
    }
    try {
        parse(MappedFile::open(path_)->bytes(), c);
    } catch (const std::exception& e) {
        log(LogLevel::Warning, "runtime cache: ", e.what());
    }
    return c;
}

std::optional<std::string> KernelFile::find(const Hash128& key) const {
    std::scoped_lock lock(mutex_);
    auto it = entries_.find({key.high, key.low});
    return it == entries_.end() ? std::nullopt : std::optional(it->second);
}

bool KernelFile::is_empty() const {
    std::scoped_lock lock(mutex_);
    return entries_.empty();
}

void KernelFile::add(const Hash128& key, std::string entry) {
    std::scoped_lock lock(mutex_);
    entries_.insert_or_assign({key.high, key.low}, std::move(entry));
    changed_ = true;
}

std::string KernelFile::encode(const Entries& entries) {
    std::string out(magic, sizeof magic);
    for (const auto& [key, entry] : entries) {
        Record r{key.first, key.second, entry.size(), 0};
        r.check = check_of(r);
        out.append(reinterpret_cast<const char*>(&r), sizeof r);
        out += entry;
    }
    return out;
}

std::string KernelFile::bytes() const {
    std::scoped_lock lock(mutex_);
    return encode(entries_);
}

bool KernelFile::merge(std::span<const std::byte> bytes) {
    Contents c;
    parse(bytes, c);
    if (c.foreign || !c.faults.empty()) {
        return false;
    }
    std::scoped_lock lock(mutex_);
    entries_.merge(c.entries);
    changed_ = true;
    return true;
}

void KernelFile::write() noexcept {
    try {
        std::scoped_lock lock(mutex_);
        if (!changed_ || foreign_ || path_.empty()) {
            return;
        }
        changed_ = false; // after a failure, the same kernels are not written again
        make_private_folder(parent_folder(path_));
        FolderLock turn(parent_folder(path_));
        Contents theirs = read();
        foreign_ = theirs.foreign;
        if (foreign_) {
            return;
        }
        entries_.merge(theirs.entries);
        AtomicFile file(path_);
        file.write(encode(entries_));
        file.commit();
        keep_others_from_writing(path_);
    } catch (const std::exception& e) {
        log(LogLevel::Warning, "runtime cache: nothing is saved: ", e.what());
    }
}

std::vector<KernelFile::Item> KernelFile::list() const {
    Contents c = read();
    {
        std::scoped_lock lock(mutex_);
        c.entries.insert(entries_.begin(), entries_.end());
    }
    std::vector<Item> all;
    for (const auto& [key, entry] : c.entries) {
        all.push_back({name_of(key), entry, {}});
    }
    all.insert(all.end(), c.faults.begin(), c.faults.end());
    if (c.foreign && c.faults.empty()) {
        all.push_back({path_, {}, "it is not a file of kernels"});
    }
    return all;
}

int KernelFile::clear() {
    std::scoped_lock lock(mutex_);
    if (path_.empty()) {
        auto held = static_cast<int>(entries_.size());
        entries_.clear();
        return held;
    }
    FolderLock turn(parent_folder(path_));
    Contents c = read();
    if (c.foreign) {
        return 0;
    }
    entries_.merge(c.entries);
    auto count = static_cast<int>(entries_.size() + c.faults.size());
    std::error_code problem;
    fs::remove(path_, problem);
    entries_.clear();
    changed_ = false;
    return problem ? 0 : count;
}

} // namespace ingot::plan
