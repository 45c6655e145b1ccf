// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm/group_slices.h"

#include "kernels/common/expr_text.h"
#include "kernels/norm/group_shape.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

constexpr int64_t head_bytes = 1024; // before the vectors in shared memory
constexpr int64_t most_warps = 16;
constexpr int64_t most_groups = 32; // of a slice
constexpr int64_t blocks_per_sm = 4;
constexpr int64_t most_packs = 6; // of a thread, in registers; of 8 some spill
/// Shared memory of the form in registers: merged, all, sums.
constexpr int64_t registers_shared = 256 + 4096 + 8192;

/// `struct Slices` of group_slices.cuh.
struct SlicesArg {
    int64_t x_image, x_pixel, y_image, y_pixel, scale_step, bias_step;
    int32_t size, groups, vectors, pitch, pixels, part, parts, share;
};

struct Slices {
    GroupShape shape;
    int64_t vectors = 0; // of a pixel, in a slice
    int64_t slices = 0;

    int64_t groups() const { return vectors * shape.vector / shape.size(); }
    int64_t pitch() const { return vectors | 1; }
    int64_t shared(int64_t part) const { return head_bytes + part * pitch() * 16; }
    int64_t most_part(int64_t shared_bytes) const {
        return (shared_bytes - head_bytes) / (pitch() * 16);
    }
    int64_t threads(int64_t part) const {
        return 32 * vectors * std::min(most_warps / vectors, div_up(part, 32));
    }
    /// Vectors of a thread that keeps them in registers.
    int64_t packs(int64_t part) const { return div_up(part, threads(part) / vectors); }
    double elements(int64_t part) const {
        return static_cast<double>(part * vectors * shape.vector);
    }
    double bytes(int64_t part) const { return static_cast<double>(part * vectors * 16); }
};

/// Whether every vector contains parts of at most two groups.
bool two_groups_at_most(int64_t unit, int64_t size, int64_t vector) {
    for (int64_t c = 0; c < unit; c += vector) {
        if ((c + vector - 1) / size - c / size > 1) {
            return false;
        }
    }
    return true;
}

/// Vectors of a slice: whole groups, at least 64 bytes per pixel if possible; 0 where no slice
/// fits.
int64_t slice_vectors(const GroupShape& s) {
    int64_t unit = std::lcm(s.size(), int64_t{s.vector});
    if (!two_groups_at_most(unit, s.size(), s.vector)) {
        return 0;
    }
    int64_t best = 0;
    for (int64_t width = unit; width <= s.channels; width += unit) {
        int64_t vectors = width / s.vector;
        if (vectors > most_warps || width / s.size() > most_groups || best >= 4) {
            break;
        }
        best = s.channels % width == 0 ? vectors : best;
    }
    return best;
}

std::optional<Slices> slices_of(const Problem& p) {
    std::optional<GroupShape> shape = group_shape(p);
    int64_t bytes = shape ? bytes_of(shape->x.dtype) : 0;
    if ((bytes != 2 && bytes != 4) || shape->vector * bytes != 16 || !shape->one_step()) {
        return std::nullopt;
    }
    Slices s{*shape, slice_vectors(*shape), 0};
    if (s.vectors == 0) {
        return std::nullopt;
    }
    s.slices = shape->channels / (s.vectors * shape->vector);
    return s;
}

struct OneLaunch : NoParameters {
    static constexpr std::string_view pattern = "cluster";
};
struct TwoLaunches : NoParameters {
    static constexpr std::string_view pattern = "slices";
};

/// The blocks of a slice are a cluster; nullopt where they do not fit.
struct OneCut {
    int64_t cluster = 1;
    int64_t part = 0;  // pixels of a block
    int64_t packs = 0; // of a thread in registers; 0: the slice is in shared memory
    double us = 0;
};
double one_launch_us(const Slices& s, const OneCut& c, const Arch& arch) {
    int64_t blocks = s.shape.images * s.slices * c.cluster;
    double copy = block_bytes_us(arch, blocks, 2 * s.bytes(c.part));
    if (c.packs == 0) {
        constexpr double in_cluster = 1.9; // measured
        return 2.6 + (c.cluster > 1 ? 0.6 + in_cluster * copy : copy);
    }
    // About 19 instructions an element, which 128 lanes of an SM issue after the loads arrive.
    constexpr double element_clocks = 0.15;
    double clocks =
        static_cast<double>(div_up(blocks, arch.sms)) * s.elements(c.part) * element_clocks;
    return 2.4 + (c.cluster > 1 ? 0.5 : 0) + copy + clocks / (arch.clock_ghz * 1000);
}
std::optional<OneCut> one_launch(const Slices& s, const Arch& arch) {
    std::optional<OneCut> best;
    for (int64_t cluster = 1; cluster <= (arch.has_cluster() ? 8 : 1); cluster *= 2) {
        OneCut c{cluster, div_up(s.shape.pixels, cluster), 0, 0};
        int64_t packs = s.packs(c.part);
        c.packs = packs <= most_packs ? most_packs : 0; // one text for all
        if (c.packs == 0 && s.shared(c.part) > arch.shared_per_block) {
            continue;
        }
        c.us = one_launch_us(s, c, arch);
        // Registers spare two passes over shared memory, which the model of these does not count.
        bool more = best && (c.packs > 0) != (best->packs > 0);
        if (!best || (more ? c.packs > 0 : c.us < best->us)) {
            best = c;
        }
    }
    return best;
}

/// Pixels of a block, in each launch.
struct TwoCuts {
    int64_t first = 0, last = 0;
    double us = 0;
};
TwoCuts two_launches(const Slices& s, const Arch& arch) {
    int64_t lines = s.shape.images * s.slices; // of pixels, in slices
    int64_t blocks = div_up(blocks_per_sm * arch.sms, lines);
    int64_t part = std::max<int64_t>(32, div_up(s.shape.pixels, blocks));
    int64_t most = s.most_part(arch.shared_per_sm / blocks_per_sm - 1024);
    int64_t first = std::min(part, most);
    double us = 5.2 + block_bytes_us(arch, lines * div_up(s.shape.pixels, first), s.bytes(first)) +
                block_bytes_us(arch, lines * div_up(s.shape.pixels, part), 2 * s.bytes(part));
    return {first, part, us};
}

class Emitter {
public:
    Emitter(const Problem& p, const Slices& s) : p_(p), s_(s), epilogue_(make_row_epilogue(p, 4)) {}

    Launch launch(int phase, int64_t part, int64_t share, int64_t packs = 0) const {
        const GroupShape& shape = s_.shape;
        Launch l;
        Defines d;
        d.add("PHASE", phase).add("T", c_type(shape.x.dtype)).add("V", shape.vector);
        if (phase != 1) {
            d.add("S", c_type(shape.scale.dtype)).add("B", c_type(shape.bias.dtype));
        }
        d.add("PACKS", packs);
        if (phase != 1) {
            d.add("SV", packs > 0 && scale_vectors() ? 1 : 0);
        }
        d.add("CLUSTER", phase == 0 && p_.arch.has_cluster() ? 1 : 0);
        l.program = {{"types", "math", "loops"},
                     d.text(),
                     "group_slices",
                     phase == 1 ? std::string() : epilogue_.text};
        l.entry = phase == 1 ? "group_slice_stats" : "group_slices";
        l.block = static_cast<int>(s_.threads(part));
        l.grid = {div_up(shape.pixels, part), s_.slices, shape.images};
        l.shared = packs > 0 ? registers_shared : phase == 2 ? head_bytes : s_.shared(part);
        l.args.pointer(shape.x);
        if (phase == 1) {
            l.args.scratch(0).value(arg(part, share));
            return l;
        }
        l.args.pointer(p_.out[0]).pointer(shape.scale);
        if (shape.has_bias) {
            l.args.pointer(shape.bias);
        } else {
            l.args.null();
        }
        if (phase == 0) {
            l.args.null();
        } else {
            l.args.scratch(0);
        }
        l.args.value(arg(part, share)).f32(shape.epsilon);
        return l;
    }

private:
    bool scale_vectors() const {
        const GroupShape& shape = s_.shape;
        auto vectors = [&](const Operand& o, int64_t step) {
            return step == 1 && o.view.offset % shape.vector == 0;
        };
        return vectors(shape.scale, shape.scale_step()) && vectors(shape.bias, shape.bias_step());
    }
    SlicesArg arg(int64_t part, int64_t share) const {
        const GroupShape& shape = s_.shape;
        auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
        return {shape.x_image(),
                shape.x_pixel(),
                p_.out[0].view.strides[0],
                shape.y_pixel(),
                shape.scale_step(),
                shape.bias_step(),
                narrow(shape.size()),
                narrow(s_.groups()),
                narrow(s_.vectors),
                narrow(s_.pitch()),
                narrow(shape.pixels),
                narrow(part),
                narrow(div_up(shape.pixels, share)),
                narrow(share)};
    }

    const Problem& p_;
    const Slices& s_;
    RowEpilogue epilogue_;
};

} // namespace

std::vector<Tactic> group_slices_tactics(const Problem& p) {
    std::optional<Slices> s = slices_of(p);
    if (!s) {
        return {};
    }
    std::vector<Tactic> list{make_tactic(TwoLaunches{}, two_launches(*s, p.arch).us)};
    if (std::optional<OneCut> one = one_launch(*s, p.arch)) {
        list.push_back(make_tactic(OneLaunch{}, one->us));
    }
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

std::optional<Emitted> emit_group_slices(const Problem& p, const Tactic& t) {
    if (!t.is<OneLaunch>() && !t.is<TwoLaunches>()) {
        return std::nullopt;
    }
    Slices s = *slices_of(p);
    Emitter e(p, s);
    Emitted out;
    if (t.is<OneLaunch>()) {
        std::optional<OneCut> one = one_launch(s, p.arch);
        CHECK(one, "a slice does not fit a cluster");
        // The last blocks of a cluster may have no pixels.
        Launch l = e.launch(0, one->part, one->part, one->packs);
        l.cluster = static_cast<int>(one->cluster);
        l.grid[0] = one->cluster;
        out.launches.push_back(std::move(l));
        return out;
    }
    TwoCuts two = two_launches(s, p.arch);
    out.scratch = s.shape.images * s.shape.groups * div_up(s.shape.pixels, two.first) * 8;
    out.launches.push_back(e.launch(1, two.first, two.first));
    out.launches.push_back(e.launch(2, two.last, two.first));
    return out;
}

} // namespace ingot::kernels
