// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/wgmma.h"

#include "base/error.h"
#include "base/integers.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/persistent.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

// Few, so that a model needs few programs.
constexpr WgmmaTile tiles[] = {
    {1, 64, 6, 1, 0.165, 0.13},
    {2, 128, 4, 1, 0.30, 0.30, 1, 0, false, 0.95},
    {1, 32, 6, 1, 0.15, 0.09},
    {2, 256, 4, 1, 0.53, 0.53, 1, 0, false, 1.1},
    {1, 48, 6, 1, 0.155, 0.11, 1, 0, false, 1.1},
    {1, 96, 6, 1, 0.18, 0.18},
    {1, 128, 5, 1, 0.20, 0.20},
    {1, 144, 5, 1, 0.195, 0.195},
    {2, 192, 4, 1, 0.48, 0.48},
    {2, 144, 5, 1, 0.34, 0.34, 1, 0, false, 0.9},
    {2, 160, 5, 1, 0.385, 0.385, 1, 0, false, 1.05},
    {2, 128, 3, 1, 0.50, 0.32, 1, 2, false, 0.95},
    {2, 160, 4, 1, 0.78, 0.78, 2},
    {2, 128, 4, 1, 0.64, 0.64, 2},
    {2, 160, 5, 1, 0.42, 0.42, 2, 0, true, 1, 1.2},
    {2, 128, 5, 1, 0.34, 0.34, 2, 0, true, 1, 1.08},
    {2, 64, 4, 1, 0.28, 0.17, 1, 2},
    {2, 128, 5, 1, 0.385, 0.385, 2, 0, true, 1, 1, true},
    {2, 160, 4, 1, 0.475, 0.475, 2, 0, true, 1, 1, true},
    {2, 192, 4, 1, 0.57, 0.57, 2, 0, true, 1, 1, true},
    // Not chosen, for a program more, where it gains next to nothing.
    {2, 128, 3, 1, 0.57, 0.57, 3, 0, true, 1.01, 1, true},
};

} // namespace

bool wgmma_types(DType a, DType b, bool tf32) {
    bool bytes = a == DType::F8E4M3 || a == DType::I8 || a == DType::U8;
    return (a == b &&
            (bytes || a == DType::F16 || a == DType::BF16 || (a == DType::F32 && tf32))) ||
           (a == DType::U8 && b == DType::I8);
}

std::span<const WgmmaTile> wgmma_tiles() {
    return tiles;
}

const WgmmaTile& WgmmaSplit::form() const {
    const auto* t = std::find_if(std::begin(tiles), std::end(tiles),
                                 [this](const WgmmaTile& w) { return w.name() == tile; });
    CHECK(t != std::end(tiles), "no tile '", tile, "'");
    return *t;
}

std::string WgmmaTile::name() const {
    std::string kind = persistent     ? "_turns"
                       : ping_pong    ? "_pp"
                       : resident > 0 ? str("_r", resident)
                                      : "";
    return str(bm(), "x", bn, kind);
}

int WgmmaTile::tail(const Contraction& c) const {
    return static_cast<int>(bn % slab_elements(c.out.dtype));
}

bool WgmmaTile::takes(const Contraction& c, int64_t steps, int splits, bool tma_store) const {
    if (c.a.dtype == DType::F8E4M3 && !holds_parts()) {
        return false;
    }
    if (persistent) {
        // A result of two sums takes whole panels, two matrices at a time.
        bool whole = !c.paired() || (bn % 128 == 0 && blocks * bn < 384);
        // Lanes exchange results of 8 bits; those of 32 take twice the registers.
        bool full = persistent_epilogue(c).full >= 0;
        int most_words = bit_width(c.a.dtype) == 8 ? 256 : 383;
        bool spills = bit_width(c.out.dtype) == 8    ? blocks * bn > (full ? 256 : 320)
                      : bit_width(c.out.dtype) == 32 ? blocks * bn > most_words
                                                     : false;
        return tma_store && whole && !spills && splits == 1;
    }
    if (ping_pong && tma_store && !c.paired()) {
        return false;
    }
    // Operands of 32 bits beside the sums of such a wide tile would spill.
    if (ping_pong && !persistent && bn > 128 &&
        (c.a.dtype == DType::F32 || bit_width(c.a.dtype) == 8)) {
        return false;
    }
    // Measured: whole depths of such a tile end 7 us later than those of persistent ones.
    if (groups == 2 && blocks == 1 && bn == 160 && !ping_pong && splits == 1) {
        return false;
    }
    // A row of the tile has to fit across the threads that store it.
    if (!ping_pong && bn / store_width(c) > 128 * groups) {
        return false;
    }
    bool splittable = blocks == 1 && resident == 0 && !ping_pong && steps >= int64_t{2} * splits;
    return (splits == 1 || splittable) && (!ping_pong || vector_columns(c));
}

bool WgmmaTile::holds_parts() const {
    if (ping_pong) {
        return persistent && blocks * bn <= 256;
    }
    return blocks == 1 && bn <= (resident > 0 ? 64 : 192);
}

std::span<const int> wgmma_splits() {
    static constexpr int splits[] = {1, 2, 3, 4, 8};
    return splits;
}

namespace {

/// Rows that a thread stores, 8 columns at a time.
int64_t rows_of_thread(const WgmmaTile& t) {
    int across = t.bn / 8;
    return across > 32 ? INT64_MAX : div_up(16, 32 / across);
}

/// Whether threads store so few rows that each can hold the epilogue's operands for all of them
/// beside its sums.
bool reads_early(const WgmmaTile& t) {
    constexpr int64_t most_rows = 8;
    return !t.ping_pong && t.resident == 0 && t.blocks == 1 && rows_of_thread(t) <= most_rows;
}

// All in microseconds, measured together with the kernels of whole models.
constexpr double launch_us = 0.7;
constexpr double l2_bytes_per_clock = 52; // and SM of the GPU, of which one SM takes so many:
constexpr double sm_bytes_per_clock = 66;

/// The start of a block, the store of its tile, and what that takes from other tiles.
struct BlockTime {
    double start, store, in_turn = 0;
};

/// Time in which a slab's sums of e4m3 are added to those of the depth, and a warpgroup's products
/// end and begin; others multiply meanwhile, if there are any.
double promotion_us(const WgmmaTile& t, const Contraction& c, const Arch& arch) {
    constexpr double end_clocks = 60, beside_others = 0.15;
    if (c.a.dtype != DType::F8E4M3) {
        return 0;
    }
    // Alternating warpgroups wait for operands about half of this time.
    double share = t.ping_pong ? 0.5 : t.groups > 1 || t.bn <= 64 ? beside_others : 1.0;
    return share * t.blocks * (t.bn / 2.0 + end_clocks) / (arch.clock_ghz * 1e3);
}

/// Instructions per result, in addition to the multiplication: those of no map, and all.
constexpr double plain_instructions = 6;
double epilogue_instructions(const Epilogue& f) {
    double n = plain_instructions;
    for (const ExprInstr& c : f.body.code) {
        bool function = c.op == ExprOp::Erf || c.op == ExprOp::Tanh || c.op == ExprOp::Sigmoid ||
                        c.op == ExprOp::Exp;
        n += function ? 12 : 1;
    }
    return n;
}

/// REPEATED of persistent_sums.cuh. Sums that the epilogue reads where they are need no moves
/// and branches, each of which costs the tensor cores more than a clock; but programs of so many
/// instructions would compile too long, and factors, three operands, or an operand of the result's
/// shape in a convolution would spill beside so many sums.
int repeats(const WgmmaTile& t, const Contraction& c, int full, Deviations deviations, bool conv) {
    constexpr int64_t most = 2400, most_of_chunk = 450;
    bool factors = deviations != Deviations::None;
    int64_t each = value_instructions(c.epilogue) + (factors ? 1 : 0);
    int64_t sums = int64_t{t.blocks} * t.bn / 2; // of a thread
    int64_t results = sums / static_cast<int64_t>(c.epilogue.sums);
    bool many = sums >= 192;
    bool bytes = bit_width(c.out.dtype) == 8;
    bool calls = bytes && !ends_by_rounding(c.epilogue.body); // many instructions round
    if (c.moments || (many && factors) || (calls && full >= 0)) {
        return 0;
    }
    bool crowded =
        calls || (many && (bytes || (full >= 0 && (conv || c.epilogue.operands.size() > 2))));
    if (!crowded && results * each <= most) {
        return 2;
    }
    int64_t at_once = int64_t{t.blocks} * (many ? 8 : 16);
    return t.blocks < 3 && at_once * each <= most_of_chunk ? 1 : 0;
}

/// The tensor cores wait for the instructions of the other warpgroup's epilogue. Measured: 1.4
/// clocks for each of a warp. The costs of other tiles leave functions out, so less is counted.
/// With moves and branches there are as many more instructions as are said here.
double epilogue_us(const WgmmaTile& t, const Contraction& c, const Arch& arch) {
    constexpr double clocks = 1;
    int repeated = repeats(t, c, persistent_epilogue(c).full, Deviations::None, false);
    double moves = repeated == 2 ? 0.7 : repeated == 1 ? 4.5 : 7;
    double sums = t.blocks * t.bn / 2.0; // of a thread
    double results = sums / static_cast<double>(c.epilogue.sums);
    return (results * value_instructions(c.epilogue) + sums * moves) * clocks /
           (arch.clock_ghz * 1e3);
}

BlockTime block_time(const WgmmaTile& t, const Contraction& c, const Arch& arch) {
    if (t.persistent) {
        return {1.3, 1.5};
    }
    const Epilogue& f = c.epilogue;
    const Loops& rows = c.rows;
    int varying = 0; // operands that differ from row to row
    for (size_t i = 0; i < f.operands.size(); ++i) {
        const Shape& s = rows.stored[i + 1];
        varying += std::any_of(s.begin(), s.end(), [](int64_t x) { return x != 0; }) ? 1 : 0;
    }
    double area = t.bm() * t.bn / (128.0 * 128);
    double per_area = 1.5 + (f.operands.empty() ? 0.0 : 0.5) + 0.4 * varying;
    // Four warps store it instead of eight, in panels.
    double slower = t.ping_pong ? 3.2 : 1;
    // Each scheduler has one warp; the numbers of wider blocks were measured with such functions.
    // Products of bytes are scaled, and often stored as bytes.
    bool bytes = bit_width(c.a.dtype) == 8;
    double functions =
        t.groups > 1 && !bytes && f.quick
            ? 0
            : t.bm() * t.bn / 128.0 *
                  ((bytes || !f.quick ? value_instructions(f) : epilogue_instructions(f)) -
                   plain_instructions) /
                  (arch.clock_ghz * 1e3);
    return {t.groups == 1 ? 0.6 : 1.3, slower * per_area * area + functions};
}

/// The share of SMs that clusters of this many blocks use, when a block fills its SM.
double share_of_sms(int splits) {
    return splits == 2 ? 1.0 : splits == 3 ? 0.89 : splits == 4 ? 0.93 : 0.97;
}

/// A block per SM and tile: the `splits` blocks of a cluster share a tile. Clusters leave SMs
/// unused, and measurements show no two of them on one SM. Where they take more than half of the
/// SMs, the blocks of the next launch cannot all load weights beside them.
double split_us(const WgmmaTile& t, BlockTime b, int64_t count, double steps, int splits,
                double step, const Arch& arch) {
    auto at_once = static_cast<int64_t>(arch.sms * share_of_sms(splits) / splits);
    auto rounds = static_cast<double>(div_up(count, std::max<int64_t>(1, at_once)));
    // Blocks that push their sums need little more than the time on their way; those of larger
    // tiles read them from each other.
    double sent = t.bm() * t.bn * 4 / 1024.0 * (splits - 1) / splits; // kB of a block
    double crowd = 2 * count * splits > arch.sms ? 0.8 : 0;
    double sum = t.groups == 1 ? 1.2 + 0.33 * splits + 0.12 * sent + crowd
                               : 0.6 + 0.33 * splits + 0.2 * sent;
    return rounds * (b.start + b.store / splits + steps * step + sum);
}

double compute_us(const WgmmaTile& t, BlockTime b, int64_t count, double steps, double step,
                  const Arch& arch) {
    double shared = t.shared_step_us * step / t.step_us;
    auto on_sm = static_cast<double>(div_up(count, arch.sms));
    double whole = b.start + b.store;
    if (t.persistent) {
        return b.start + on_sm * (steps * step + b.in_turn) + b.store;
    }
    if (t.ping_pong) {
        double depth = steps * step;
        return b.start +
               std::max(on_sm * depth + b.store, std::ceil(on_sm / 2) * (depth + b.store));
    }
    int64_t by_memory = std::max<int64_t>(1, arch.shared_per_sm / (t.shared_bytes() + 1024));
    int64_t resident = t.resident > 0 ? t.resident : t.groups == 1 ? by_memory : 1;
    auto rounds = std::ceil(on_sm / static_cast<double>(resident));
    double depth = steps * std::max(rounds * step, on_sm * shared);
    double beside = std::min(on_sm, static_cast<double>(resident));
    double ends = t.resident > 0 ? 0.8 * on_sm : 0.5 * beside + (on_sm - beside);
    return depth + whole * (resident == 1 ? on_sm : std::max(1.0, ends));
}

} // namespace

double wgmma_cost_us(const WgmmaTile& tile, const Contraction& c, int64_t count, int64_t steps,
                     int splits, double dram_bytes, const Arch& arch) {
    WgmmaTile t = tile;
    double promotion = promotion_us(t, c, arch);
    t.step_us += promotion;
    t.shared_step_us += promotion;
    auto own_steps = static_cast<double>(div_up(steps, splits));
    double busy = std::min(1.0, static_cast<double>(count * splits) / arch.sms);
    // The clock falls when all tensor cores work; measured for alternating warpgroups.
    double power = t.ping_pong ? 1 : 1 + 0.18 * std::clamp((busy - 0.6) / 0.4, 0.0, 1.0);
    double step = t.step_us * power;
    BlockTime b = block_time(t, c, arch);
    b.in_turn = t.persistent ? epilogue_us(t, c, arch) : 0;
    double us = splits > 1 ? split_us(t, b, count, own_steps, splits, step, arch)
                           : compute_us(t, b, count, own_steps, step, arch);
    double loaded = static_cast<double>(count * steps) * (t.bm() + t.bn) * 128;
    double from_l2 = std::min(busy * sm_bytes_per_clock, l2_bytes_per_clock) * arch.sms;
    double l2 = loaded / (from_l2 * arch.clock_ghz * 1e3);
    // Measured: persistent blocks load while they store; in others, stores and loads alternate.
    double dram = dram_bytes / (arch.dram_gbs * 0.8e3) * (t.persistent ? 1 : 1.3);
    double beside_model = t.beside_model * (count > arch.sms ? t.in_turn : 1);
    return launch_us + beside_model * std::max(us, b.start + std::max(l2, dram));
}

namespace {

/// Text of the kernel that stores out of shared memory.
void add_tile_text(Program& p, const StoreText& text, bool early, bool promoted,
                   Deviations deviations) {
    p.body +=
        str(device_file("contract"), text.functions, text.store_tile(),
            text.staged && !early ? device_file("store_staged") : "",
            early ? "" : device_file("cluster_sum"), device_file("wgmma_core"),
            promoted ? device_file("promoted_sums") : "",
            deviations == Deviations::Residual ? device_file("row_factor") : "",
            early ? device_file("store_early") : "", text.paired ? device_file("pair_load") : "",
            deviations == Deviations::Found    ? device_file("row_deviation")
            : deviations == Deviations::Merged ? device_file("row_factor")
                                               : "");
}

void add_persistent_text(Program& p, const WgmmaTile& t, const Contraction& c,
                         Deviations deviations, bool conv) {
    PersistentEpilogue s = persistent_epilogue(c);
    p.defines +=
        str("#define PAIRED ", c.paired() ? 1 : 0, "\n#define TAIL ", t.tail(c) > 0 ? 1 : 0,
            "\n#define BYTES ", bit_width(c.out.dtype) == 8 ? 1 : 0, "\n#define WORDS ",
            bit_width(c.out.dtype) == 32 ? 1 : 0, "\n#define FULL ", s.full >= 0 ? 1 : 0,
            "\n#define REPEATED ", repeats(t, c, s.full, deviations, conv), "\n");
    p.body += str(device_file("contract"), persistent_text(c, s), device_file("wgmma_core"),
                  c.a.dtype == DType::F8E4M3 ? device_file("promoted_sums") : "",
                  deviations == Deviations::Merged ? device_file("row_factor") : "",
                  device_file("persistent_sums"));
}

/// The instruction's types, for wgmma.cuh.
std::string type_defines(DType a, DType b) {
    auto name = [](DType t) -> std::string_view {
        return t == DType::F32      ? "tf32"
               : t == DType::F8E4M3 ? "e4m3"
               : t == DType::I8     ? "s8"
                                    : ingot::name(t);
    };
    std::string_view more = a == DType::F32      ? "#define WGMMA_TF32\n"
                            : a == DType::F8E4M3 ? "#define WGMMA_F8\n"
                                                 : "";
    std::string whole = str("#define WGMMA_WHOLE\n#define WGMMA_TYPE_B \"", name(b), "\"\n");
    return str("#define WGMMA_TYPE \"", name(a), "\"\n", is_float(a) ? more : whole);
}

/// With a block an SM at most, deep products take an SM's whole shared memory: two blocks never
/// share one while others idle, and a constant B is there before the wait. Measured: 5 to 11 % of
/// whole models of one image or text.
WgmmaTile with_more_stages(WgmmaTile t, const Contraction& c, int64_t blocks, int splits,
                           const Arch& arch) {
    constexpr int64_t most = 200 << 10;
    int64_t steps = div_up(div_up(c.k(), slab_elements(c.a.dtype)), splits);
    if (t.groups == 1 && t.resident == 0 && !t.ping_pong && blocks <= arch.sms &&
        steps > t.stages) {
        int64_t bytes = std::min(most, arch.shared_per_block - 1024);
        int64_t stage = int64_t{t.k_blocks} * 128 * (t.bm() + t.bn);
        t.stages = std::max(t.stages, static_cast<int>(bytes / stage));
    }
    return t;
}

/// The means and factors of a tile's rows, behind all else.
int64_t factor_bytes(const WgmmaTile& t) {
    return t.persistent ? 0 : int64_t{8} * t.bm();
}

/// Registers of a row that a thread reads early: where it goes, its operands and where they are.
int64_t words_of_row(const Contraction& c) {
    int64_t words = 2;
    for (const Operand& o : c.epilogue.operands) {
        words += 2 + bit_width(o.dtype) / 4;
    }
    return words;
}

/// Whether a thread has registers for what it reads early beside its sums of bytes, which are
/// followed by scales of 32 bits.
bool reads_bytes_early(const WgmmaTile& t, const Contraction& c) {
    constexpr int64_t most_words = 168;
    int64_t words = c.a.dtype == DType::F8E4M3 ? t.bn : t.bn / 2;
    for (size_t i = 0; i < c.epilogue.operands.size(); ++i) {
        int64_t each = bit_width(c.epilogue.operands[i].dtype) / 4;
        words += each * (stands(c, i) ? 1 : rows_of_thread(t));
    }
    return bit_width(c.a.dtype) > 8 || words + 2 * rows_of_thread(t) <= most_words;
}

/// The blocks that registers allow an SM: more than one where a thread that reads early needs few.
int blocks_by_registers(const WgmmaTile& t, const Contraction& c, bool conv,
                        Deviations deviations) {
    bool merges =
        deviations == Deviations::Merged || deviations == Deviations::Residual || c.moments;
    if (t.resident > 0 || !reads_early(t) || t.groups > 1 || merges) {
        return std::max(1, t.resident);
    }
    int64_t words = words_of_row(c);
    // Walking more axes takes registers too.
    bool plain = !conv && deviations == Deviations::None && c.batch.rank() == 1 &&
                 c.rows.rank() == 1 && c.columns.rank() == 1;
    // Two operands of bf16 spilled at 80.
    int64_t most_words = plain && c.a.dtype != DType::BF16 ? 88 : 72;
    int64_t sums = c.a.dtype == DType::F8E4M3 ? t.bn : t.bn / 2; // with those of a slab
    return sums + rows_of_thread(t) * words <= most_words ? 2 : 1;
}

/// PARTS of promoted_sums.cuh: two where no other warpgroup multiplies meanwhile, and registers
/// hold them.
int parts_of_sums(const WgmmaTile& t, const Contraction& c, int blocks) {
    constexpr int64_t most_words = 190;
    int64_t words = 3 * t.bn / 2 + (t.early ? rows_of_thread(t) * words_of_row(c) : 0);
    return t.groups == 1 && blocks == 1 && words <= most_words ? 2 : 1;
}

} // namespace

WgmmaTile fitted(const WgmmaTile& tile, const Contraction& c, int64_t count, int splits,
                 const Arch& arch) {
    WgmmaTile t = with_more_stages(tile, c, count * splits, splits, arch);
    t.early = reads_early(t) && store_width(c) == 8 && reads_bytes_early(t, c);
    t.slots = t.early ? splits : 1;
    // Where blocks share an SM, the room may be missing for one of them.
    t.apart = t.early && count * splits <= arch.sms;
    auto fits = [&] { return t.shared_bytes() + factor_bytes(t) <= arch.shared_per_block; };
    if (t.apart && !fits() && t.stages > tile.stages) {
        --t.stages; // slots that are rounded up take more
    }
    t.apart = t.apart && fits();
    return t;
}

Launch wgmma_launch(const WgmmaTile& t, const Contraction& c, int64_t count, int splits, int conv,
                    const Arch& arch, Deviations deviations) {
    StoreText text = store_text(c, store_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str(type_defines(c.a.dtype, c.b.dtype), "#define SLAB_K ", slab_elements(c.a.dtype),
            "\n#define NC ", t.groups, "\n#define MB ", t.blocks, "\n#define BN ", t.bn,
            "\n#define ST ", t.stages, "\n#define K_BLOCKS ", t.k_blocks, "\n#define RESIDENT ",
            t.resident, "\n#define BLOCKS ", blocks_by_registers(t, c, conv > 0, deviations),
            "\n#define EARLY ", t.early ? 1 : 0, "\n#define PING_PONG ", t.ping_pong ? 1 : 0,
            "\n#define CONV ", conv, "\n#define BATCHED ", conv == 0 && c.batches() > 1 ? 1 : 0,
            "\n", text.defines);
    if (c.a.dtype == DType::F8E4M3) {
        int blocks = blocks_by_registers(t, c, conv > 0, deviations);
        l.program.defines += str("#define PARTS ", parts_of_sums(t, c, blocks), "\n");
    }
    l.shared = t.shared_bytes();
    if (deviations == Deviations::Found) {
        bool odd = c.k() % chunk_elements(c.a.dtype) != 0;
        l.program.defines += str("#define CENTRED 1\n#define A_TYPE ", c_type(c.a.dtype),
                                 odd ? "\n#define ODD_DEPTH 1\n" : "\n");
    } else if (deviations != Deviations::None) {
        bool merged = deviations == Deviations::Merged;
        l.program.defines += merged ? "#define MERGED 1\n" : "#define RESIDUAL 1\n";
        l.shared += factor_bytes(t);
    }
    if (c.moments || (deviations != Deviations::None && deviations != Deviations::Found)) {
        l.program.uses.emplace_back("chunk_moments");
    }
    l.program.body = device_file("wgmma");
    if (t.persistent) {
        add_persistent_text(l.program, t, c, deviations, conv > 0);
        l.program.family = "gemm_wgmma_persistent";
    } else {
        add_tile_text(l.program, text, t.early, c.a.dtype == DType::F8E4M3, deviations);
        l.program.family = t.ping_pong ? "gemm_wgmma_pp" : "gemm_wgmma";
    }
    l.entry = std::string(l.program.family);
    l.grid = {t.ping_pong ? std::min<int64_t>(count, arch.sms) : count * splits, 1, 1};
    l.block = t.threads();
    l.cluster = splits;
    return l;
}

void add_wgmma_numbers(Args& args, const WgmmaTile& t, const WgmmaNumbers& n) {
    if (!t.ping_pong) {
        args.i32(n.splits);
    }
    args.i32(n.b_constant ? 1 : 0).i32(n.a_batched ? 1 : 0).i32(n.b_batched ? 1 : 0);
    args.i32(n.backwards ? 1 : 0);
    if (!t.ping_pong) {
        args.f32(n.epsilon).i32(t.tile_at());
    } else if (n.moments != nullptr) {
        args.f32(n.epsilon);
    }
    if (n.moments != nullptr) {
        args.pointer(*n.moments);
        if (!t.ping_pong) {
            args.i32(t.shared_bytes()); // where the factors are
        }
    }
}

} // namespace ingot::kernels
