// SPDX-License-Identifier: Apache-2.0
// Family reduce: reduce and arg_reduce over any axes of any strides, with a map over the result.
// Forms: "rows" (1, 32 or 256 threads a result), "columns" (the innermost kept axis is contiguous).
// With few results, blocks split the reduced axes and a second kernel combines their parts in a
// fixed order.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/unpacked.h"
#include "kernels/reduce/combine.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr int64_t block = 256;

struct Shape2 {
    Nest kept; // views: x, out, operands of the map
    Nest inner;
    Operand x;
    RowEpilogue epilogue;
    std::string fn;
    bool arg = false;
    bool last = false;
};

/// The index of the reduction in the group: after a cast of its operand, if there is one.
size_t main_index(const Group& group) {
    return group.nodes.size() > 1 && group.first().is(map_def) ? 1 : 0;
}

Shape2 shape_of(const Problem& p) {
    Shape2 s;
    size_t main = main_index(p.group);
    const Node& n = p.group.nodes[main];
    s.x = p.operand(p.group.first().inputs[0]);
    std::vector<int64_t> axes;
    if (n.is(arg_reduce_def)) {
        const auto& a = n.as<ArgReduce>();
        axes = {a.axis};
        s.fn = a.fn;
        s.arg = true;
        s.last = a.last;
    } else {
        const auto& a = n.as<Reduce>();
        axes = a.axes;
        s.fn = a.fn;
    }
    s.epilogue = make_row_epilogue(p, 2, main);
    View kept = without_axes(s.x.view, axes);
    std::vector<View> views{kept, p.out[0].view};
    for (const Operand& o : s.epilogue.operands) {
        views.push_back(plan::broadcasted(o.view, kept.shape));
    }
    s.kept = make_nest(views, plan::stride_order(kept));
    View inner = only_axes(s.x.view, axes);
    s.inner = make_nest(std::array{inner}, plan::stride_order(inner));
    return s;
}

/// Strides of x that a vector load along the contiguous axis of one nest must divide.
std::vector<int64_t> multiples(const Shape2& s, bool columns) {
    std::vector<int64_t> m;
    const Nest& along = columns ? s.kept : s.inner;
    const Nest& other = columns ? s.inner : s.kept;
    for (int k = 0; k + 1 < along.axes; ++k) {
        m.push_back(along.arg.strides[0][k]);
    }
    for (int k = 0; k < other.axes; ++k) {
        m.push_back(other.arg.strides[0][k]);
    }
    m.push_back(along.arg.sizes[along.axes - 1]);
    return m;
}

bool contiguous(const Nest& n) {
    return n.arg.strides[0][n.axes - 1] == 1 && n.arg.sizes[n.axes - 1] > 1;
}

struct ByRows : NoParameters {
    static constexpr std::string_view pattern = "rows";
};
struct ByColumns : NoParameters {
    static constexpr std::string_view pattern = "columns";
};

/// Threads per result, elements per load, and parts of the reduced axes, for either algorithm.
struct Choice {
    int threads = 1, vector = 1, splits = 1;
};

Choice choice_of(const Problem& p, const Shape2& s, bool columns) {
    int64_t rows = s.kept.arg.count;
    int64_t size = s.inner.arg.count;
    const Nest& along = columns ? s.kept : s.inner;
    int vector = contiguous(along) ? vector_width(s.x, multiples(s, columns)) : 1;
    vector = p.batch_invariant ? 1 : std::min(vector, s.arg ? 4 : 16);
    int64_t threads = columns ? 8 : size <= 16 ? 1 : size <= 2048 ? 32 : block;
    int64_t width = s.kept.arg.sizes[s.kept.axes - 1];
    int64_t blocks = columns
                         ? rows / std::max<int64_t>(width, 1) * div_up(width, int64_t{32} * vector)
                         : div_up(rows * threads, block);
    int64_t least = columns ? 64 : 4096;
    int64_t splits = 1;
    if (blocks < int64_t{2} * p.arch.sms && size >= 2 * least && !p.batch_invariant) {
        splits = std::min({div_up(int64_t{4} * p.arch.sms, std::max<int64_t>(blocks, 1)),
                           div_up(size, least), int64_t{1024}});
        threads = columns ? 8 : block;
    }
    return {static_cast<int>(threads), vector, static_cast<int>(splits)};
}

double cost_us(const Problem& p, const Shape2& s, bool columns) {
    double bytes = static_cast<double>(s.kept.arg.count) * static_cast<double>(s.inner.arg.count) *
                   static_cast<double>(bytes_of(s.x.dtype));
    return 2 + bytes / (p.arch.dram_gbs * 1000) + (choice_of(p, s, columns).splits > 1 ? 2 : 0);
}

std::vector<Tactic> tactics(const Problem& p) {
    Shape2 s = shape_of(p);
    std::vector<Tactic> list{make_tactic(ByRows{}, cost_us(p, s, false))};
    if (p.batch_invariant) {
        return list; // its order depends on the size of the reduced axes alone
    }
    if (contiguous(s.kept) && s.kept.arg.sizes[s.kept.axes - 1] >= 16) {
        list.push_back(make_tactic(ByColumns{}, cost_us(p, s, true)));
        if (!contiguous(s.inner)) {
            list[0].cost_us += list[0].cost_us;
            std::swap(list[0], list[1]);
        } else {
            list[1].cost_us += list[1].cost_us;
        }
    }
    return list;
}

std::string defines(const Shape2& s, int form, int threads, int vector) {
    Defines d;
    d.add("FORM", form).add("T", c_type(s.x.dtype)).add("C", combine_type(s.x.dtype));
    d.add("FN", combine_index(s.fn)).add("IDENTITY", combine_identity(s.fn, s.x.dtype));
    d.add("ARG", s.arg ? 1 : 0).add("LAST", s.last ? 1 : 0).add("G", threads).add("V", vector);
    d.add("KR", s.kept.axes).add("NV", s.kept.views).add("RR", s.inner.axes);
    return d.text();
}

Launch launch_of(const Shape2& s, const char* entry, int form, int threads, int vector) {
    Launch l;
    l.program = {{"types", "math", "loops", "combine"},
                 defines(s, form, threads, vector),
                 "reduce",
                 s.epilogue.text};
    l.entry = entry;
    l.block = static_cast<int>(block);
    return l;
}

Emitted emit(const Problem& p, const Tactic& t) {
    Shape2 s = shape_of(p);
    Emitted out;
    if (s.kept.arg.count == 0) {
        return out;
    }
    bool columns = t.is<ByColumns>();
    Choice c = choice_of(p, s, columns);
    int64_t splits = c.splits;
    int64_t unit = columns ? 8 : int64_t{c.threads} * c.vector;
    int64_t part = std::max<int64_t>(1, div_up(div_up(s.inner.arg.count, splits), unit)) * unit;
    splits = std::max<int64_t>(1, div_up(s.inner.arg.count, part));
    Launch l = launch_of(s, columns ? "reduce_columns" : "reduce_rows", columns ? 1 : 0,
                         columns ? 256 : c.threads, c.vector);
    int64_t width = s.kept.arg.sizes[s.kept.axes - 1];
    l.grid = {columns ? s.kept.arg.count / width * div_up(width, int64_t{32} * c.vector)
                      : div_up(s.kept.arg.count * c.threads, block),
              splits, 1};
    l.args.pointer(s.x).pointer(p.out[0]);
    if (splits > 1) {
        l.args.scratch(0);
    } else {
        l.args.null();
    }
    l.args.value(s.kept.arg).value(inner_of(s.inner)).i64(part);
    s.epilogue.pass(l.args);
    out.launches.push_back(std::move(l));
    if (splits > 1) {
        out.scratch = s.kept.arg.count * splits * 16;
        Launch f = launch_of(s, "reduce_parts", 2, 32, 1);
        f.grid = {div_up(s.kept.arg.count, 8), 1, 1};
        f.args.scratch(0).pointer(p.out[0]).value(s.kept.arg).i32(splits);
        s.epilogue.pass(f.args);
        out.launches.push_back(std::move(f));
    }
    return out;
}

/// Packed elements only without a map.
std::optional<std::string> refuse(const Group& group) {
    if (group.nodes.size() == 1) {
        return std::nullopt;
    }
    if (main_index(group) == 0) {
        return refuse_rows(group);
    }
    if (auto why = plan::refuse_packed(group)) {
        return why;
    }
    const Node& cast = group.first();
    const Node& main = group.nodes[1];
    if (cast.as<Map>().body.code.size() != 1 || main.inputs[0] != cast.outputs[0]) {
        return "the node before is not a cast of the operand";
    }
    return main.is(reduce_def)
               ? refuse_rows({group.graph, group.nodes.subspan(1), group.inputs, group.outputs})
               : std::optional<std::string>("only sums and the like read casts");
}

const Family rows[] = {
    {.name = "reduce",
     .refuse = refuse,
     .layout = plan::any_strides,
     .tactics = tactics_of_any<tactics>,
     .emit = emit_any<emit>,
     .strided_results = true,
     .takes_groups = true,
     .reads_casts = true},
    {.name = "arg_reduce",
     .refuse = refuse,
     .layout = plan::any_strides,
     .tactics = tactics_of_any<tactics>,
     .emit = emit_any<emit>,
     .strided_results = true,
     .takes_groups = true},
};

} // namespace

extern const FamilyTable reduce_families;
const FamilyTable reduce_families = rows;

} // namespace ingot::kernels
