// SPDX-License-Identifier: Apache-2.0
// mma.sync: tiles of 16 * mi * warps rows.
#include "kernels/attention/byte_results.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels::attention {

namespace {

int64_t most_width(const Heads& s) {
    return s.dtype == DType::F32 ? 160 : 256;
}

/// Bytes of q, k and v that one copy takes: 16, 8 or 4; 0 where their rows are not aligned so.
int copied_bytes(const Heads& s) {
    for (int bytes : {16, 8, 4}) {
        int64_t unit = int64_t{8} * bytes / bit_width(s.dtype);
        if (s.arg.depth % unit == 0 && s.arg.values % unit == 0 && by_vectors(s.q.view, unit) &&
            by_vectors(s.k.view, unit) && by_vectors(s.v.view, unit)) {
            return bytes;
        }
    }
    return 0;
}

/// How much longer a kernel takes with shorter copies.
double copy_factor(const Heads& s) {
    int bytes = copied_bytes(s);
    return bytes == 16 ? 1.0 : bytes == 8 ? 1.2 : 1.4;
}

bool runs(const Problem& p, const Heads& s) {
    bool type =
        s.dtype == DType::F16 || s.dtype == DType::BF16 || (s.dtype == DType::F32 && p.tf32);
    return type && s.arg.depth % 2 == 0 && s.arg.depth > 0 && s.arg.values % 2 == 0 &&
           s.arg.values > 0 && s.width() <= most_width(s) && copied_bytes(s) > 0 &&
           by_vectors(s.out.view, 2);
}

int64_t stage_keys(const Heads& s) {
    if (s.dtype == DType::F32) {
        return s.width() > 128 ? 16 : s.width() > 32 ? 32 : 64;
    }
    return s.width() > 128 ? 32 : 64;
}

/// Keys that a step unrolls: few enough for text size and registers.
int64_t unrolled_keys(const Heads& s, int64_t mi) {
    bool wide = s.dtype == DType::F32;
    int64_t width = mi * s.width() * (wide ? 2 : 1);
    int64_t keys = width <= 64 && mi == 1 ? 64 : width <= 128 ? 32 : 16;
    if (s.heavy()) {
        keys = std::min<int64_t>(keys, wide || s.width() > 128 ? 16 : 32);
    }
    if (wide) {
        keys = std::min<int64_t>(keys, mi == 1 ? 32 : 16);
    }
    return std::min(keys, stage_keys(s));
}

int64_t shared_bytes(const Heads& s, int64_t rows, int64_t keys) {
    int64_t step = s.dtype == DType::F32 ? 8 : 16;
    int64_t width = div_up(s.width(), step) * step;
    int64_t row = s.dtype == DType::F32 ? width * 4 + 16 : width * 2;
    int64_t bias = s.has_mask && s.mask_of_keys ? 8 * keys : 0;
    return (rows + 4 * keys) * row + bias;
}

/// Tiles of rows; tiles of 16 rows have one tile for all warps, with separate keys for each warp.
struct RowTiles {
    int rows = 64;
    int keys = 64; // per stage
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("rows", self.rows);
        field("keys", self.keys);
    }
};
struct Mma : RowTiles {
    static constexpr std::string_view pattern = "att_mma_{rows}x{keys}";
};
struct MmaTf32 : RowTiles {
    static constexpr std::string_view pattern = "att_tf32_{rows}x{keys}";
};
/// Tiles of 16 rows; the blocks of a cluster split the keys.
struct ClusterTiles {
    int cluster = 2;
    int warps = 4;
    int keys = 128; // per stage
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("cluster", self.cluster);
        field("warps", self.warps);
        field("keys", self.keys);
    }
};
struct MmaCluster : ClusterTiles {
    static constexpr std::string_view pattern = "att_mma_c{cluster}w{warps}_16x{keys}";
};
struct MmaClusterTf32 : ClusterTiles {
    static constexpr std::string_view pattern = "att_tf32_c{cluster}w{warps}_16x{keys}";
};

/// The split of 16 rows' keys over warps and blocks of a cluster.
struct Across {
    int warps = 4;
    int keys = 32; // of a warp, per stage
    int cluster = 1;

    int stage() const { return warps * keys; }
};

/// Keys and values, later overwritten by each warp's sums, and the data received from the other
/// blocks of the cluster.
int64_t across_bytes(const Heads& s, const Across& a) {
    int64_t block =
        std::max(shared_bytes(s, 16, a.stage()), int64_t{a.warps} * 16 * (s.arg.values + 2) * 4);
    int64_t vectors =
        int64_t{16} * s.arg.values / 4; // of any number of rows: the text does not tell it
    return block + (a.cluster > 1 ? a.cluster * div_up(vectors, a.cluster) * 32 : 0);
}

/// The largest number of keys of a warp, per stage.
int64_t across_keys(const Heads& s) {
    return std::min<int64_t>(unrolled_keys(s, 1), 32);
}

/// Where wgmma runs too, these tactics measured this factor above the model.
constexpr double beside_wgmma = 1.55;

int64_t tile_splits(const Problem& p, const Heads& s, int64_t rows) {
    return splits_of(p, s, s.blocks(rows), 256);
}

int64_t across_splits(const Problem& p, const Heads& s, const Across& a) {
    return a.cluster > 1 ? 1 : splits_of(p, s, s.blocks(16), 512);
}

Tactic tactic(const Problem& p, const Heads& s, int mi, int warps) {
    bool wide = s.dtype == DType::F32;
    int bm = 16 * mi * warps;
    int64_t splits = tile_splits(p, s, bm);
    double waves = static_cast<double>(div_up(s.blocks(bm) * splits, int64_t{2} * p.arch.sms));
    double flop =
        4.0 * static_cast<double>(s.pair() * s.arg.keys * bm) / static_cast<double>(splits);
    double rate = p.arch.mma_per_clock * p.arch.clock_ghz * 1000 * (mi == 2 ? 0.33 : 0.27) *
                  (wide ? 0.45 : 1);
    constexpr double begin_us = 1.8; // for a tile: rows of q, the first keys
    double us = 2.5 + waves * (begin_us + flop / rate) + (splits > 1 ? 2.5 : 0);
    us *= (p.arch.has_wgmma() ? beside_wgmma : 1) * copy_factor(s);
    RowTiles tiles = {bm, static_cast<int>(stage_keys(s))};
    return wide ? make_tactic(MmaTf32{tiles}, us) : make_tactic(Mma{tiles}, us);
}

/// For few rows, which need one warp: several warps each have their own keys. The time depends on
/// the rate at which one block loads keys and values.
double across_us(const Problem& p, const Heads& s, const Across& a) {
    int64_t splits = across_splits(p, s, a);
    auto waves = static_cast<double>(div_up(s.blocks(16) * a.cluster * splits, p.arch.sms));
    auto keys = static_cast<double>(div_up(s.arg.keys, splits * a.cluster));
    constexpr double bytes_per_us = 80e3;
    double bytes = keys * static_cast<double>(s.pair() * bit_width(s.dtype)) / 8;
    double stages = std::ceil(keys / a.stage());
    double stage_us = 0.1 + 0.00625 * a.keys;
    double us = 3.5 + waves * (bytes / bytes_per_us + stage_us * stages) + (splits > 1 ? 2.5 : 0) +
                (a.cluster > 1 ? 0.15 : 0);
    return us * (p.arch.has_wgmma() ? beside_wgmma : 1) * copy_factor(s);
}

Tactic across(const Problem& p, const Heads& s, const Across& a) {
    bool wide = s.dtype == DType::F32;
    double us = across_us(p, s, a);
    if (a.cluster > 1) {
        ClusterTiles tiles = {a.cluster, a.warps, a.stage()};
        return wide ? make_tactic(MmaClusterTf32{tiles}, us) : make_tactic(MmaCluster{tiles}, us);
    }
    RowTiles tiles = {16, a.stage()};
    return wide ? make_tactic(MmaTf32{tiles}, us) : make_tactic(Mma{tiles}, us);
}

/// The best cluster by the model. Fewer keys per warp finish sooner; with many stages, more keys
/// per stage pay.
std::optional<Tactic> clustered(const Problem& p, const Heads& s, int warps) {
    std::optional<Tactic> best;
    for (int cluster = 2; cluster <= 8; cluster *= 2) {
        int64_t share = div_up(s.arg.keys, cluster);
        auto keys = static_cast<int>(across_keys(s));
        Across a{warps, share <= int64_t{16} * warps ? std::min(keys, 16) : keys, cluster};
        if (across_bytes(s, a) > p.arch.shared_per_block) {
            continue;
        }
        Tactic t = across(p, s, a);
        if (!best || t.cost_us < best->cost_us) {
            best = std::move(t);
        }
    }
    return best;
}

void add_across(std::vector<Tactic>& list, const Problem& p, const Heads& s) {
    for (int warps : {4, 8}) {
        Across a{warps, static_cast<int>(across_keys(s))};
        if (across_bytes(s, a) <= p.arch.shared_per_block) {
            list.push_back(across(p, s, a));
        }
        std::optional<Tactic> t = p.arch.has_cluster() ? clustered(p, s, warps) : std::nullopt;
        if (t) {
            list.push_back(std::move(*t));
        }
    }
}

/// The compile-time parameters of a program.
struct Tiling {
    int mi = 1; // rows of a warp / 16
    int warps = 4;
    int stage = 64; // keys
    std::optional<Across> across;
};

/// nullopt for tactics of another algorithm.
std::optional<Tiling> tiling_of(const Heads& s, const Tactic& t) {
    const ClusterTiles* c = t.as<MmaCluster>();
    c = c == nullptr ? t.as<MmaClusterTf32>() : c;
    if (c != nullptr) {
        return Tiling{1, c->warps, c->keys, Across{c->warps, c->keys / c->warps, c->cluster}};
    }
    const RowTiles* r = t.as<Mma>();
    r = r == nullptr ? t.as<MmaTf32>() : r;
    if (r == nullptr) {
        return std::nullopt;
    }
    if (r->rows == 16) {
        Across a{1, static_cast<int>(across_keys(s))};
        a.warps = r->keys / a.keys;
        return Tiling{1, a.warps, r->keys, a};
    }
    int mi = r->rows == 128 ? 2 : 1;
    return Tiling{mi, r->rows / (16 * mi), r->keys, std::nullopt};
}

Launch mma_launch(const Heads& s, const Tiling& t) {
    bool half = s.dtype == DType::F16;
    bool wide = s.dtype == DType::F32;
    int mi = t.mi;
    int cluster = t.across ? t.across->cluster : 1;
    bool keep = wide ? mi == 1 && s.width() <= 64 : s.width() <= 128;
    Launch l;
    Defines d;
    d.add("TF32", wide ? 1 : 0).add("E", wide ? "float" : "u16").add("DH", s.arg.depth);
    d.add("DV", s.arg.values);
    d.add("COPIED", copied_bytes(s)).add("MI", mi).add("NW", t.warps).add("BN", t.stage);
    d.add("SN", t.across ? t.across->keys : unrolled_keys(s, mi));
    d.add("QREG", keep ? 1 : 0).add("ACROSS", t.across ? 1 : 0).add("CLUSTER", cluster);
    add_softmax(d, s, false);
    d.add("EDGES", 1);
    d.add("MMA", wide ? "mma_tf32" : half ? "mma_f16" : "mma_bf16");
    d.add("PACK", half ? "pack_f16" : "pack_bf16");
    add_result(d, s, wide ? "float" : "u16");
    l.program = {uses_of(s, {"types", "attention_common"}), d.text(), "attention_mma",
                 str(result_text(s), device_file("attention_softmax"))};
    l.entry = "attention_mma";
    int64_t bm = int64_t{16} * mi * (t.across ? 1 : t.warps);
    l.block = 32 * t.warps;
    l.shared = t.across ? across_bytes(s, *t.across) : shared_bytes(s, bm, t.stage);
    l.grid = {div_up(s.rows, bm) * cluster, int64_t{s.arg.groups} * s.arg.splits, s.batch};
    l.cluster = cluster;
    l.args.pointer(s.q).pointer(s.k).pointer(s.v);
    add_arguments(l, s);
    add_scalars(l, s);
    return l;
}

} // namespace

void add_mma_tactics(std::vector<Tactic>& list, const Problem& p, const Heads& s) {
    if (!runs(p, s)) {
        return;
    }
    for (auto [mi, warps] : {std::pair{2, 4}, std::pair{1, 4}, std::pair{1, 2}}) {
        bool fits =
            shared_bytes(s, int64_t{16} * mi * warps, stage_keys(s)) <= p.arch.shared_per_block;
        // Copies of 8 bytes, columns that are padded, and results of bytes make the text longer.
        bool short_text =
            !s.heavy() && s.byte_map == nullptr && s.width() <= (copied_bytes(s) == 16 ? 64 : 48);
        if (fits && (mi == 1 || short_text)) {
            list.push_back(tactic(p, s, mi, warps));
        }
    }
    bool by_fours = s.arg.values % 4 == 0; // as the parts of keys are merged
    if (s.rows <= 16 && s.arg.keys > across_keys(s) && by_fours && !p.batch_invariant) {
        add_across(list, p, s);
    }
}

std::optional<Schedule> mma_schedule(const Problem& p, const Heads& s, const Tactic& t) {
    std::optional<Tiling> tiling = tiling_of(s, t);
    if (!tiling) {
        return std::nullopt;
    }
    Schedule how;
    how.splits = tiling->across ? across_splits(p, s, *tiling->across)
                                : tile_splits(p, s, int64_t{16} * tiling->mi * tiling->warps);
    how.keys = tiling->stage;
    how.cluster = tiling->across ? tiling->across->cluster : 1;
    how.launch = [tiling = *tiling](const Heads& heads) { return mma_launch(heads, tiling); };
    return how;
}

} // namespace ingot::kernels::attention
