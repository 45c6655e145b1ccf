// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/timeline.h"

#include "backends/cuda/jit/timeline_text.h"
#include "base/error.h"
#include "base/file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

namespace ingot::cuda {

namespace {

using Word = BlockRecord::Word;
constexpr size_t words = BlockRecord::words;

/// The offset between the common timer and a multiprocessor's clock.
struct SmClock {
    double clock = 0; // means over its blocks
    double ns = 0;
    double blocks = 0;
};

/// The complement keeps the first of several times.
uint64_t clock_at(const uint64_t* record, size_t word) {
    uint64_t v = record[word];
    return v != 0 && (word == Word::Arrive || word == Word::Ready) ? ~v : v;
}

} // namespace

Timeline::~Timeline() {
    for (size_t i = 0; i < known_.size(); ++i) {
        remove(static_cast<int>(i));
    }
}

int Timeline::add(const kernels::Launch& l, std::string_view what, std::string_view tactic) {
    Known k;
    k.blocks = static_cast<size_t>(l.grid[0] * l.grid[1] * l.grid[2]);
    k.description.set("step", std::string(what));
    k.description.set("tactic", std::string(tactic));
    k.description.set("kernel", l.entry);
    k.description.set("grid", l.grid);
    k.description.set("threads", l.block);
    k.description.set("shared", l.shared);
    k.description.set("cluster", l.cluster);
    known_.reserve(known_.size() + 1);
    k.memory = gpu_.allocate(static_cast<int64_t>(k.blocks * words * sizeof(uint64_t)));
    known_.push_back(std::move(k));
    return static_cast<int>(known_.size()) - 1;
}

void Timeline::remove(int launch) noexcept {
    Known& k = known_[static_cast<size_t>(launch)];
    if (k.memory != nullptr) {
        gpu_.release(k.memory);
        k.memory = nullptr;
    }
}

std::byte* Timeline::records(int launch) const {
    return known(launch).memory;
}

void Timeline::replay(Stream& stream, const Recording& r, const std::vector<int>& launches,
                      int replays) {
    auto count = static_cast<unsigned>(replays);
    bool measured = std::has_single_bit(count) && std::countr_zero(count) % 2 == 0;
    if (measured) {
        for (int i : launches) {
            stream.fill(known(i).memory, 0, known(i).blocks * words * sizeof(uint64_t));
        }
        stream.synchronize();
    }
    stream.parts().recorder->launch(r);
    if (measured) {
        write(stream, launches, replays);
    }
}

void Timeline::write(Stream& stream, const std::vector<int>& launches, int replays) {
    std::vector<uint64_t> records;
    for (int i : launches) {
        const Known& k = known(i);
        size_t at = records.size();
        records.resize(at + k.blocks * words);
        stream.read(records.data() + at, k.memory, k.blocks * words * sizeof(uint64_t));
    }
    std::vector<int64_t> times = nanoseconds_of(records);
    static constexpr std::array<const char*, words> names = {"sm",    "",     "start", "arrive",
                                                             "ready", "main", "end"};
    Json list = Json::list();
    const int64_t* from = times.data();
    for (int i : launches) {
        const Known& k = known(i);
        Json& one = list.add(k.description);
        for (size_t w = 0; w < words; ++w) {
            if (w == Word::Nanoseconds) {
                continue;
            }
            std::vector<int64_t> column;
            for (size_t b = 0; b < k.blocks; ++b) {
                column.push_back(from[b * words + w]);
            }
            one.set(names.at(w), column);
        }
        from += k.blocks * words;
    }
    Json file;
    file.set("device", gpu_.description());
    file.set("replay", replays);
    file.set("launches", std::move(list));
    AtomicFile f(path_);
    f.write(file.dump());
    f.commit();
}

std::vector<int64_t> nanoseconds_of(const std::vector<uint64_t>& records) {
    std::map<uint64_t, SmClock> sms;
    const uint64_t* end = records.data() + records.size();
    uint64_t first_ns = UINT64_MAX;
    for (const uint64_t* r = records.data(); r != end; r += words) {
        first_ns = r[Word::Sm] == 0 ? first_ns : std::min(first_ns, r[Word::Nanoseconds]);
    }
    auto each = [&](auto&& f) {
        for (const uint64_t* r = records.data(); r != end; r += words) {
            if (r[Word::Sm] != 0) {
                f(sms[r[Word::Sm]], static_cast<double>(r[Word::Start]),
                  static_cast<double>(r[Word::Nanoseconds] - first_ns));
            }
        }
    };
    each([](SmClock& sm, double clock, double ns) {
        sm.blocks++;
        sm.clock += (clock - sm.clock) / sm.blocks;
        sm.ns += (ns - sm.ns) / sm.blocks;
    });
    double squares = 0; // one rate for all, an offset for each: least squares
    double products = 0;
    each([&](const SmClock& sm, double clock, double ns) {
        squares += (clock - sm.clock) * (clock - sm.clock);
        products += (clock - sm.clock) * (ns - sm.ns);
    });
    double rate = squares > 0 && products > 0 ? products / squares : 1; // ns a cycle
    std::vector<double> times(records.size(), -1);
    double first = INFINITY;
    for (size_t i = 0; i < records.size(); ++i) {
        const uint64_t* r = records.data() + i / words * words;
        if (r[Word::Sm] != 0 && i % words >= Word::Start && r[i % words] != 0) {
            const SmClock& sm = sms[r[Word::Sm]];
            times[i] = sm.ns + (static_cast<double>(clock_at(r, i % words)) - sm.clock) * rate;
            first = std::min(first, times[i]);
        }
    }
    std::vector<int64_t> out(records.size(), -1);
    for (size_t i = 0; i < records.size(); ++i) {
        const uint64_t* r = records.data() + i / words * words;
        if (i % words == Word::Sm) {
            out[i] = static_cast<int64_t>(r[Word::Sm]) - 1;
        } else if (r[Word::Sm] != 0 && i % words >= Word::Start && r[i % words] != 0) {
            out[i] = std::llround(times[i] - first);
        }
    }
    return out;
}

} // namespace ingot::cuda
