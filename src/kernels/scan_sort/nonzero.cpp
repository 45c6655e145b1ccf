// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/unpacked.h"
#include "kernels/reduce/reduce_rows.h"
#include "kernels/scan_sort/dynamic.h"
#include "kernels/scan_sort/prefix_sum.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

/// `struct Extents` of nonzero.cuh.
struct ExtentsArg {
    int64_t size[max_axes];
    int64_t axis_step, step;
};

/// nonzero.cuh's walk over x, and its scratch memory.
struct Marking {
    Operand x; // wide elements
    Nest nest;
    int vector = 1;
    int loads = 4;
    int64_t tiles = 0;
    int64_t marks = 0; // scratch offset
    int64_t scratch = 0;

    explicit Marking(const Problem& p) : x(p.in[0]) {
        int64_t elements = x.view.count();
        if (is_packed(x.dtype)) {
            x.dtype = unpacked_dtype(x.dtype);
            x.view = plan::dense(x.view.shape);
        }
        nest = make_nest(std::array{x.view}, plan::row_major(x.view.rank()));
        if (nest.axes == 1 && nest.arg.strides[0][0] == 1) {
            vector = vector_width(x, {});
            loads = std::min(4, 16 / vector);
        }
        int64_t tile = int64_t{256} * vector * loads;
        tiles = div_up(elements, tile);
        marks = div_up((tiles + 1) * 8, 256) * 256;
        scratch = marks + tiles * 512;
        x = unpacked_operand(p.in[0], scratch);
    }
    Launch launch(const char* entry, int step, int64_t rank) const {
        Launch l;
        Defines d;
        if (step == 0) {
            d.add("T", c_type(x.dtype)).add("KR", nest.axes);
        } else {
            d.add("RANK", rank);
        }
        d.add("VEC", vector).add("LOADS", loads).add("STEP", step);
        l.program = {{"types", "math", "loops", "keys"}, d.text(), "nonzero", {}};
        l.entry = entry;
        l.grid[0] = tiles;
        return l;
    }
};

} // namespace

Launch prefix_sum_launch(int64_t scratch, int64_t count) {
    Launch l;
    Defines d;
    d.add("VEC", 1).add("LOADS", 1).add("STEP", 1);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "nonzero", {}};
    l.entry = "prefix_sum_of_counts";
    l.block = 1024;
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
    Marking m(p);
    Emitted out;
    out.scratch = m.scratch;
    widen_packed(p.in[0], m.x, out);
    if (m.tiles > 0) {
        Launch l = m.launch("nonzero_count", 0, 0);
        l.args.pointer(m.x).scratch(0).scratch(m.marks).value(m.nest.arg);
        out.launches.push_back(std::move(l));
    }
    out.launches.push_back(prefix_sum_launch(0, m.tiles));
    return out;
}

Emitted emit_nonzero_write(const Problem& p) {
    Marking m(p);
    Emitted out;
    out.scratch = m.scratch;
    const View& to = p.out[0].view;
    if (to.count() == 0) {
        return out;
    }
    int64_t rank = m.x.view.rank();
    require(rank <= max_axes, ErrorCode::Unsupported, "nonzero of ", rank, " axes, at most ",
            max_axes, " are supported");
    ExtentsArg e{};
    std::copy(m.x.view.shape.begin(), m.x.view.shape.end(), e.size);
    e.axis_step = to.strides[0];
    e.step = to.strides[1];
    Launch l = m.launch("nonzero_write", 2, rank);
    l.args.pointer(p.out[0]).scratch(0).scratch(m.marks).value(e);
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
