// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm/group_channels.h"

#include "kernels/common/expr_text.h"
#include "kernels/norm/group_shape.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t most_threads = 512;
constexpr int64_t most_groups = 1024;
constexpr size_t most_axes = 3;  // of pixels
constexpr size_t most_views = 5; // x, the result and the map's operands

/// `struct Channels` of group_channels.cuh.
struct ChannelsArg {
    int64_t scale_step, bias_step;
    int64_t image[most_views], channel[most_views], pixel[most_views][most_axes];
    int64_t advance[most_views], carry[most_views][most_axes - 1];
    int32_t inner[most_axes - 1], step[most_axes - 1];
    int32_t channels, groups, pixels, part, vectors, rows, lanes;
};

struct GroupedChannels : GroupShape {
    int64_t parts = 1;
    ChannelsArg arg{};

    bool wide() const { return x.dtype == DType::F64; }
    int64_t width() const { return wide() ? 8 : 4; }
    int64_t threads() const { return int64_t{arg.vectors} * arg.rows; }
    /// Whether a thread's channels are of one group.
    bool folded() const { return size() % vector == 0; }
    /// Elements between two rows of statistics in shared memory.
    int64_t pitch() const { return (channels / (folded() ? vector : 1)) | 1; }
};

std::optional<GroupedChannels> grouped_channels(const Problem& p) {
    std::optional<GroupShape> shape = group_shape(p);
    if (!shape || shape->walk.axes > static_cast<int>(most_axes) ||
        shape->operands.size() + 2 > most_views) {
        return std::nullopt;
    }
    GroupedChannels s{*shape};
    s.vector = std::min(s.vector, 8);
    int64_t vectors = s.channels / s.vector;
    if (bytes_of(s.x.dtype) * s.vector < 8 || vectors > most_threads || s.groups > most_groups) {
        return std::nullopt;
    }
    int64_t rows = std::min(most_threads / vectors, s.pixels);
    rows = std::max(rows, div_up(32, vectors)); // at least a warp
    int64_t blocks = std::max<int64_t>(1, int64_t{2} * p.arch.sms / std::max<int64_t>(s.images, 1));
    int64_t part = std::max(4 * rows, div_up(s.pixels, blocks));
    s.parts = div_up(s.pixels, part);
    auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
    s.arg = {};
    s.arg.scale_step = s.scale_step();
    s.arg.bias_step = s.bias_step();
    std::vector<View> views{s.x.view, p.out[0].view};
    views.insert(views.end(), s.operands.begin(), s.operands.end());
    for (size_t v = 0; v < views.size(); ++v) {
        s.arg.image[v] = views[v].strides[0];
        s.arg.channel[v] = views[v].strides[1];
        std::copy_n(s.walk.arg.strides[v], most_axes, s.arg.pixel[v]);
    }
    int64_t ahead = rows; // along the axes so far
    for (size_t axis = most_axes - 1; axis > 0; --axis) {
        int64_t size = s.walk.arg.sizes[axis];
        bool used = static_cast<int>(axis) < s.walk.axes;
        s.arg.inner[axis - 1] = narrow(size);
        s.arg.step[axis - 1] = narrow(used ? ahead % size : 0);
        for (size_t v = 0; used && v < views.size(); ++v) {
            s.arg.advance[v] += ahead % size * s.arg.pixel[v][axis];
            s.arg.carry[v][axis - 1] = s.arg.pixel[v][axis - 1] - size * s.arg.pixel[v][axis];
        }
        ahead = used ? ahead / size : ahead;
    }
    for (size_t v = 0; v < views.size(); ++v) {
        s.arg.advance[v] += ahead * s.arg.pixel[v][0];
    }
    s.arg.channels = narrow(s.channels);
    s.arg.groups = narrow(s.groups);
    s.arg.pixels = narrow(s.pixels);
    s.arg.part = narrow(part);
    s.arg.vectors = narrow(vectors);
    s.arg.rows = narrow(rows);
    // At most two rounds of groups where there are threads for it: a round waits for its loads.
    s.arg.lanes = 32;
    while (s.arg.lanes > 1 && s.threads() / 32 * 32 / s.arg.lanes * 2 < s.groups) {
        s.arg.lanes /= 2;
    }
    return s;
}

Launch launch_of(const Problem& p, const GroupedChannels& s, const char* entry, int phase) {
    Launch l;
    RowEpilogue e = make_row_epilogue(p, 0);
    Defines d;
    d.add("AXES", s.walk.axes)
        .add("PHASE", phase)
        .add("T", c_type(s.x.dtype))
        .add("C", s.wide() ? "double" : "float");
    d.add("V", s.vector);
    if (phase == 0) {
        d.add("FOLDED", s.folded() ? 1 : 0);
    }
    if (phase == 1) {
        d.add("S", c_type(s.scale.dtype)).add("B", c_type(s.bias.dtype));
        d.add("NE", e.operands.size());
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
    double bytes = static_cast<double>(s->x.view.count() * bytes_of(s->x.dtype));
    return make_tactic(GroupChannels{}, 8 + 5 * bytes / (p.arch.dram_gbs * 1000));
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
    first.shared = 2 * int64_t{s.arg.rows} * s.pitch() * s.width();
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
    make_row_epilogue(p, 0).pass(last.args);
    out.launches.push_back(std::move(last));
    return out;
}

} // namespace ingot::kernels
