// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm/group_shape.h"

#include "kernels/reduce/reduce_rows.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

/// The L2 bandwidth of an SM in bytes per clock, with enough loads in flight.
constexpr double sm_bytes_per_clock = 28;

} // namespace

double block_bytes_us(const Arch& arch, int64_t blocks, double bytes) {
    double sm = static_cast<double>(div_up(blocks, arch.sms)) * bytes /
                (sm_bytes_per_clock * arch.clock_ghz * 1000);
    return std::max(sm, static_cast<double>(blocks) * bytes / (arch.dram_gbs * 1000));
}

std::optional<GroupShape> group_shape(const Problem& p) {
    const Node& n = p.group.first();
    if (!n.is(ops::group_norm_def)) {
        return std::nullopt;
    }
    const auto& a = n.as<ops::GroupNorm>();
    GroupShape s;
    s.x = p.operand(n.inputs[0]);
    s.scale = p.operand(n.inputs[1]);
    s.has_bias = n.inputs.size() > 2;
    s.bias = s.has_bias ? p.operand(n.inputs[2]) : s.scale;
    s.epsilon = a.epsilon;
    const View& x = s.x.view;
    const View& y = p.out[0].view;
    if (x.shape.size() < 3 || x.shape[1] < 2 || x.count() == 0) {
        return std::nullopt;
    }
    s.images = x.shape[0];
    s.channels = x.shape[1];
    s.groups = a.groups;
    s.pixels = x.count() / (s.images * s.channels);
    bool beside = x.strides[1] == 1 && y.strides[1] == 1;
    if (!beside || s.groups < 1 || s.channels % s.groups != 0 || s.pixels > INT32_MAX / 4 ||
        s.images > max_grid_y) {
        return std::nullopt;
    }
    std::array<int64_t, 2> drop{0, 1};
    std::vector<View> views{without_axes(x, drop), without_axes(y, drop)};
    for (const Operand& o : make_row_epilogue(p, 0).operands) {
        s.operands.push_back(plan::broadcasted(o.view, x.shape));
        views.push_back(without_axes(s.operands.back(), drop));
    }
    s.walk = make_nest(views, plan::stride_order(views[0]));
    s.vector = static_cast<int>(16 / std::max(bytes_of(s.x.dtype), bytes_of(p.out[0].dtype)));
    std::vector<int64_t> multiples{s.channels, x.offset, y.offset, x.strides[0], y.strides[0]};
    for (size_t axis = 0; axis < static_cast<size_t>(s.walk.axes); ++axis) {
        multiples.push_back(s.walk.arg.strides[0][axis]);
        multiples.push_back(s.walk.arg.strides[1][axis]);
    }
    for (int64_t m : multiples) {
        while (m % s.vector != 0) {
            s.vector /= 2;
        }
    }
    return s;
}

} // namespace ingot::kernels
