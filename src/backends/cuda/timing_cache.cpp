// SPDX-License-Identifier: Apache-2.0
// The file: a line "ingot timing cache 1 abi N <hash of the rest>", then a line per entry: device,
// problem, tactic and microseconds, parted by tabs.
#include "backends/cuda/timing_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "base/log.h"
#include "plan/runtime_cache.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <span>

namespace ingot::cuda {

namespace {

constexpr std::string_view name = "ingot timing cache ";

std::string first_line(std::string_view rest) {
    return str(name, "1 abi ", plan::kernel_abi, ' ',
               to_text(xxh3_128(std::as_bytes(std::span(rest)))));
}

std::string microseconds(double us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", us);
    return text;
}

/// Splits off the part before `end`; what is behind it stays in `text`.
std::string_view part(std::string_view& text, char end) {
    size_t at = std::min(text.find(end), text.size());
    std::string_view out = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return out;
}

} // namespace

TimingCache::TimingCache(std::string path) : path_(std::move(path)) {
    Contents c = read();
    entries_ = std::move(c.entries);
    foreign_ = c.foreign;
}

TimingCache::~TimingCache() {
    save();
}

TimingCache::Contents TimingCache::read() const {
    Contents c;
    std::error_code ignored;
    if (path_.empty() || !std::filesystem::exists(path_, ignored)) {
        return c;
    }
    auto give_up = [this](std::string_view why) {
        log(LogLevel::Warning, "timing cache: ", path_, " is left out: ", why);
        return Contents{};
    };
    try {
        std::string all = read_text_file(path_);
        std::string_view rest(all);
        std::string_view line = part(rest, '\n');
        if (!all.empty() && !line.starts_with(name)) {
            give_up("it is not a timing cache, and not replaced");
            c.foreign = true;
            return c;
        }
        if (line != first_line(rest)) {
            return give_up("it is damaged, or of another version");
        }
        while (!rest.empty()) {
            line = part(rest, '\n');
            std::string_view device = part(line, '\t');
            std::string_view problem = part(line, '\t');
            Timing t{std::string(part(line, '\t')), 0};
            auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), t.us);
            if (error != std::errc() || end != line.data() + line.size()) {
                return give_up("an entry is damaged");
            }
            c.entries.insert_or_assign(str(device, '\t', problem), std::move(t));
        }
    } catch (const std::exception& e) {
        return give_up(e.what());
    }
    return c;
}

std::optional<Timing> TimingCache::find(const std::string& device,
                                        const std::string& problem) const {
    std::scoped_lock lock(mutex_);
    auto it = entries_.find(str(device, '\t', problem));
    return it == entries_.end() ? std::nullopt : std::optional(it->second);
}

void TimingCache::add(const std::string& device, const std::string& problem, Timing t) {
    std::scoped_lock lock(mutex_);
    added_.insert_or_assign(str(device, '\t', problem), t);
    entries_.insert_or_assign(str(device, '\t', problem), std::move(t));
}

void TimingCache::save() noexcept {
    try {
        std::scoped_lock lock(mutex_);
        if (added_.empty() || path_.empty() || foreign_) {
            return;
        }
        Entries ours = std::move(added_);
        added_.clear(); // a disk that fails is not tried again for the same entries
        std::error_code ignored;
        std::filesystem::create_directories(parent_folder(path_), ignored);
        FolderLock turn(parent_folder(path_));
        Contents theirs = read();
        foreign_ = theirs.foreign;
        if (foreign_) {
            return;
        }
        ours.merge(theirs.entries);
        std::string rest;
        for (const auto& [key, t] : ours) {
            rest += str(key, '\t', t.tactic, '\t', microseconds(t.us), '\n');
        }
        write_file(path_, str(first_line(rest), '\n', rest));
        // What this process met before stays what it was: choices do not change under a context.
        entries_.merge(ours);
    } catch (const std::exception& e) {
        log(LogLevel::Warning, "timing cache: nothing is kept: ", e.what());
    }
}

size_t TimingCache::size() const {
    std::scoped_lock lock(mutex_);
    return entries_.size();
}

} // namespace ingot::cuda
