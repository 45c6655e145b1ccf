// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise/map_job.h"

#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

/// A rough count of instructions per element, so that a vector of them stays a small kernel.
int weight(const Expr& e) {
    int sum = 0;
    for (const ExprInstr& c : e.code) {
        bool special = c.op != ExprOp::In && c.op != ExprOp::Const && c.op != ExprOp::Select;
        int cost = !special                        ? 0
                   : c.op == ExprOp::Cast          ? (bit_width(c.to) == 8 && is_float(c.to) ? 15
                                                      : is_float(c.to)                       ? 2
                                                                                             : 6)
                   : c.op == ExprOp::Pow           ? 100
                   : kind(c.op) == ExprKind::Float ? 25
                   : c.op == ExprOp::Mod || c.op == ExprOp::Fmod || c.op == ExprOp::Div ? 15
                                                                                        : 1;
        sum += c.type == DType::F64 && cost > 10 ? 4 * cost : cost;
    }
    return sum;
}

/// The largest vector of an operand along a unit-stride innermost axis.
int64_t aligned_elements(const Operand& o, const Shape& strides, int64_t width) {
    // Packed elements: by bytes of two.
    int64_t per_16 = width == 0 ? 32 : std::max<int64_t>(16 / width, 1);
    int64_t common = o.view.offset;
    for (size_t n = 0; n + 1 < strides.size(); ++n) {
        common = std::gcd(common, strides[n]);
    }
    int64_t chunk = 1;
    while (chunk < per_16 && common % (2 * chunk) == 0) {
        chunk *= 2;
    }
    return chunk == per_16 ? 64 : chunk;
}

int choose_vector(const MapJob& job, const MapLoops& l) {
    int64_t narrowest = std::max(bit_width(job.out.dtype) / 8, 1);
    int64_t widest = narrowest;
    bool ok = l.out.back() == 1 && !is_packed(job.out.dtype);
    int64_t limit = aligned_elements(job.out, l.out, bit_width(job.out.dtype) / 8);
    for (size_t k = 0; k < l.in.size(); ++k) {
        int64_t width = bit_width(l.dtypes[k]) / 8;
        ok = ok && (l.inner(k) == 0 || l.inner(k) == 1);
        limit = std::min(limit,
                         l.inner(k) == 0 ? 64 : aligned_elements(*l.operands[k], l.in[k], width));
        narrowest = std::min(narrowest, std::max<int64_t>(width, 1));
        widest = std::max(widest, width);
    }
    int64_t v = ok ? std::min(std::min(16 / narrowest, 32 / widest), limit) : 1;
    // Rounding to fp8 costs as much as a function.
    auto fp8 = [](DType t) { return is_float(t) && bit_width(t) == 8; };
    int each = weight(job.body) + (fp8(job.out.dtype) ? 30 : 0);
    for (DType t : l.dtypes) {
        each += fp8(t) ? 15 : 0;
    }
    while (v > 2 && v * each > 500) {
        v /= 2;
    }
    // Several axes: whole vectors only. One axis: the last thread handles the remainder.
    while (v > 1 && l.sizes.size() > 1 && l.sizes.back() % v != 0) {
        v /= 2;
    }
    return static_cast<int>(v);
}

void drop_unused(const MapJob& job, MapLoops& l) {
    std::vector<bool> read(job.in.size(), false);
    for (const ExprInstr& c : job.body.code) {
        if (c.op == ExprOp::In) {
            CHECK(static_cast<size_t>(c.args[0]) < job.in.size(), "a map reads a missing input");
            read[static_cast<size_t>(c.args[0])] = true;
        }
    }
    for (size_t k = 0; k < job.in.size(); ++k) {
        if (read[k]) {
            l.used.push_back(static_cast<int>(k));
            l.dtypes.push_back(job.in[k].dtype);
            l.operands.push_back(&job.in[k]);
        }
    }
}

} // namespace

MapLoops map_loops(const MapJob& job) {
    MapLoops l;
    drop_unused(job, l);
    std::vector<View> views{job.out.view};
    for (const Operand* o : l.operands) {
        views.push_back(broadcasted(o->view, job.out.view.shape));
    }
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(job.out.view));
    if (nest.sizes.empty()) {
        nest.sizes.push_back(1);
        for (Shape& s : nest.strides) {
            s.push_back(1);
        }
    }
    l.sizes = nest.sizes;
    l.out = nest.strides[0];
    l.in.assign(nest.strides.begin() + 1, nest.strides.end());
    l.count = job.out.view.count();
    constexpr int64_t most = int64_t{1} << 30;
    l.wide = l.count >= most;
    for (const View& v : views) {
        l.wide = l.wide || span_of(v) >= most;
    }
    if (l.count > 0) {
        l.vector = choose_vector(job, l);
        l.unroll =
            l.vector < 4 && l.count >= (1 << 16) && weight(job.body) * 4 < 700 ? 4 / l.vector : 1;
    }
    return l;
}

int tile_axis(const MapLoops& l) {
    constexpr int64_t least = 8;
    size_t last = l.sizes.size() - 1;
    if (l.count < (1 << 12) || last == 0 || l.sizes[last] < least || l.wide) {
        return -1;
    }
    int axis = -1;
    int64_t bytes = 0;
    for (size_t k = 0; k < l.in.size(); ++k) {
        if (l.inner(k) == 0 || l.inner(k) == 1) {
            continue;
        }
        int found = -1;
        for (size_t n = 0; n < last; ++n) {
            found = l.in[k][n] == 1 && l.sizes[n] >= least ? static_cast<int>(n) : found;
        }
        if (is_packed(l.dtypes[k]) || found < 0 || (axis >= 0 && found != axis)) {
            return -1;
        }
        axis = found;
        bytes += int64_t{64} * 65 * (bit_width(l.dtypes[k]) / 8);
    }
    return bytes <= 48 << 10 ? axis : -1;
}

Emitted emit_map(const MapJob& job) {
    Emitted out;
    MapLoops loops = map_loops(job);
    if (loops.count == 0) {
        return out;
    }
    if (is_packed(job.out.dtype)) {
        out.launches.push_back(map_text::nibbles(job, loops));
        return out;
    }
    int axis = tile_axis(loops);
    out.launches.push_back(axis < 0 ? map_text::vectors(job, loops)
                                    : map_text::tiles(job, loops, axis));
    return out;
}

} // namespace ingot::kernels
