// SPDX-License-Identifier: Apache-2.0
// Ops sort and topk. Short rows are sorted in shared memory, and a warp finds the first few of one;
// long rows by radix passes over keys
// and indices; the first few of long rows by rounds that keep k of each part, or by finding the
// k-th key first.
#include "kernels/scan_sort/sort.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ingot::kernels {

std::string KeyType::mask() const {
    return bits == 64   ? "0xffffffffffffffffull"
           : bits == 32 ? "0xffffffffu"
           : bits == 16 ? "0xffffu"
                        : "0xffu";
}

KeyType key_type(DType t) {
    int bits = std::max(8, bit_width(t));
    return {bits == 64 ? "u64" : "u32", bits};
}

namespace {

constexpr int64_t scratch_limit = int64_t{512} << 20;

struct InShared : NoParameters {
    static constexpr std::string_view pattern = "shared";
};
struct ByRounds : NoParameters {
    static constexpr std::string_view pattern = "rounds";
};
struct ByRadix : NoParameters {
    static constexpr std::string_view pattern = "radix";
};
struct BySelect : NoParameters {
    static constexpr std::string_view pattern = "select";
};
struct InRegisters : NoParameters {
    static constexpr std::string_view pattern = "registers";
};
struct ByWarps : NoParameters {
    static constexpr std::string_view pattern = "warps";
};
constexpr int64_t most_in_warp = 512; // elements of a row, in the registers of a warp
constexpr int64_t most_rounds = 32;   // of a warp, one a result
constexpr int64_t select_bins = 2048; // BINS and TILE of select.cuh
constexpr int64_t select_tile = 2048;

struct Sorting {
    Operand x;
    int64_t axis = 0;
    int64_t n = 0;
    int64_t k = 0;
    bool descending = false;
    KeyType key;
    Nest kept; // views: x, values, indices

    int64_t rows() const { return kept.arg.count; }
    /// Elements that one block sorts.
    int64_t most() const { return key.bits == 64 ? 2048 : 4096; }
};

Sorting sorting_of(const Problem& p) {
    Sorting s;
    const Node& n = p.group.first();
    s.x = p.operand(n.inputs[0]);
    if (n.is(sort_def)) {
        const auto& a = n.as<Sort>();
        s.axis = a.axis;
        s.descending = a.descending;
    } else {
        const auto& a = n.as<ops::TopK>();
        s.axis = normalize_axis(a.axis, s.x.view.rank());
        s.descending = a.largest;
    }
    auto d = static_cast<size_t>(s.axis);
    s.n = s.x.view.shape[d];
    s.k = p.out[0].view.shape[d];
    require(s.k <= s.n && s.n < (int64_t{1} << 32) - 1, ErrorCode::InvalidArgument,
            "topk with k = ", s.k, " of an axis of ", s.n, " elements");
    s.key = key_type(s.x.dtype);
    std::array axes{s.axis};
    std::array views{without_axes(s.x.view, axes), without_axes(p.out[0].view, axes),
                     without_axes(p.out[1].view, axes)};
    s.kept = make_nest(views, plan::row_major(views[0].rank()));
    return s;
}

int64_t step(const Operand& o, const Sorting& s) {
    return o.view.strides[static_cast<size_t>(s.axis)];
}

Defines key_defines(const KeyType& k) {
    Defines d;
    d.add("KEY", k.type).add("MASK", k.mask());
    return d;
}

int64_t power_above(int64_t n, int64_t least) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(n, least))));
}

struct Round {
    int64_t size = 0;  // elements of a row
    int64_t parts = 1; // blocks a row
    bool chosen = false;
    bool last = true;
    int64_t from = 0; // scratch offsets
    int64_t to = 0;
};

Launch short_launch(const Problem& p, const Sorting& s, const Round& r) {
    int64_t width = r.parts > 1 ? s.most() : power_above(r.size, 2);
    int64_t rows = std::max<int64_t>(1, 1024 / width);
    int64_t threads = std::clamp<int64_t>(width * rows / 2, 32, 512);
    Launch l;
    Defines d = key_defines(s.key);
    d.add("T", c_type(s.x.dtype)).add("DESCENDING", s.descending ? 1 : 0).add("P", width);
    d.add("ROWS", rows).add("NT", threads).add("KR", s.kept.axes);
    int64_t top = power_above(s.k, 2);
    d.add("TOP", rows > 1 ? width : std::min(top, width));
    d.add("CHOSEN", r.chosen ? 1 : 0).add("FINAL", r.last ? 1 : 0);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "sort_short", {}};
    l.entry = "sort_short";
    l.block = static_cast<int>(threads);
    l.grid = {div_up(s.rows(), rows), r.parts, 1};
    l.args.pointer(s.x).pointer(p.out[0]).pointer(p.out[1]).scratch(r.from).scratch(r.to);
    l.args.value(s.kept.arg).i64(r.size).i64(step(s.x, s)).i64(step(p.out[0], s));
    l.args.i64(step(p.out[1], s)).i32(s.k);
    return l;
}

Emitted emit_registers(const Problem& p, const Sorting& s) {
    int64_t width = power_above(s.n, 256);
    int64_t rows = std::max<int64_t>(1, 1024 / width);
    Launch l;
    Defines d;
    d.add("MASK", s.key.mask()).add("T", c_type(s.x.dtype));
    d.add("DESCENDING", s.descending ? 1 : 0).add("P", width).add("ROWS", rows);
    d.add("KR", s.kept.axes);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "sort_rows", {}};
    l.entry = "sort_rows";
    l.block = static_cast<int>(rows * width / 8);
    l.grid = {div_up(s.rows(), rows), 1, 1};
    l.args.pointer(s.x).pointer(p.out[0]).pointer(p.out[1]).value(s.kept.arg).i64(s.n);
    l.args.i64(step(s.x, s)).i64(step(p.out[0], s)).i64(step(p.out[1], s)).i32(s.k);
    Emitted out;
    out.launches.push_back(std::move(l));
    return out;
}

Emitted emit_warps(const Problem& p, const Sorting& s) {
    constexpr int64_t warps = 4;
    Launch l;
    Defines d;
    d.add("MASK", s.key.mask()).add("T", c_type(s.x.dtype));
    d.add("DESCENDING", s.descending ? 1 : 0).add("E", power_above(div_up(s.n, 32), 1));
    d.add("WARPS", warps).add("KR", s.kept.axes);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "first_rows", {}};
    l.entry = "first_rows";
    l.block = static_cast<int>(32 * warps);
    l.grid = {div_up(s.rows(), warps), 1, 1};
    l.args.pointer(s.x).pointer(p.out[0]).pointer(p.out[1]).value(s.kept.arg).i64(s.n);
    l.args.i64(step(s.x, s)).i64(step(p.out[0], s)).i64(step(p.out[1], s)).i32(s.k);
    Emitted out;
    out.launches.push_back(std::move(l));
    return out;
}

/// A round takes about 0.15 us, and longer where lanes have more elements; an SM interleaves 16
/// warps.
double warps_us(const Problem& p, const Sorting& s, double bytes_us) {
    double round = 0.15 + 0.01 * static_cast<double>(div_up(s.n, 32));
    double turns = std::max(1.0, static_cast<double>(s.rows()) / (16.0 * p.arch.sms));
    return 2 + static_cast<double>(s.k) * round * turns + bytes_us;
}

Emitted emit_rounds(const Problem& p, const Sorting& s) {
    Emitted out;
    Round r;
    r.size = s.n;
    r.parts = div_up(r.size, s.most());
    int64_t half = div_up(s.rows() * r.parts * s.k * 4, 256) * 256;
    for (int64_t which = 0;; which = 1 - which) {
        r.parts = div_up(r.size, s.most());
        r.last = r.parts == 1;
        r.from = (1 - which) * half;
        r.to = which * half;
        out.launches.push_back(short_launch(p, s, r));
        if (r.last) {
            break;
        }
        out.scratch = 2 * half;
        r.size = r.parts * s.k;
        r.chosen = true;
    }
    return out;
}

/// The launches of select.cuh, and their scratch memory.
struct Selection {
    const Problem& p;
    const Sorting& s;
    Emitted out;
    int64_t counts = 0;
    int64_t states = 0;
    int64_t places = 0;
    int64_t chosen = 0;

    int64_t digits() const { return div_up(s.key.bits, 11); }
    int64_t tiles() const { return div_up(s.n, select_tile); }

    void reserve() {
        auto take = [this](int64_t bytes) {
            int64_t at = out.scratch;
            out.scratch += div_up(bytes, 256) * 256;
            return at;
        };
        counts = take(digits() * s.rows() * select_bins * 4);
        states = take(s.rows() * 16);
        places = take(s.rows() * tiles() * 8);
        chosen = take(s.rows() * s.k * 4);
    }
    Launch& add(const char* entry, int step) {
        Launch l;
        Defines d = key_defines(s.key);
        d.add("T", c_type(s.x.dtype)).add("DESCENDING", s.descending ? 1 : 0);
        d.add("KR", s.kept.axes).add("STEP", step);
        l.program = {{"types", "math", "loops", "keys"}, d.text(), "select", {}};
        l.entry = entry;
        out.launches.push_back(std::move(l));
        return out.launches.back();
    }
    void find_key() {
        int64_t all = digits() * s.rows() * select_bins;
        Launch& clear = add("select_clear", 0);
        clear.grid[0] = div_up(all, 256);
        clear.args.scratch(counts).scratch(states).i64(all).i32(s.rows()).i32(s.k);
        for (int64_t digit = 0; digit < digits(); ++digit) {
            int64_t shift = std::max<int64_t>(0, s.key.bits - 11 * (digit + 1));
            int64_t width = std::min<int64_t>(11, s.key.bits - 11 * digit);
            int64_t own = counts + digit * s.rows() * select_bins * 4;
            Launch& count = add("select_count", 1);
            count.grid = {div_up(s.n, 4 * select_tile), s.rows(), 1};
            count.args.pointer(s.x).scratch(own).scratch(states).value(s.kept.arg).i64(s.n);
            count.args.i64(step(s.x, s)).i32(shift).i32(width).i32(digit == 0 ? 1 : 0);
            Launch& choose = add("select_digit", 2);
            choose.grid[0] = s.rows();
            choose.args.scratch(own).scratch(states).i32(width);
        }
    }
    void gather_indices() {
        Launch& sides = add("select_sides", 3);
        sides.grid = {tiles(), s.rows(), 1};
        sides.args.pointer(s.x).scratch(places).scratch(states).value(s.kept.arg).i64(s.n);
        sides.args.i64(step(s.x, s));
        Launch& sums = add("select_prefix_sum", 3);
        sums.grid[0] = s.rows();
        sums.args.scratch(places).i32(tiles());
        Launch& write = add("select_write", 3);
        write.grid = {tiles(), s.rows(), 1};
        write.args.pointer(s.x).scratch(places).scratch(states).scratch(chosen);
        write.args.value(s.kept.arg).i64(s.n).i64(step(s.x, s)).i32(s.k);
    }
};

Emitted emit_select(const Problem& p, const Sorting& s) {
    Selection all{p, s, {}};
    all.reserve();
    all.find_key();
    all.gather_indices();
    Round last;
    last.size = s.k;
    last.chosen = true;
    last.from = all.chosen;
    all.out.launches.push_back(short_launch(p, s, last));
    return std::move(all.out);
}

Launch radix_launch(const Sorting& s, const char* entry) {
    Launch l;
    Defines d = key_defines(s.key);
    d.add("T", c_type(s.x.dtype)).add("DESCENDING", s.descending ? 1 : 0).add("KR", s.kept.axes);
    d.add("STEP", 0).add("ITEMS", 1);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "radix", {}};
    l.entry = entry;
    return l;
}

Emitted emit_radix(const Problem& p, const Sorting& s) {
    Emitted out;
    int64_t one = radix_buffers(s.key, 1, s.n, 0).end;
    int64_t batch = std::clamp<int64_t>(scratch_limit / one, 1, std::min(s.rows(), max_grid_y));
    RadixBuffers b = radix_buffers(s.key, batch, s.n, 0);
    out.scratch = b.end;
    for (int64_t row = 0; row < s.rows(); row += batch) {
        int64_t rows = std::min(batch, s.rows() - row);
        Launch keys = radix_launch(s, "radix_keys");
        keys.grid = {div_up(s.n, 256), rows, 1};
        keys.args.pointer(s.x).scratch(b.keys[0]).scratch(b.from[0]).value(s.kept.arg);
        keys.args.i64(row).i64(s.n).i64(step(s.x, s));
        out.launches.push_back(std::move(keys));
        int at = add_radix_passes(out, s.key, b, rows, s.n);
        Launch last = radix_launch(s, "radix_gather");
        last.grid = {div_up(s.k, 256), rows, 1};
        last.args.pointer(s.x).pointer(p.out[0]).pointer(p.out[1]).scratch(b.from[at]);
        last.args.value(s.kept.arg).i64(row).i64(s.n).i64(step(s.x, s));
        last.args.i64(step(p.out[0], s)).i64(step(p.out[1], s)).i64(s.k);
        out.launches.push_back(std::move(last));
    }
    return out;
}

} // namespace

RadixBuffers radix_buffers(const KeyType& k, int64_t rows, int64_t n, int64_t begin) {
    RadixBuffers b;
    int64_t at = begin;
    auto take = [&](int64_t bytes) {
        int64_t from = at;
        at += div_up(bytes, 256) * 256;
        return from;
    };
    int64_t tiles = div_up(n, k.bits == 64 ? 2048 : 4096);
    for (int i : {0, 1}) {
        b.keys[i] = take(rows * n * k.bytes());
        b.from[i] = take(rows * n * 4);
    }
    b.places = take(rows * 256 * tiles * 4);
    b.totals = take(rows * 256 * 4);
    b.end = at;
    return b;
}

int add_radix_passes(Emitted& e, const KeyType& k, const RadixBuffers& b, int64_t rows, int64_t n) {
    int64_t items = k.bits == 64 ? 4 : 8;
    int64_t tiles = div_up(n, 512 * items);
    auto launch = [&](const char* entry, int which) {
        Launch l;
        Defines d = key_defines(k);
        d.add("STEP", which).add("ITEMS", items);
        l.program = {{"types", "math", "loops", "keys"}, d.text(), "radix", {}};
        l.entry = entry;
        return l;
    };
    int at = 0;
    for (int shift = 0; shift < k.bits; shift += 8, at = 1 - at) {
        Launch count = launch("radix_count", 1);
        count.block = 512;
        count.grid = {tiles, rows, 1};
        count.args.scratch(b.keys[at]).scratch(b.places).i64(n).i32(shift);
        Launch places = launch("radix_prefix_sum", 1);
        places.grid = {256, rows, 1};
        places.args.scratch(b.places).scratch(b.totals).i32(tiles);
        Launch scatter = launch("radix_scatter", 2);
        scatter.block = 512;
        scatter.grid = {tiles, rows, 1};
        scatter.args.scratch(b.keys[at]).scratch(b.from[at]).scratch(b.keys[1 - at]);
        scatter.args.scratch(b.from[1 - at]).scratch(b.places).scratch(b.totals).i64(n).i32(shift);
        e.launches.push_back(std::move(count));
        e.launches.push_back(std::move(places));
        e.launches.push_back(std::move(scatter));
    }
    return at;
}

std::vector<Tactic> sort_tactics(const Problem& p) {
    Sorting s = sorting_of(p);
    std::vector<Tactic> list;
    auto by_passes = [&](auto algorithm, double passes) {
        double bytes = static_cast<double>(s.rows()) * static_cast<double>(s.n) * 12;
        double us = 3 + passes * (3 + bytes / (p.arch.dram_gbs * 1000));
        list.push_back(make_tactic(algorithm, us));
    };
    double sizes = static_cast<double>(s.rows()) * static_cast<double>(s.n) *
                   static_cast<double>(bytes_of(s.x.dtype)) / (p.arch.dram_gbs * 1000);
    if (s.key.bits <= 32 && s.n <= most_in_warp && s.k <= most_rounds) {
        list.push_back(make_tactic(ByWarps{}, warps_us(p, s, sizes)));
    }
    if (s.n <= s.most()) {
        by_passes(InShared{}, 5);
        if (s.key.bits <= 32 && s.n > 128) {
            by_passes(InRegisters{}, 1.5);
        }
    } else if (s.k * 8 <= s.most()) {
        int64_t blocks = s.rows() * div_up(s.n, s.most());
        double share = 1 - static_cast<double>(s.k) / static_cast<double>(s.most());
        auto waves = static_cast<double>(div_up(blocks, int64_t{4} * p.arch.sms));
        list.push_back(make_tactic(ByRounds{}, 6 + 25 * waves / share));
    }
    if (s.n > s.most() && s.k <= s.most() && s.rows() <= max_grid_y) {
        auto digits = static_cast<double>(div_up(s.key.bits, 11));
        double us = 2.5 * (2 * digits + 5) + 6 + (digits + 2) * sizes;
        list.push_back(make_tactic(BySelect{}, us));
    }
    by_passes(ByRadix{}, s.key.bits * 0.35);
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

Emitted emit_sort(const Problem& p, const Tactic& t) {
    Sorting s = sorting_of(p);
    if (s.rows() == 0 || s.k == 0) {
        return {};
    }
    return t.is<ByRadix>()       ? emit_radix(p, s)
           : t.is<InRegisters>() ? emit_registers(p, s)
           : t.is<ByWarps>()     ? emit_warps(p, s)
           : t.is<BySelect>()    ? emit_select(p, s)
                                 : emit_rounds(p, s);
}

} // namespace ingot::kernels
