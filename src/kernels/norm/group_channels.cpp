// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm/group_channels.h"

#include "kernels/common/expr_text.h"
#include "kernels/reduce/rows.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr int64_t most_threads = 512;
constexpr int64_t most_groups = 1024;

/// `struct Channels` of group_channels.cuh.
struct ChannelsArg {
    int64_t x_image, x_pixel, y_image, y_pixel, scale_step, bias_step;
    int32_t channels, groups, pixels, part, vectors, rows;
};

struct GroupedChannels {
    Operand x, scale, bias;
    bool has_bias = false;
    double epsilon = 0;
    int64_t images = 0;
    int64_t parts = 1;
    int vector = 1;
    ChannelsArg arg{};

    bool wide() const { return x.dtype == DType::F64; }
    int64_t width() const { return wide() ? 8 : 4; }
    int64_t threads() const { return int64_t{arg.vectors} * arg.rows; }
};

/// The distance between pixels where all spatial axes are one; nullopt where they are not.
std::optional<std::array<int64_t, 2>> pixel_steps(const View& x, const View& y) {
    std::array<int64_t, 2> drop{0, 1};
    std::array views{without_axes(x, drop), without_axes(y, drop)};
    Nest n = make_nest(views, plan::stride_order(views[0]));
    if (n.axes != 1) {
        return std::nullopt;
    }
    return std::array{n.arg.strides[0][0], n.arg.strides[1][0]};
}

std::optional<GroupedChannels> grouped_channels(const Problem& p) {
    const Node& n = p.group.first();
    if (!n.is(ops::group_norm_def)) {
        return std::nullopt;
    }
    const auto& a = n.as<ops::GroupNorm>();
    GroupedChannels s;
    s.x = p.operand(n.inputs[0]);
    s.scale = p.operand(n.inputs[1]);
    s.has_bias = n.inputs.size() > 2;
    s.bias = s.has_bias ? p.operand(n.inputs[2]) : s.scale;
    s.epsilon = a.epsilon;
    const View& x = s.x.view;
    const View& y = p.out[0].view;
    int64_t channels = x.shape.size() > 2 ? x.shape[1] : 1;
    int64_t pixels = x.count() / std::max<int64_t>(1, x.shape[0] * channels);
    auto steps = pixel_steps(x, y);
    bool beside = channels > 1 && x.strides[1] == 1 && y.strides[1] == 1;
    if (!steps || !beside || a.groups < 1 || a.groups > most_groups || channels % a.groups != 0 ||
        pixels < 1 || pixels > INT32_MAX / 4 || !make_row_epilogue(p, 4).operands.empty()) {
        return std::nullopt;
    }
    DType out = y.strides.empty() ? s.x.dtype : p.out[0].dtype;
    int64_t widest = std::max(bytes_of(s.x.dtype), bytes_of(out));
    s.vector = static_cast<int>(std::min<int64_t>(16 / widest, 8));
    for (int64_t m :
         {channels, x.offset, y.offset, (*steps)[0], (*steps)[1], x.strides[0], y.strides[0]}) {
        while (m % s.vector != 0) {
            s.vector /= 2;
        }
    }
    int64_t vectors = channels / s.vector;
    if (bytes_of(s.x.dtype) * s.vector < 8 || vectors > most_threads) {
        return std::nullopt;
    }
    int64_t rows = std::min(most_threads / vectors, pixels);
    rows = std::max(rows, div_up(32, vectors)); // at least a warp
    s.images = x.shape[0];
    int64_t blocks = std::max<int64_t>(1, int64_t{2} * p.arch.sms / std::max<int64_t>(s.images, 1));
    int64_t part = std::max(4 * rows, div_up(pixels, blocks));
    s.parts = div_up(pixels, part);
    auto strided = [](const View& v) { return v.shape[0] == 1 ? 0 : v.strides[0]; };
    s.arg = {x.strides[0],
             (*steps)[0],
             y.strides[0],
             (*steps)[1],
             strided(s.scale.view),
             strided(s.bias.view),
             static_cast<int32_t>(channels),
             static_cast<int32_t>(a.groups),
             static_cast<int32_t>(pixels),
             static_cast<int32_t>(part),
             static_cast<int32_t>(vectors),
             static_cast<int32_t>(rows)};
    return s.images <= max_grid_y ? std::optional(s) : std::nullopt;
}

Launch launch_of(const Problem& p, const GroupedChannels& s, const char* entry, int phase) {
    Launch l;
    RowEpilogue e = make_row_epilogue(p, 4);
    Defines d;
    d.add("PHASE", phase).add("T", c_type(s.x.dtype)).add("C", s.wide() ? "double" : "float");
    d.add("V", s.vector);
    if (phase == 1) {
        d.add("S", c_type(s.scale.dtype)).add("B", c_type(s.bias.dtype));
    }
    l.program = {{"types", "math", "loops"}, d.text(), "group_channels", phase == 1 ? e.text : ""};
    l.entry = entry;
    l.block = static_cast<int>(s.threads());
    l.grid = {s.parts, s.images, 1};
    return l;
}

} // namespace

std::optional<Tactic> channels_tactic(const Problem& p) {
    std::optional<GroupedChannels> s = grouped_channels(p);
    if (!s) {
        return std::nullopt;
    }
    Tactic t;
    t.name = "channels";
    double bytes = static_cast<double>(s->x.view.count() * bytes_of(s->x.dtype));
    t.cost_us = 5 + 3 * bytes / (p.arch.dram_gbs * 1000);
    return t;
}

Emitted emit_channels(const Problem& p) {
    GroupedChannels s = *grouped_channels(p);
    Emitted out;
    if (s.images == 0) {
        return out;
    }
    int64_t stats = s.images * s.arg.groups * s.parts * 2 * s.width();
    out.scratch = stats;
    Launch first = launch_of(p, s, "group_stats", 0);
    first.shared = 2 * int64_t{s.arg.rows} * s.arg.channels * s.width();
    first.args.pointer(s.x).scratch(0).value(s.arg);
    out.launches.push_back(std::move(first));
    Launch last = launch_of(p, s, "group_apply", 1);
    last.shared = 2 * int64_t{s.arg.groups} * s.width();
    last.args.pointer(s.x).pointer(p.out[0]).pointer(s.scale);
    if (s.has_bias) {
        last.args.pointer(s.bias);
    } else {
        last.args.null();
    }
    last.args.scratch(0).value(s.arg);
    if (s.wide()) {
        last.args.f64(s.epsilon);
    } else {
        last.args.f32(s.epsilon);
    }
    out.launches.push_back(std::move(last));
    return out;
}

} // namespace ingot::kernels
