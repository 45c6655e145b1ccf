// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/heads.h"

#include "base/error.h"
#include "base/integers.h"
#include "kernels/common/joined_launch.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// The range of a slice of the last axis; nullopt for other slices.
std::optional<std::pair<int64_t, int64_t>> range_of(const Graph& g, const Node& n) {
    const auto& s = n.as<Slice>();
    Dims sizes = g.type(n.inputs[0]).dims;
    if (sizes.empty() || !s.starts.back().is_const() || !s.sizes.back().is_const() ||
        std::ranges::any_of(s.steps, [](int64_t step) { return step != 1; })) {
        return std::nullopt;
    }
    Dims starts(sizes.size(), Dim(0));
    starts.back() = s.starts.back();
    sizes.back() = s.sizes.back();
    return s.starts == starts && s.sizes == sizes
               ? std::optional(std::pair(s.starts.back().value(), s.sizes.back().value()))
               : std::nullopt;
}

Dims without_ones(Dims dims) {
    std::erase_if(dims, [](const Dim& d) { return d.is_const(1); });
    return dims;
}

bool keeps_value(const Node& n) {
    const auto* m = n.is(map_def) ? &n.as<Map>() : nullptr;
    return m != nullptr && n.inputs.size() == 1 && m->body.code.size() == 1 &&
           m->body.code[0].op == ExprOp::In;
}

bool turns(const HeadPart& p) {
    return p.last->is(ops::rope_def);
}

bool turn_alike(const Node& a, const Node& b) {
    return a.inputs[1] == b.inputs[1] && a.inputs[2] == b.inputs[2] &&
           a.as<ops::Rope>().interleaved == b.as<ops::Rope>().interleaved;
}

/// Whether the moves are a reshape to `rows`, axes of size 1 aside, and permutes that keep the last
/// axis.
bool makes_rows(std::span<const Node* const> moves, const Dims& rows) {
    if (moves.empty() || !moves[0]->is(reshape_def)) {
        return false;
    }
    const Dims& dims = moves[0]->as<Reshape>().dims;
    return dims.back() == rows.back() && without_ones(dims) == without_ones(rows) &&
           std::ranges::all_of(moves.subspan(1), [](const Node* n) {
               return n->is(permute_def) &&
                      n->as<Permute>().perm.back() + 1 == std::ssize(n->as<Permute>().perm);
           });
}

bool begins_with_norm(const Group& g) {
    return g.first().is(ops::layer_norm_def);
}

} // namespace

HeadGroup::HeadGroup(const Group& whole)
    : whole_(whole), product_{whole.graph, {}, whole.inputs, {}} {
    reason_ = read();
}

const HeadPart& HeadGroup::turned() const {
    return *std::ranges::find_if(parts_, turns);
}

std::optional<std::string> HeadGroup::read() {
    size_t at = begins_with_norm(whole_) ? 2 : 1;
    if (whole_.nodes.size() <= at || whole_.nodes[at - 1].outputs.size() != 1) {
        return "no heads behind a product";
    }
    outputs_ = {whole_.nodes[at - 1].outputs[0]};
    product_.nodes = whole_.nodes.first(at);
    product_.outputs = outputs_;
    constexpr size_t most_parts = 4; // of store_heads.cuh
    while (at < whole_.nodes.size()) {
        if (parts_.size() == most_parts) {
            return "more than four ranges of heads";
        }
        if (auto reason = read_part(at)) {
            return reason;
        }
    }
    if (whole_.outputs.size() != parts_.size()) {
        return "a result that is no head";
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
        if (whole_.outputs[i] != parts_[i].last->outputs[0]) {
            return "a result that is no head";
        }
    }
    return count_heads();
}

/// The nodes of a part from `at` on, which then is behind them.
std::optional<std::string> HeadGroup::read_part(size_t& at) {
    const std::span<const Node> nodes = whole_.nodes;
    HeadPart part;
    part.slice = &nodes[at];
    Value v = part.slice->outputs[0];
    if (!part.slice->is(slice_def) || part.slice->inputs[0] != outputs_[0]) {
        return "a node that takes no columns of the product";
    }
    for (++at; at < nodes.size() && (nodes[at].is(reshape_def) || nodes[at].is(permute_def)) &&
               nodes[at].inputs[0] == v;
         ++at) {
        part.moves.push_back(&nodes[at]);
        v = nodes[at].outputs[0];
    }
    bool ends = at < nodes.size() && nodes[at].inputs[0] == v &&
                (nodes[at].is(ops::rope_def) || keeps_value(nodes[at]));
    if (!ends) {
        return "columns that neither a rope nor a copy ends";
    }
    part.last = &nodes[at++];
    parts_.push_back(std::move(part));
    return std::nullopt;
}

std::optional<std::string> HeadGroup::count_heads() {
    const Graph& g = whole_.graph;
    auto at = std::ranges::find_if(parts_, turns);
    if (at == parts_.end()) {
        return "no rope";
    }
    const Node& rope = *at->last;
    const Dims& columns = g.type(outputs_[0]).dims;
    std::optional<int64_t> width = g.type(rope.outputs[0]).dims.back().as_const();
    if (!width || *width == 0) {
        return "heads of unknown size";
    }
    width_ = *width;
    int64_t end = 0;
    for (HeadPart& p : parts_) {
        auto range = range_of(g, *p.slice);
        if (!range || range->first != end || range->second % width_ != 0) {
            return "parts that are not whole heads, one after the other";
        }
        p.first = end / width_;
        p.count = range->second / width_;
        end += range->second;
        if (turns(p) && !turn_alike(*p.last, rope)) {
            return "ropes by different angles";
        }
        Dims rows(columns.begin(), columns.end() - 1);
        rows.emplace_back(p.count);
        rows.emplace_back(width_);
        if (!makes_rows(p.moves, rows)) {
            return "columns that are not reshaped into rows of heads";
        }
    }
    return columns.back().is_const(end) ? std::nullopt
                                        : std::optional<std::string>("columns that are no heads");
}

namespace {

Shape shape_of(const Problem& p, Value v) {
    return eval(p.group.graph.type(v).dims, p.symbols);
}

/// A view of a part's result, or of what broadcasts to it but for the last axis, as rows of heads.
View by_head(View v, const HeadPart& part, const Shape& columns) {
    for (size_t i = part.moves.size(); i-- > 1;) {
        const std::vector<int64_t>& perm = part.moves[i]->as<Permute>().perm;
        std::vector<int64_t> inverse(perm.size());
        for (size_t a = 0; a < perm.size(); ++a) {
            inverse[static_cast<size_t>(perm[a])] = static_cast<int64_t>(a);
        }
        v = plan::permuted(v, inverse);
    }
    Shape shape = columns;
    shape.back() = part.count;
    shape.push_back(v.shape.back());
    std::optional<View> rows = plan::reshaped(v, shape);
    CHECK(rows, "a view of heads that differs from their rows by more than axes of size 1");
    return *rows;
}

/// The columns of a part of the product's result, as `last` reads them.
Operand moved(const Operand& columns, const HeadPart& part, const Problem& p) {
    Operand o = columns;
    Shape starts(o.view.shape.size(), 0);
    starts.back() = part.slice->as<Slice>().starts.back().value();
    Shape sizes = o.view.shape;
    sizes.back() = part.slice->as<Slice>().sizes.back().value();
    o.view = plan::sliced(o.view, starts, sizes, Shape(sizes.size(), 1));
    for (const Node* n : part.moves) {
        if (n->is(permute_def)) {
            o.view = plan::permuted(o.view, n->as<Permute>().perm);
            continue;
        }
        std::optional<View> v = plan::reshaped(o.view, shape_of(p, n->outputs[0]));
        CHECK(v, "heads that are no view of the columns");
        o.view = *v;
    }
    return o;
}

/// The views that a contraction of heads walks, each as rows of heads: the first part's result,
/// cosines, sines, the other parts' results.
std::vector<View> head_views(const Problem& p, const HeadGroup& h, const Shape& columns) {
    std::vector<View> views;
    for (size_t i = 0; i < h.parts().size(); ++i) {
        views.push_back(by_head(p.out[i].view, h.parts()[i], columns));
    }
    const HeadPart& turned = h.turned();
    Shape half = shape_of(p, turned.last->outputs[0]);
    half.back() /= 2;
    for (size_t i : {2, 1}) {
        View angles = plan::broadcasted(p.operand(turned.last->inputs[i]).view, half);
        views.insert(views.begin() + 1, by_head(angles, turned, columns));
    }
    return views;
}

/// Rows as a walks them, with the strides of all views, and one more that stays.
void set_rows(Contraction& c, const std::vector<View>& views) {
    const View& a = c.a.view;
    c.rows = {};
    c.rows.sizes.assign(a.shape.begin(), a.shape.end() - 1);
    c.rows.a.assign(a.strides.begin(), a.strides.end() - 1);
    c.rows.b.assign(c.rows.sizes.size(), 0);
    for (const View& v : views) {
        c.rows.stored.emplace_back(v.strides.begin(), v.strides.end() - 2);
    }
    c.rows.stored.emplace_back(c.rows.sizes.size(), 0);
    fill(c.rows, views.size() + 1);
    merge(c.rows);
}

/// Heads, pairs and the elements of a pair. The last view counts heads.
void set_columns(Contraction& c, const HeadGroup& h, const std::vector<View>& views) {
    bool interleaved = h.turned().last->as<ops::Rope>().interleaved;
    int64_t step = c.columns.b[0];
    int64_t pairs = h.width() / 2;
    c.columns = {};
    c.columns.sizes = {h.parts().back().first + h.parts().back().count, pairs, 2};
    c.columns.a = {0, 0, 0};
    c.columns.b = {h.width() * step, interleaved ? 2 * step : step,
                   interleaved ? step : pairs * step};
    for (size_t v = 0; v < views.size(); ++v) {
        const Shape& s = views[v].strides;
        int64_t element = s.back() * (interleaved && v != 1 && v != 2 ? 2 : 1);
        c.columns.stored.push_back({s.rbegin()[1], element, 0});
    }
    c.columns.stored.push_back({1, 0, 0});
}

std::optional<Contraction> with_heads(Contraction c, const Problem& p, const HeadGroup& h) {
    bool plain = c.batches() == 1 && c.columns.rank() == 1 && c.epilogue.operands.empty() &&
                 c.a.view.rank() > 0 && c.k() == c.a.view.shape.back() && !c.empty();
    std::vector<View> views = head_views(p, h, shape_of(p, h.product().outputs[0]));
    const Node& rope = *h.turned().last;
    DType angles = p.operand(rope.inputs[1]).dtype;
    for (size_t i : {1, 2}) {
        plain = plain && (views[i].shape.rbegin()[1] == 1 || views[i].strides.rbegin()[1] == 0);
        views[i].strides.rbegin()[1] = 0;
    }
    if (!plain || angles != p.operand(rope.inputs[2]).dtype) {
        return std::nullopt;
    }
    HeadStore heads;
    heads.pairs = h.width() / 2;
    heads.interleaved = rope.as<ops::Rope>().interleaved;
    for (size_t i = 0; i < h.parts().size(); ++i) {
        const HeadPart& part = h.parts()[i];
        const Shape& s = views[i == 0 ? 0 : i + 2].strides;
        heads.parts.push_back({p.out[i], part.first, s.rbegin()[1],
                               s.back() * (heads.interleaved ? 1 : heads.pairs), turns(part)});
    }
    set_rows(c, views);
    set_columns(c, h, views);
    c.batch = {};
    fill(c.batch, views.size() + 1);
    c.out = p.out[0];
    c.epilogue.sums = 2;
    c.epilogue.operands = {p.operand(rope.inputs[1]), p.operand(rope.inputs[2])};
    c.heads = std::move(heads);
    return c;
}

/// Prefix of tactics whose products leave their columns to further launches.
constexpr std::string_view apart_prefix = "apart_";
constexpr int64_t scratch_step = 256;

/// The columns of the product, in scratch memory.
Operand columns_of(const Problem& p, const HeadGroup& h, int64_t bytes_before) {
    Value x = h.product().outputs[0];
    Operand o{p.group.graph.type(x).dtype, in_scratch, plan::dense(shape_of(p, x))};
    o.view.offset = bytes_before * 8 / bit_width(o.dtype);
    return o;
}

Problem product_problem(const Problem& p, const HeadGroup& h, const Operand& columns) {
    return {h.product(), p.symbols, p.in,   std::span(&columns, 1),
            p.constants, p.arch,    p.tf32, p.batch_invariant};
}

/// The rope or copy of a part.
struct Apart {
    Emitted emitted;
    double cost_us = 0;

    Apart(const Problem& p, const HeadPart& part, size_t result, const Operand& columns) {
        std::vector<Operand> in;
        std::vector<const std::byte*> constants(part.last->inputs.size(), nullptr);
        for (Value v : part.last->inputs) {
            bool outside = p.group.input_index(v) >= 0;
            in.push_back(outside ? p.operand(v) : moved(columns, part, p));
        }
        Group group{p.group.graph, std::span(part.last, 1), part.last->inputs, part.last->outputs};
        Problem own{group,     p.symbols, in,     p.out.subspan(result, 1),
                    constants, p.arch,    p.tf32, p.batch_invariant};
        const Family& family = family_of(part.last->def->name);
        Tactic t = family.tactics(own).front();
        cost_us = t.cost_us;
        emitted = family.emit(own, t);
        CHECK(emitted.scratch == 0, "a rope or a copy needs memory of its own");
    }
};

/// The launches joined, where they are small.
std::vector<Launch> as_one(std::vector<Launch> parts, const Arch& arch) {
    int64_t blocks = 0;
    bool join = parts.size() > 1;
    std::vector<const Launch*> all;
    for (const Launch& l : parts) {
        join = join && can_join(l, true);
        blocks += l.grid[0];
        all.push_back(&l);
    }
    return join && blocks <= most_joined_blocks(arch) ? std::vector{joined(all)} : std::move(parts);
}

Emitted emit_apart(const Problem& p, const HeadGroup& h, const Tactic& t, const HeadsProduct& f) {
    // The product's own scratch memory comes first.
    int64_t before = 0;
    Emitted out;
    for (int i = 0; i < 2; ++i) {
        Operand columns = columns_of(p, h, before);
        out = emit_with_norm(product_problem(p, h, columns), t, f.product);
        if (out.scratch <= before) {
            break;
        }
        before = round_up(out.scratch, scratch_step);
    }
    Operand columns = columns_of(p, h, before);
    std::vector<Launch> last;
    for (size_t i = 0; i < h.parts().size(); ++i) {
        std::vector<Launch> more = Apart(p, h.parts()[i], i, columns).emitted.launches;
        std::ranges::move(more, std::back_inserter(last));
    }
    std::ranges::move(as_one(std::move(last), p.arch), std::back_inserter(out.launches));
    out.scratch = before + div_up(columns.view.count() * bit_width(columns.dtype), 8);
    return out;
}

/// Calls `f` with the product and its norm, or null, for a product that normalises its rows itself.
void inside(const Problem& p, const HeadGroup& h,
            const std::function<void(const Problem& product, const RowNorm* norm)>& f) {
    Operand columns = columns_of(p, h, 0);
    Problem product = product_problem(p, h, columns);
    if (has_norm(h.product())) {
        before_norm(product, [&f](const Problem& own, const RowNorm& norm) { f(own, &norm); });
    } else {
        f(product, nullptr);
    }
}

} // namespace

std::optional<std::string> refuse_heads(const Group& group, const HeadsProduct& f) {
    HeadGroup h(group);
    if (h.reason()) {
        return h.reason();
    }
    for (const HeadPart& part : h.parts()) {
        Group last{group.graph, std::span(part.last, 1), part.last->inputs, part.last->outputs};
        if (auto reason = family_of(part.last->def->name).refuse(last)) {
            return reason;
        }
    }
    DType type = group.graph.type(h.product().outputs[0]).dtype;
    return !is_float(type) || is_packed(type) ? std::optional<std::string>(str("columns of ", type))
                                              : refuse_with_norm(h.product(), f.product);
}

void layout_heads(LayoutArgs& args, const HeadsProduct& f) {
    HeadGroup h(args.group);
    Shape columns = eval(args.group.graph.type(h.product().outputs[0]).dims, args.symbols);
    Order order = plan::row_major(static_cast<int>(columns.size()));
    LayoutArgs own{h.product(), args.symbols,        args.in, std::span(&columns, 1),
                   args.want,   std::span(&order, 1)};
    layout_with_norm(own, f.product);
}

std::vector<Tactic> heads_tactics(const Problem& p, const HeadsProduct& f) {
    HeadGroup h(p.group);
    Operand columns = columns_of(p, h, 0);
    std::vector<Tactic> all = tactics_with_norm(product_problem(p, h, columns), f.product);
    double apart_us = 0;
    for (size_t i = 0; i < h.parts().size(); ++i) {
        apart_us += Apart(p, h.parts()[i], i, columns).cost_us;
    }
    for (Tactic& t : all) {
        t.name.insert(0, apart_prefix);
        t.cost_us += apart_us;
    }
    if (!p.batch_invariant) {
        inside(p, h, [&](const Problem& product, const RowNorm* norm) {
            f.add_inside(all, product, norm,
                         [&](Contraction c) { return with_heads(std::move(c), p, h); });
        });
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    return all;
}

Emitted emit_heads(const Problem& p, const Tactic& t, const HeadsProduct& f) {
    HeadGroup h(p.group);
    if (t.name.starts_with(apart_prefix)) {
        return emit_apart(p, h, t, f);
    }
    Emitted e;
    inside(p, h, [&](const Problem& product, const RowNorm* norm) {
        e = f.emit_inside(
            product, norm, [&](Contraction c) { return with_heads(std::move(c), p, h); }, t);
    });
    return e;
}

} // namespace ingot::kernels
