// SPDX-License-Identifier: Apache-2.0
// Family pool: maximum and average pooling over one to three spatial axes, any strides, with a map
// over the result. Channels-last inputs are read in vectors along the channels.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/combine.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// `struct Pool` of pool.cuh.
struct PoolArg {
    int64_t count;
    int64_t stride[max_views][5];
    int32_t channels, in[3], out[3], size[3], step[3], dilation[3], low[3], high[3], count_padding;
};

struct Pooling {
    PoolArg arg{};
    Operand x;
    RowEpilogue epilogue;
    bool average = false;
    bool channels_last = false;
    int vector = 1;
    int axes = 2;
    int views = 2;
};

int32_t small(int64_t v) {
    require(v >= INT32_MIN / 4 && v <= INT32_MAX / 4, ErrorCode::Unsupported,
            "pool over a size of ", v, ", at most 2^29 is supported");
    return static_cast<int32_t>(v);
}

void set_axes(PoolArg& a, const ops::Pool& pool, const Problem& p, const Shape& x,
              const Shape& out) {
    for (size_t d = 0; d < pool.sizes.size(); ++d) {
        a.in[d] = small(x[d + 2]);
        a.out[d] = small(out[d + 2]);
        a.size[d] = small(pool.sizes[d]);
        a.step[d] = small(pool.strides[d]);
        a.dilation[d] = small(pool.dilations[d]);
        a.low[d] = small(pool.low[d].eval(p.symbols));
        a.high[d] = small(pool.high[d].eval(p.symbols));
        int64_t extra = small(pool.extra[d].eval(p.symbols));
        int64_t span = int64_t{a.dilation[d]} * (a.size[d] - 1) + 1;
        int64_t padded = int64_t{a.in[d]} + a.low[d] + a.high[d] + extra;
        int64_t positions = padded < span ? 0 : (padded - span) / a.step[d] + 1;
        require(a.low[d] >= 0 && a.high[d] >= 0 && positions == a.out[d],
                ErrorCode::InvalidArgument, "pool of ", x, " along axis ", d + 2, ": a window of ",
                span, " over ", padded, " elements in steps of ", a.step[d], " has ", positions,
                " positions, expected ", a.out[d]);
    }
}

Pooling pooling_of(const Problem& p) {
    Pooling s;
    const Node& n = p.group.first();
    const auto& pool = n.as<ops::Pool>();
    s.x = p.operand(n.inputs[0]);
    s.average = pool.fn == "average";
    s.axes = static_cast<int>(pool.sizes.size());
    s.epilogue = make_row_epilogue(p, 2);
    const View& out = p.out[0].view;
    std::vector<View> views{s.x.view, out};
    for (const Operand& o : s.epilogue.operands) {
        views.push_back(plan::broadcasted(o.view, out.shape));
    }
    s.views = static_cast<int>(views.size());
    for (size_t v = 0; v < views.size(); ++v) {
        std::copy(views[v].strides.begin(), views[v].strides.end(), s.arg.stride[v]);
    }
    set_axes(s.arg, pool, p, s.x.view.shape, out.shape);
    s.arg.channels = small(out.shape[1]);
    s.arg.count_padding = pool.count_padding ? 1 : 0;
    s.channels_last = out.shape[1] > 1 && out.strides[1] == 1;
    if (s.channels_last && s.x.view.strides[1] == 1) {
        std::vector<int64_t> multiples{out.shape[1], out.offset};
        for (const View* v : {&views[0], &views[1]}) {
            for (size_t d = 0; d < v->strides.size(); ++d) {
                multiples.push_back(d == 1 ? 0 : v->strides[d]);
            }
        }
        s.vector = vector_width(s.x, multiples, 8);
    }
    s.arg.count = out.count() / s.vector;
    return s;
}

struct Direct : NoParameters {
    static constexpr std::string_view pattern = "direct";
};

std::vector<Tactic> tactics(const Problem& p) {
    Pooling s = pooling_of(p);
    double bytes = static_cast<double>(p.out[0].view.count() + s.x.view.count()) *
                   static_cast<double>(bytes_of(s.x.dtype));
    return {make_tactic(Direct{}, 2 + bytes / (p.arch.dram_gbs * 1000))};
}

/// PACKED of maxima.cuh: how maxima of two elements at a time are found; 0 where they are not.
int packed_maxima(const Pooling& s, const Arch& arch) {
    if (s.average || s.vector * bytes_of(s.x.dtype) % 4 != 0) {
        return 0;
    }
    bool bytes = arch.cc >= 90; // the instruction for two integers of 16 bits
    switch (s.x.dtype) {
    case DType::F16:
        return 1;
    case DType::BF16:
        return 2;
    case DType::I8:
        return bytes ? 3 : 0;
    case DType::U8:
        return bytes ? 4 : 0;
    default:
        return 0;
    }
}

/// The bytes of loads that a thread's registers have room for at once. One by one, bytes take more
/// of them when they are unpacked, bf16 when it is widened.
int64_t most_at_once_bytes(DType t, bool packed) {
    return packed ? 64 : bytes_of(t) == 1 ? 16 : t == DType::BF16 ? 32 : 64;
}

/// The window, where a thread can have the loads of some taps on the way at once: one after the
/// other each waits for the memory. A text of more taps would be long. Returns the taps, else 0.
int64_t add_window(Defines& d, const Pooling& s, bool packed) {
    constexpr int64_t most_taps = 25;
    constexpr int64_t most_at_once = 9;
    int64_t taps = 1;
    std::string sizes;
    for (int i = 0; i < s.axes; ++i) {
        taps = std::min(taps * s.arg.size[i], most_taps + 1);
        sizes += str(i > 0 ? ", " : "", s.arg.size[i]);
    }
    int64_t bytes = s.vector * bytes_of(s.x.dtype);
    if (taps < 1 || taps > most_taps) {
        d.add("TAPS", 0);
        return 0;
    }
    d.add("TAPS", taps).add("SIZES", str('{', sizes, '}'));
    d.add("AT_ONCE",
          std::min({taps, most_at_once,
                    std::max<int64_t>(most_at_once_bytes(s.x.dtype, packed) / bytes, 1)}));
    return taps;
}

Emitted emit(const Problem& p, const Tactic&) {
    Pooling s = pooling_of(p);
    Emitted out;
    if (s.arg.count == 0) {
        return out;
    }
    Launch l;
    Defines d;
    std::string_view fn = s.average ? "sum" : "max";
    d.add("T", c_type(s.x.dtype)).add("C", combine_type(s.x.dtype)).add("FN", combine_index(fn));
    d.add("IDENTITY", combine_identity(fn, s.x.dtype)).add("AVERAGE", s.average ? 1 : 0);
    d.add("CL", s.channels_last ? 1 : 0).add("V", s.vector).add("SR", s.axes);
    d.add("NV", s.views);
    int packed = packed_maxima(s, p.arch);
    packed = add_window(d, s, packed != 0) > 0 ? packed : 0;
    d.add("PACKED", packed);
    l.program = {{"types", "math", "combine"}, d.text(), "pool", s.epilogue.text};
    if (packed != 0) {
        l.program.uses.emplace_back("maxima");
    }
    l.entry = "pool";
    l.grid[0] = div_up(s.arg.count, 256);
    l.args.pointer(s.x).pointer(p.out[0]).value(s.arg);
    s.epilogue.pass(l.args);
    out.launches.push_back(std::move(l));
    return out;
}

std::optional<std::string> refuse(const Group& group) {
    size_t axes = group.first().as<ops::Pool>().sizes.size();
    if (axes < 1 || axes > 3) {
        return str("there are ", axes, " spatial axes");
    }
    return refuse_rows(group);
}

/// Operands in their own layouts; the result in the order of x.
void layout(LayoutArgs& args) {
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    if (auto order = plan::memory_order(args.in[x])) {
        args.order[0] = *order;
    }
}

const Family rows[] = {{.name = "pool",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true,
                        .takes_groups = true}};

} // namespace

extern const FamilyTable pool_families;
const FamilyTable pool_families = rows;

} // namespace ingot::kernels
