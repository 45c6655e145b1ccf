// SPDX-License-Identifier: Apache-2.0
#include "kernels/scan_sort/scan.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/combine.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr int64_t tile = 2048;     // TILE of scan.cuh
constexpr int64_t short_row = 256; // of a warp, at most

struct ByRow : NoParameters {
    static constexpr std::string_view pattern = "rows";
};
struct ByWarp : NoParameters {
    static constexpr std::string_view pattern = "short_rows";
};
struct ByShortColumns : NoParameters {
    static constexpr std::string_view pattern = "short_columns";
};
struct ByTiles : NoParameters {
    static constexpr std::string_view pattern = "tiles";
};
struct ByColumn : NoParameters {
    static constexpr std::string_view pattern = "columns";
};

/// `struct Line` of scan.cuh.
struct LineArg {
    int64_t n, x_step, out_step;
};

struct Scanning {
    Scan attrs;
    Operand x;
    Nest kept; // views: x, out
    LineArg line{};
};

Scanning scanning_of(const Problem& p) {
    Scanning s;
    const Node& n = p.group.first();
    s.attrs = n.as<Scan>();
    s.x = p.operand(n.inputs[0]);
    auto d = static_cast<size_t>(s.attrs.axis);
    s.line = {s.x.view.shape[d], s.x.view.strides[d], p.out[0].view.strides[d]};
    std::array axes{s.attrs.axis};
    std::array views{without_axes(s.x.view, axes), without_axes(p.out[0].view, axes)};
    s.kept = make_nest(views, plan::stride_order(views[0]));
    return s;
}

/// Whether 8 elements of a row can be moved at once.
bool takes_vectors(const Problem& p, const Scanning& s) {
    bool ok = s.line.x_step == 1 && s.line.out_step == 1 && s.line.n % 8 == 0 &&
              s.x.view.offset % 8 == 0 && p.out[0].view.offset % 8 == 0 && !s.attrs.reverse;
    for (int k = 0; k < s.kept.axes; ++k) {
        ok = ok && s.kept.arg.strides[0][k] % 8 == 0 && s.kept.arg.strides[1][k] % 8 == 0;
    }
    return ok;
}

/// Elements of a lane, where a warp has a row of `n`.
int64_t share_of(int64_t n) {
    return n <= 64 ? 2 : n <= 128 ? 4 : 8;
}

/// Elements of a thread, where 8 warps have 32 adjacent rows of `n`.
int64_t column_share_of(int64_t n) {
    return n <= 64 ? 8 : n <= 128 ? 16 : 32;
}

Launch launch_of(const Scanning& s, const char* entry, int phase, bool vectors = false) {
    Launch l;
    Defines d;
    DType t = s.x.dtype;
    d.add("PHASE", phase).add("T", c_type(t)).add("C", combine_type(t));
    d.add("FN", combine_index(s.attrs.fn)).add("IDENTITY", combine_identity(s.attrs.fn, t));
    d.add("EXCLUSIVE", s.attrs.exclusive ? 1 : 0).add("REVERSE", s.attrs.reverse ? 1 : 0);
    d.add("VECTORS", vectors ? 1 : 0).add("KR", s.kept.axes);
    l.program = {{"types", "math", "loops", "combine"}, d.text(), "scan", {}};
    l.entry = entry;
    return l;
}

} // namespace

std::vector<Tactic> scan_tactics(const Problem& p) {
    Scanning s = scanning_of(p);
    int64_t rows = s.kept.arg.count;
    std::vector<Tactic> list;
    double bytes = static_cast<double>(rows) * static_cast<double>(s.line.n) *
                   static_cast<double>(2 * bytes_of(s.x.dtype));
    auto add = [&](auto algorithm, double cost) {
        list.push_back(make_tactic(algorithm, 2 + cost + bytes / (p.arch.dram_gbs * 1000)));
    };
    double tiles = static_cast<double>(div_up(s.line.n, tile));
    double waves = static_cast<double>(div_up(rows, int64_t{8} * p.arch.sms));
    add(ByRow{}, 1.5 * tiles * waves);
    if (p.batch_invariant) {
        return list;
    }
    if (s.line.n <= short_row) { // predicted: as many rows beside each other as there are warps
        double sectors = s.line.x_step == 1 ? 0 : 8 * bytes / (p.arch.dram_gbs * 1000);
        add(ByWarp{}, static_cast<double>(div_up(rows, int64_t{64} * p.arch.sms)) + sectors);
    }
    if (s.line.n > tile && rows <= max_grid_y) {
        add(ByTiles{}, 4 + 1.5 * tiles * static_cast<double>(rows) / (8.0 * p.arch.sms));
    }
    bool side_by_side = s.kept.arg.strides[0][s.kept.axes - 1] == 1;
    if (side_by_side && rows >= 64) {
        double per = static_cast<double>(div_up(rows, int64_t{2048} * p.arch.sms));
        add(ByColumn{}, 0.2 * static_cast<double>(s.line.n) * per);
    }
    if (s.line.n <= short_row && side_by_side && s.line.x_step != 1) {
        // Predicted. A warp to a row reads a sector of 32 bytes for each element there: 12 us for
        // 1.6 MB, 32 for 6.3 on an H200.
        add(ByShortColumns{},
            1 + 0.5 * static_cast<double>(div_up(rows, int64_t{64} * p.arch.sms)));
    }
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

Emitted emit_scan(const Problem& p, const Tactic& t) {
    Scanning s = scanning_of(p);
    Emitted out;
    int64_t rows = s.kept.arg.count;
    if (rows == 0 || s.line.n == 0) {
        return out;
    }
    if (t.is<ByColumn>()) {
        Launch l = launch_of(s, "scan_columns", 4);
        l.grid[0] = div_up(rows, 256);
        l.args.pointer(s.x).pointer(p.out[0]).value(s.kept.arg).value(s.line);
        out.launches.push_back(std::move(l));
        return out;
    }
    auto add_short = [&](const char* entry, int phase, int64_t share, int64_t rows_of_block) {
        Launch l = launch_of(s, entry, phase);
        l.program.defines += str("#define SHARE ", share, "\n");
        l.grid[0] = div_up(rows, rows_of_block);
        l.args.pointer(s.x).pointer(p.out[0]).value(s.kept.arg).value(s.line);
        out.launches.push_back(std::move(l));
    };
    if (t.is<ByShortColumns>()) {
        add_short("scan_short_columns", 6, column_share_of(s.line.n), 32);
        return out;
    }
    if (t.is<ByWarp>()) {
        add_short("scan_short_rows", 5, share_of(s.line.n), 8);
        return out;
    }
    int64_t parts = div_up(s.line.n, tile);
    bool vectors = takes_vectors(p, s);
    auto add = [&](int phase) {
        Launch l = launch_of(s, "scan_rows", phase, vectors);
        l.grid = phase == 0 ? std::array<int64_t, 3>{rows, 1, 1}
                            : std::array<int64_t, 3>{parts, rows, 1};
        l.args.pointer(s.x).pointer(p.out[0]).scratch(0).value(s.kept.arg).value(s.line);
        out.launches.push_back(std::move(l));
    };
    if (t.is<ByRow>()) {
        add(0);
        return out;
    }
    out.scratch = rows * parts * 8;
    add(1);
    Launch l = launch_of(s, "scan_parts", 2);
    l.grid[0] = rows;
    l.args.scratch(0).i32(parts);
    out.launches.push_back(std::move(l));
    add(3);
    return out;
}

} // namespace ingot::kernels
