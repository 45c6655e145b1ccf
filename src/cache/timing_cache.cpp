// SPDX-License-Identifier: Apache-2.0
// The file: a line "ingot timing cache 1 abi N <hash of the rest>", then a line per entry with
// device, problem, tactic and microseconds, separated by tabs.
#include "cache/timing_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/private_files.h"
#include "cache/runtime_cache.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <span>

namespace ingot::plan {

namespace {

constexpr std::string_view name = "ingot timing cache ";
constexpr size_t hash_digits = 16;

std::string first_line(std::string_view rest) {
    return str(name, "1 abi ", kernel_abi, ' ', to_text(xxh3_128(std::as_bytes(std::span(rest)))));
}

std::string microseconds(double us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", us);
    return text;
}

/// Removes the part before `end`; leaves the part after it in `text`.
std::string_view part(std::string_view& text, char end) {
    size_t at = std::min(text.find(end), text.size());
    std::string_view out = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return out;
}

} // namespace

std::string print_timings(const TimingCache::Entries& entries) {
    std::string rest;
    for (const auto& [key, t] : entries) {
        rest += str(key, '\t', t.tactic, '\t', microseconds(t.us), '\n');
    }
    return str(first_line(rest), '\n', rest);
}

std::optional<TimingCache::Entries> parse_timings(std::string_view text, std::string& why) {
    std::string_view line = part(text, '\n');
    if (line != first_line(text)) {
        why = "it is damaged or of another version";
        return std::nullopt;
    }
    TimingCache::Entries entries;
    while (!text.empty()) {
        line = part(text, '\n');
        std::string_view device = part(line, '\t');
        std::string_view problem = part(line, '\t');
        Timing t{std::string(part(line, '\t')), 0};
        auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), t.us);
        if (error != std::errc() || end != line.data() + line.size()) {
            why = "an entry is damaged";
            return std::nullopt;
        }
        entries.insert_or_assign(str(device, '\t', problem), std::move(t));
    }
    return entries;
}

uint64_t tactic_hash(std::string_view tactic) {
    uint64_t hash = 0;
    bool known = tactic.size() == 1 + hash_digits && tactic[0] == '#';
    if (known && std::from_chars(tactic.data() + 1, tactic.data() + tactic.size(), hash, 16).ec ==
                     std::errc()) {
        return hash;
    }
    return xxh3_128(std::as_bytes(std::span(tactic))).low;
}

std::string hashed_tactic(uint64_t hash) {
    char text[2 + hash_digits];
    std::snprintf(text, sizeof text, "#%016llx", static_cast<unsigned long long>(hash));
    return text;
}

bool names_tactic(std::string_view known, std::string_view tactic) {
    return known == tactic || (known.starts_with('#') && tactic_hash(known) == tactic_hash(tactic));
}

std::string layer_problem(std::string_view layer, std::string_view problem) {
    std::string text = str("layer '", layer, "': ", problem);
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    return text;
}

TimingCache::TimingCache(std::string path, bool by_layer)
    : path_(std::move(path)), by_layer_(by_layer) {
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
    std::string why;
    try {
        std::string all = read_text_file(path_);
        if (!all.empty() && !all.starts_with(name)) {
            why = "it is not a timing cache and is not replaced";
            c.foreign = true;
        } else if (auto entries = parse_timings(all, why)) {
            c.entries = std::move(*entries);
        }
    } catch (const std::exception& e) {
        why = e.what();
    }
    if (!why.empty()) {
        log(LogLevel::Warning, "timing cache: ", path_, " is ignored: ", why);
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

void TimingCache::add(const TimedProblem& p) {
    const TimedProblem::Row& best = p.rows.at(p.best);
    add(p.device, p.problem, {best.tactic, best.us});
    for (const auto& l : listeners()) {
        l->timed(p);
    }
}

void TimingCache::miss(const std::string& layer, const std::string& tactic) const {
    for (const auto& l : listeners()) {
        l->missed(layer, tactic);
    }
}

void TimingCache::listen(const std::shared_ptr<TimingListener>& listener) {
    std::scoped_lock lock(mutex_);
    std::erase_if(listeners_, [](const auto& l) { return l.expired(); });
    listeners_.push_back(listener);
}

std::vector<std::shared_ptr<TimingListener>> TimingCache::listeners() const {
    std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<TimingListener>> out;
    for (const auto& l : listeners_) {
        if (auto live = l.lock()) {
            out.push_back(std::move(live));
        }
    }
    return out;
}

void TimingCache::save() noexcept {
    try {
        std::scoped_lock lock(mutex_);
        if (added_.empty() || path_.empty() || foreign_) {
            return;
        }
        Entries ours = std::move(added_);
        added_.clear(); // after a failure, the same entries are not written again
        make_private_folder(parent_folder(path_));
        FolderLock turn(parent_folder(path_));
        Contents theirs = read();
        foreign_ = theirs.foreign;
        if (foreign_) {
            return;
        }
        ours.merge(theirs.entries);
        write_file(path_, print_timings(ours));
        // This process keeps its earlier entries: choices must not change under a context.
        entries_.merge(ours);
    } catch (const std::exception& e) {
        log(LogLevel::Warning, "timing cache: nothing is saved: ", e.what());
    }
}

TimingCache::Entries TimingCache::entries() const {
    std::scoped_lock lock(mutex_);
    return entries_;
}

void TimingCache::merge(const Entries& entries) {
    std::scoped_lock lock(mutex_);
    for (const auto& [key, timing] : entries) {
        if (entries_.emplace(key, timing).second) {
            added_.insert_or_assign(key, timing);
        }
    }
}

bool TimingCache::change(const std::string& entry, const std::optional<Timing>& t) {
    std::scoped_lock lock(mutex_);
    auto it = entries_.find(entry);
    if (it == entries_.end()) {
        return false;
    }
    if (t) {
        it->second = *t;
        added_.insert_or_assign(entry, *t);
    } else {
        entries_.erase(it);
        added_.erase(entry);
    }
    return true;
}

void TimingCache::assign(Entries entries) {
    std::scoped_lock lock(mutex_);
    added_ = entries;
    entries_ = std::move(entries);
}

size_t TimingCache::size() const {
    std::scoped_lock lock(mutex_);
    return entries_.size();
}

} // namespace ingot::plan
