// SPDX-License-Identifier: Apache-2.0
// wgmma and TMA (9.0): forms by the number of warpgroups per block and blocks per SM.
#include "base/error.h"
#include "kernels/attention/byte_results.h"
#include "kernels/common/slabs.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels::attention {

namespace {

constexpr int64_t most_width = 256, most_narrow = 160;

struct Form {
    std::string_view name; // rows, blocks an SM
    int groups;            // of 64 rows
    int per_sm;            // blocks
    bool overlap;          // of products and softmax within a warpgroup
    // Of a thread that computes: all of a block together have no more than at its launch.
    int registers;
    bool fma_exp;      // some exponentials by multiplications
    bool lazy = false; // maxima are looked for only where weights grow too large
    // For heads of more than `most_narrow` elements, whose sums take more than half of all
    // registers; their products take longer than the weights.
    bool wide = false;
};
constexpr Form forms[] = {
    {"128s1", 2, 1, true, 240, false},
    {"192s1", 3, 1, true, 160, false},
    {"128s2", 2, 2, false, 104, false},
    {"64s2", 1, 2, true, 232, false},
    {"64s3", 1, 3, true, 136, false},
    {"128s1f", 2, 1, true, 240, true},
    {"128s2f", 2, 2, false, 104, true},
    {"128s2o", 2, 2, true, 104, false},
    {"256s1z", 4, 1, false, 112, false, true},
    {"256s1zf", 4, 1, false, 112, true, true},
    {"128s2z", 2, 2, false, 104, false, true},
    {"128s2zf", 2, 2, false, 104, true, true},
    {"192s1z", 3, 1, false, 160, false, true},
    {"192s1zf", 3, 1, false, 160, true, true},
    {"128s1w", 2, 1, false, 240, false, false, true},
    {"64s1w", 1, 1, false, 240, false, false, true},
};

struct Wgmma {
    static constexpr std::string_view pattern = "att_wgmma_{form}_k{keys}";
    std::string form; // by name
    int keys = 0;     // of a step
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("form", self.form);
        field("keys", self.keys);
    }
};

constexpr bool registers_suffice() {
    for (const Form& f : forms) {
        int at_launch = 65536 / (128 * (f.groups + 1) * f.per_sm) / 8 * 8;
        if (f.groups * f.registers + 24 > (f.groups + 1) * at_launch) {
            return false;
        }
    }
    return true;
}
static_assert(registers_suffice());

int64_t padded(int64_t elements) {
    return div_up(elements, 16) * 16;
}

int64_t padded_width(const Heads& s) {
    return padded(s.width());
}

/// As most_keys: scores stay in registers beside the weights, for a second attempt.
int64_t most_lazy_keys(const Form& f, const Heads& s) {
    int64_t d = padded_width(s);
    if (s.heavy() || s.arg.scale <= 0 || (f.fma_exp && (d > 64 || s.arg.keys < 512))) {
        return 0;
    }
    if (f.groups == 4) {
        return d <= 48 ? 80 : d <= 64 ? 64 : d <= 80 ? 48 : 0;
    }
    if (f.groups == 2) {
        return d <= 48 ? 64 : d <= 64 ? 48 : 0;
    }
    return d <= 64 ? 112 : d <= 80 ? 80 : d <= 128 ? 64 : 48;
}

bool is_single(const Heads& s) {
    return s.dtype == DType::F32;
}

/// As most_keys for f32, whose texts are long.
int64_t most_single_keys(const Form& f, const Heads& s) {
    int64_t d = padded_width(s);
    bool fits = d <= (f.groups == 3 ? 48 : 64);
    return fits && f.overlap && !f.fma_exp && f.registers >= 150 && !s.heavy() ? 64 : 0;
}

/// The largest number of keys per step within text size and registers; 0 where the form does not
/// apply.
int64_t most_keys(const Form& f, const Heads& s) {
    if (f.wide != (padded_width(s) > most_narrow)) {
        return 0;
    }
    if (is_single(s)) {
        return f.lazy ? 0 : most_single_keys(f, s);
    }
    if (f.wide) {
        int64_t most = !s.heavy() ? 80 : padded(s.arg.values) > 208 ? 32 : 48;
        return s.heavy() && s.has_mask && s.arg.softcap > 0 ? most - 16 : most;
    }
    if (f.lazy) {
        return most_lazy_keys(f, s);
    }
    int64_t d = padded_width(s);
    bool exp_bound = d <= 64 && !s.heavy() && s.arg.keys >= 512;
    if ((f.registers < 200 && (d > 64 || s.heavy())) || (f.fma_exp && !exp_bound)) {
        return 0;
    }
    if (s.heavy()) {
        return d > 128 ? 32 : d > 80 ? 48 : 64;
    }
    if (d > 128 || (d > 64 && f.per_sm > 1)) {
        return 64;
    }
    if (d > 64) {
        return d > 80 ? (s.has_mask ? 80 : 96) : (s.has_mask ? 112 : 128);
    }
    if (f.registers < 110 && f.overlap) {
        return d > 48 ? 0 : 64;
    }
    if (f.groups == 3) {
        return d > 48 || s.has_mask ? 96 : 128;
    }
    if (f.registers < 150) {
        return d <= 48 ? 80 : 64;
    }
    return f.fma_exp && s.has_mask ? 112 : 128;
}

/// Equal steps if there are few of them, to reduce padding.
int64_t keys_of_step(int64_t keys, int64_t most) {
    int64_t steps = div_up(keys, most);
    return steps > 4 ? most : div_up(div_up(keys, steps), 16) * 16;
}

/// The keys of a shorter last step, for which there is a text of its own; 0 for none.
int64_t tail_of(const Heads& s, const Form& f, int64_t keys, int64_t splits) {
    int64_t rest = s.arg.keys % keys;
    bool apart = f.overlap || s.arg.causal != 0 || splits > 1 || s.arg.keys < keys ||
                 padded_width(s) > 64; // whose texts are long
    return apart || rest == 0 ? 0 : rest <= 16 && keys > 32 ? 16 : rest <= 32 && keys > 48 ? 32 : 0;
}

/// Blocks that loop over all tiles; 0 where each block has one tile.
int64_t looping_blocks(const Problem& p, const Heads& s, const Form& f, int64_t splits) {
    int64_t most = int64_t{p.arch.sms} * f.per_sm;
    return f.lazy && s.blocks(int64_t{64} * f.groups) * splits > most ? most : 0;
}

/// `loop`: rows of q have two stages.
int64_t shared_bytes(const Heads& s, const Form& f, int64_t keys, int64_t stages, bool loop) {
    int64_t row = div_up(padded_width(s), slab_elements(s.dtype)) * 128;
    int64_t bias = s.has_mask && s.mask_of_keys ? keys * 4 : 0;
    int64_t turned = is_single(s) ? div_up(keys, 32) * padded(s.arg.values) * 128 : 0;
    int64_t raw = is_single(s) ? 2 * (keys * row + 8) : 0; // values that are still to be turned
    return int64_t{f.groups} * (loop ? 2 : 1) * 64 * row + raw +
           stages * (std::max(keys * row, turned) + bias + 16);
}

int64_t stages_of(const Problem& p, const Heads& s, const Form& f, int64_t keys) {
    // Measured: blocks that loop gain from more of them, others lose.
    int64_t stages = f.lazy ? 8 : 4;
    auto fits = [&] {
        int64_t bytes = shared_bytes(s, f, keys, stages, f.lazy);
        return bytes <= p.arch.shared_per_block &&
               f.per_sm * (bytes + 1024) <= p.arch.shared_per_sm;
    };
    while (stages >= 3 && !fits()) {
        --stages;
    }
    return stages >= 3 ? stages : 0;
}

/// Whether TMA can load tiles: every axis advances by whole vectors.
bool loadable(const Operand& o) {
    const View& v = o.view;
    bool ok = by_vectors(v, chunk_elements(o.dtype));
    for (size_t i = 0; i < 3; ++i) {
        ok = ok && (v.shape[i] == 1 || v.strides[i] > 0);
    }
    return ok;
}

bool runs(const Problem& p, const Heads& s) {
    int64_t chunk = chunk_elements(s.dtype);
    return p.arch.has_wgmma() && (is_half(s.dtype) || (is_single(s) && p.tf32)) &&
           s.arg.depth % 8 == 0 && s.arg.depth > 0 && s.arg.values % 8 == 0 && s.arg.values > 0 &&
           s.width() <= most_width && s.arg.keys > 0 && s.rows > 16 &&
           by_vectors(s.q.view, chunk) && loadable(s.k) && loadable(s.v) &&
           by_vectors(s.out.view, chunk);
}

/// Measured for widths of wgmma: below 48 columns the tensor cores are not full.
double product_clocks(int64_t columns) {
    return static_cast<double>(std::max<int64_t>(columns / 2, 24));
}

double cost_us(const Problem& p, const Heads& s, const Form& f, int64_t keys, int64_t splits) {
    auto bn = static_cast<double>(keys);
    double of_half = is_single(s) ? 2 : 1; // bytes, and clocks of a product
    double scores = of_half * static_cast<double>(padded(s.arg.depth)) / 16 * product_clocks(keys);
    double values = of_half * bn / 16 * product_clocks(padded(s.arg.values));
    // Exponentials at 16 a clock; masks and softcap add instructions.
    double weights = 4 * bn * (s.heavy() ? 1.7 : s.has_mask ? 1.2 : 1.0);
    double chain = scores + 1.15 * weights + 250 + (f.overlap ? 0 : values);
    // Measured: warpgroups that share an SM hide half of the work that is not the bottleneck.
    // Counted, not measured: without maxima a third of the instructions is gone.
    double work = (f.lazy ? 1.4 : 2.0) * std::max(scores + values, weights);
    int64_t blocks = s.blocks(int64_t{64} * f.groups) * splits;
    double part = static_cast<double>(div_up(s.arg.keys, splits));
    auto tail = static_cast<double>(tail_of(s, f, keys, splits));
    // Counted: a short step waits as long for its products.
    double last = tail > 0 ? 0.8 - 0.8 * tail / bn : 0;
    double steps = (std::ceil(part / bn) - last) * (s.arg.causal != 0 && s.rows > 512 ? 0.6 : 1.0);
    auto rounds = static_cast<double>(div_up(blocks, int64_t{p.arch.sms} * f.per_sm));
    auto on_sm = static_cast<double>(div_up(blocks, p.arch.sms));
    double clocks = std::max(rounds * steps * chain, on_sm * f.groups * steps * work);
    double per_us = p.arch.clock_ghz * 1e3;
    double loads = of_half * static_cast<double>(blocks) * part * static_cast<double>(s.pair() * 2);
    // Rows that are no whole sectors take 7.3 clocks each.
    bool sectors = s.arg.depth * 2 % 32 == 0 && s.arg.values * 2 % 32 == 0;
    double l2 = sectors ? loads / (24.0 * p.arch.sms * per_us)
                        : static_cast<double>(blocks) * part * 2 * 7.3 / (p.arch.sms * per_us);
    double bytes = of_half * 2.0 * static_cast<double>(s.pair() * s.batch) * s.arg.groups *
                   static_cast<double>(s.rows + s.arg.keys);
    double dram = bytes / (p.arch.dram_gbs * 0.8e3);
    // Start and end of a tile, measured.
    bool loops = looping_blocks(p, s, f, splits) > 0;
    double of_tile = !loops ? 3.0 : f.per_sm > 1 ? 5.2 : 4.0;
    double edges = rounds * of_tile + (loops ? 2.5 : 0);
    double us = 1.0 + edges + std::max({clocks / per_us, l2, dram});
    // Sums are written and read once more.
    double sums = static_cast<double>(s.rows * s.arg.groups * s.batch * splits) * s.arg.values * 8;
    return splits > 1 ? us + 2.5 + sums / (p.arch.dram_gbs * 0.8e3) : us;
}

/// Parts of the keys, each of at least 128.
int64_t best_splits(const Problem& p, const Heads& s, const Form& f, int64_t most) {
    int64_t best = 1;
    double least = 0;
    for (int64_t n = 1; n <= 64 && (n == 1 || s.arg.keys >= 128 * n); n *= 2) {
        double us = cost_us(p, s, f, keys_of_step(div_up(s.arg.keys, n), most), n);
        if (n == 1 || us < least) {
            best = n;
            least = us;
        }
    }
    return best;
}

/// Tiles of 128 bytes by `keys` rows of one head; columns and rows outside are zeros.
TensorMap map_of(const Operand& o, int64_t keys) {
    const View& v = o.view;
    TensorMap m = wgmma_map(o.dtype, 4);
    auto row = static_cast<uint64_t>(div_up(v.shape[3], chunk_elements(o.dtype)) * 16);
    auto element = static_cast<uint64_t>(bit_width(o.dtype)) / 8;
    for (size_t i = 0; i < 4; ++i) {
        m.sizes[i] = static_cast<uint64_t>(v.shape[3 - i]);
        if (i > 0) {
            // An axis of one element still needs a stride that TMA accepts.
            bool one = v.shape[3 - i] == 1;
            m.strides[i - 1] = one ? row : element * static_cast<uint64_t>(v.strides[3 - i]);
        }
    }
    m.box[1] = static_cast<uint32_t>(keys);
    return m;
}

/// The compile-time parameters of a program, and its blocks where these loop over tiles, else 0.
struct Tiling {
    int64_t keys = 0, stages = 0, blocks = 0, tail = 0;
};

Launch wgmma_launch(const Heads& s, const Form& f, const Tiling& t, const Arch& arch) {
    bool half = s.dtype == DType::F16, loop = t.blocks > 0;
    int64_t tiles = div_up(s.rows, int64_t{64} * f.groups),
            parts = int64_t{s.arg.groups} * s.arg.splits;
    Launch l;
    Defines d;
    bool single = is_single(s);
    // Threads that turn values take registers from the others.
    int load_registers = single ? 56 : 24;
    int registers = f.registers - (single ? static_cast<int>(round_up(32 / f.groups, 8)) : 0);
    if (single) {
        d.add("WGMMA_TYPE", "\"tf32\"").add("WGMMA_TF32", 1).add("TRUNCATED", 1);
    } else {
        d.add("WGMMA_TYPE", half ? "\"f16\"" : "\"bf16\"");
        d.add("PACK", half ? "pack_f16" : "pack_bf16");
    }
    d.add("E", single ? "float" : "u16").add("SINGLE", single ? 1 : 0);
    d.add("DH", s.arg.depth)
        .add("DV", s.arg.values)
        .add("WG", f.groups)
        .add("BN", t.keys)
        .add("SN", t.keys);
    d.add("ST", t.stages).add("OVERLAP", f.overlap ? 1 : 0).add("PER_SM", f.per_sm);
    d.add("TAIL", t.tail)
        .add("REGS", registers)
        .add("LOAD_REGS", load_registers)
        .add("LAZY", f.lazy ? 1 : 0)
        .add("WIDE", f.wide ? 1 : 0)
        .add("LOOP", loop ? 1 : 0);
    add_softmax(d, s, f.fma_exp);
    // Where keys end for all rows alike, the mask in shared memory hides the others. Those of
    // another block's part may hold anything.
    bool alike = s.has_mask && s.mask_of_keys && !s.arg.causal && s.arg.splits == 1;
    d.add("EDGES", alike ? 0 : 1);
    add_result(d, s, single ? "float" : "u16");
    l.program = {uses_of(s, {"types"}), d.text(), "attention_wgmma",
                 str(result_text(s), device_file("wgmma"), device_file("attention_common"),
                     device_file("attention_softmax"), device_file("attention_tiles"),
                     device_file(single ? "attention_singles" : "attention_halves"))};
    l.entry = "attention_wgmma";
    l.block = 128 * (f.groups + 1);
    l.shared = shared_bytes(s, f, t.keys, t.stages, loop);
    l.grid = {tiles, parts, s.batch};
    tiles *= parts * s.batch;
    if (tiles <= arch.sms) { // so that no two blocks share an SM while others idle
        l.shared = std::max(l.shared, std::min(arch.shared_per_sm / 2, arch.shared_per_block));
        l.alone = true;
    }
    if (loop) {
        l.grid = {std::min<int64_t>(tiles, t.blocks), 1, 1};
    }
    l.args.pointer(s.q).map(s.k, map_of(s.k, t.keys)).map(s.v, map_of(s.v, t.keys));
    add_arguments(l, s);
    l.args.i32(tiles);
    add_scalars(l, s);
    return l;
}

} // namespace

void add_wgmma_tactics(std::vector<Tactic>& list, const Problem& p, const Heads& s) {
    if (!runs(p, s)) {
        return;
    }
    for (const Form& f : forms) {
        int64_t most = most_keys(f, s);
        if (most == 0) {
            continue;
        }
        int64_t splits = best_splits(p, s, f, most);
        int64_t keys = keys_of_step(div_up(s.arg.keys, splits), most);
        if (stages_of(p, s, f, keys) > 0) {
            double us = cost_us(p, s, f, keys, splits) * (f.fma_exp ? 1.02 : 1);
            Wgmma parameters = {std::string(f.name), static_cast<int>(keys)};
            list.push_back(make_tactic(std::move(parameters), us));
        }
    }
}

std::optional<Schedule> wgmma_schedule(const Problem& p, const Heads& s, const Tactic& t) {
    const auto* w = t.as<Wgmma>();
    if (w == nullptr) {
        return std::nullopt;
    }
    const auto* f = std::find_if(std::begin(forms), std::end(forms),
                                 [w](const Form& form) { return form.name == w->form; });
    CHECK(f != std::end(forms), "no form '", w->form, "'");
    Schedule how;
    how.splits = best_splits(p, s, *f, most_keys(*f, s));
    how.keys = w->keys;
    Tiling tiling{w->keys, stages_of(p, s, *f, w->keys), looping_blocks(p, s, *f, how.splits),
                  tail_of(s, *f, w->keys, how.splits)};
    how.launch = [f, tiling, arch = p.arch](const Heads& heads) {
        return wgmma_launch(heads, *f, tiling, arch);
    };
    return how;
}

} // namespace ingot::kernels::attention
