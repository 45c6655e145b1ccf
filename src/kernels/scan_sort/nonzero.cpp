// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/unpacked.h"
#include "kernels/reduce/rows.h"
#include "kernels/scan_sort/dynamic.h"
#include "kernels/scan_sort/places.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr int64_t tile = 2048; // TILE of nonzero.cuh

/// `struct Extents` of nonzero.cuh.
struct ExtentsArg {
    int64_t size[max_axes];
    int64_t axis_step, step;
};

Launch launch_of(const Operand& x, const Nest& n, const char* entry, int step) {
    Launch l;
    Defines d;
    d.add("T", c_type(x.dtype)).add("KR", n.axes).add("RANK", x.view.rank()).add("STEP", step);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "nonzero", {}};
    l.entry = entry;
    l.grid[0] = div_up(n.arg.count, tile);
    return l;
}

} // namespace

Launch places_launch(int64_t scratch, int64_t count) {
    Launch l;
    Defines d;
    d.add("T", "bool").add("KR", 1).add("RANK", 1).add("STEP", 1);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "nonzero", {}};
    l.entry = "places_of_counts";
    l.args.scratch(scratch).i64(count);
    return l;
}

Operand unpacked_operand(const Operand& o, int64_t& end) {
    if (!is_packed(o.dtype)) {
        return o;
    }
    DType wide = unpacked_dtype(o.dtype);
    end = div_up(end, 256) * 256;
    Operand there{wide, in_scratch, plan::dense(o.view.shape)};
    there.view.offset = end / bytes_of(wide);
    end += byte_size(wide, o.view.count());
    return there;
}

void widen_packed(const Operand& from, const Operand& to, Emitted& out) {
    if (is_packed(from.dtype)) {
        for (Launch& l : emit_cast(from, to).launches) {
            out.launches.push_back(std::move(l));
        }
    }
}

Emitted emit_nonzero_count(const Problem& p) {
    Emitted out;
    int64_t tiles = div_up(p.in[0].view.count(), tile);
    out.scratch = (tiles + 1) * 8;
    Operand x = unpacked_operand(p.in[0], out.scratch);
    widen_packed(p.in[0], x, out);
    Nest n = make_nest(std::array{x.view}, plan::row_major(x.view.rank()));
    if (tiles > 0) {
        Launch l = launch_of(x, n, "nonzero_count", 0);
        l.args.pointer(x).scratch(0).value(n.arg);
        out.launches.push_back(std::move(l));
    }
    out.launches.push_back(places_launch(0, tiles));
    return out;
}

Emitted emit_nonzero_write(const Problem& p) {
    Emitted out;
    out.scratch = (div_up(p.in[0].view.count(), tile) + 1) * 8;
    Operand x = unpacked_operand(p.in[0], out.scratch);
    Nest n = make_nest(std::array{x.view}, plan::row_major(x.view.rank()));
    const View& to = p.out[0].view;
    if (to.count() == 0) {
        return out;
    }
    require(x.view.rank() <= max_axes, ErrorCode::Unsupported, "nonzero of ", x.view.rank(),
            " axes, at most ", max_axes, " are supported");
    ExtentsArg e{};
    std::copy(x.view.shape.begin(), x.view.shape.end(), e.size);
    e.axis_step = to.strides[0];
    e.step = to.strides[1];
    Launch l = launch_of(x, n, "nonzero_write", 2);
    l.args.pointer(x).pointer(p.out[0]).scratch(0).value(n.arg).value(e);
    out.launches.push_back(std::move(l));
    return out;
}

std::optional<std::string> refuse_dynamic(const Group& group) {
    const Node& n = group.first();
    if (group.nodes.size() > 1 || !(n.is(nonzero_def) || n.is(nms_def))) {
        return "not nonzero or nms alone";
    }
    const Type& x = group.graph.type(n.inputs[0]);
    if (n.is(nonzero_def) && x.rank() > max_axes) {
        return str("there are ", x.rank(), " axes");
    }
    return std::nullopt;
}

} // namespace ingot::kernels
