// SPDX-License-Identifier: Apache-2.0
#include "ops/collective.h"

#include "base/error.h"
#include "ir/rewrite.h"
#include "ops/op_table.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace ingot {

namespace {

struct Operation {
    std::string_view name;
    bool reduces;
    bool has_root;
    bool cuts; // the input is split along axis 0
    int grows; // axis 0 of the result: 1 multiplied by the rank count, -1 divided by it
};

constexpr Operation operations[] = {
    {"all_reduce", true, false, false, 0},     {"reduce", true, true, false, 0},
    {"reduce_scatter", true, false, true, -1}, {"broadcast", false, true, false, 0},
    {"all_gather", false, false, false, 1},    {"gather", false, true, false, 1},
    {"scatter", false, true, true, -1},        {"all_to_all", false, false, true, 0},
};

const Operation* find(std::string_view name) {
    const auto* it = std::find_if(std::begin(operations), std::end(operations),
                                  [&](const Operation& o) { return o.name == name; });
    return it == std::end(operations) ? nullptr : it;
}

void ensure(bool condition, const auto&... text) {
    require(condition, ErrorCode::InvalidModel, "collective: ", text...);
}

bool can_reduce(DType t, std::string_view reduction) {
    if (t == DType::Bool) {
        return reduction == "min" || reduction == "max"; // all, any
    }
    switch (t) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::I64:
    case DType::I32:
    case DType::I8:
    case DType::U8:
        return true;
    default:
        return false;
    }
}

void check_ranks(const Collective& c, const Operation& o) {
    ensure(c.ranks >= 2 && c.ranks <= INT32_MAX, c.ranks, " ranks take part, expected 2 or more");
    if (!c.group.empty()) {
        ensure(static_cast<int64_t>(c.group.size()) == c.ranks, c.group.size(),
               " ranks in the group, and ", c.ranks, " take part");
        std::set<int64_t> distinct(c.group.begin(), c.group.end());
        ensure(distinct.size() == c.group.size() && *distinct.begin() >= 0 &&
                   *distinct.rbegin() <= INT32_MAX,
               "the group is ", c.group, ", expected ranks, each once");
    }
    if (o.has_root) {
        ensure(c.position(c.root) >= 0, "the root of ", o.name, " is rank ", c.root,
               ", expected one of ", c.group.empty() ? str("0 to ", c.ranks - 1) : str(c.group));
    } else {
        ensure(c.root == -1, o.name, " has no root, got rank ", c.root);
    }
}

std::vector<Type> infer(const Collective& c, std::span<const Type> in) {
    ensure(in.size() == 1, "got ", in.size(), " inputs, expected 1");
    const Operation* o = find(c.operation);
    ensure(o != nullptr, "'", c.operation, "' is not an operation");
    Type t = in[0];
    if (o->reduces) {
        constexpr std::string_view reductions[] = {"sum", "prod", "min", "max", "avg"};
        bool known = std::find(std::begin(reductions), std::end(reductions), c.reduction) !=
                     std::end(reductions);
        ensure(known, "'", c.reduction, "' is not a reduction");
        ensure(can_reduce(t.dtype, c.reduction), "the ", c.reduction, " of ", t,
               " over ranks does not exist, cast it");
    } else {
        ensure(c.reduction.empty(), o->name, " does not reduce, got '", c.reduction, "'");
    }
    check_ranks(c, *o);
    ensure(t.rank() > 0 || !(o->cuts || o->grows != 0), o->name, " works along axis 0 of ", t,
           ", which has none");
    if (o->cuts) {
        std::optional<int64_t> n = t.dims[0].as_const();
        ensure(!n || *n % c.ranks == 0, "axis 0 of ", t, " does not divide into ", c.ranks,
               " parts for ", o->name);
    }
    if (o->cuts || o->grows != 0) {
        Dims part = t.dims;
        part[0] = o->cuts ? floor_div(part[0], Dim(c.ranks)) : part[0];
        std::optional<int64_t> row = part.back().as_const();
        ensure(bit_width(t.dtype) >= 8 || (row && *row % 2 == 0), "parts of ", t,
               " may begin inside of a byte");
        t.dims[0] = o->grows > 0 ? t.dims[0] * Dim(c.ranks) : o->grows < 0 ? part[0] : t.dims[0];
    }
    return {t};
}

} // namespace

bool Collective::reduces() const {
    const Operation* o = find(operation);
    return o != nullptr && o->reduces;
}

bool Collective::has_root() const {
    const Operation* o = find(operation);
    return o != nullptr && o->has_root;
}

int64_t Collective::position(int64_t rank) const {
    if (group.empty()) {
        return rank >= 0 && rank < ranks ? rank : -1;
    }
    auto it = std::find(group.begin(), group.end(), rank);
    return it == group.end() ? -1 : it - group.begin();
}

const OpDef collective_def = [] {
    OpDef d = detail::base_def<Collective>("collective", {Rounding::Matters,
                                                          [](const Graph&, const Node& n) {
                                                              return n.as<Collective>().reduces()
                                                                         ? InHalf::Wide
                                                                         : InHalf::Narrow;
                                                          },
                                                          like_result});
    d.infer = [](const void* a, std::span<const Type> in) {
        return infer(*static_cast<const Collective*>(a), in);
    };
    return d;
}();

Value ops::collective(Graph& g, Collective c, Value x) {
    return c.ranks == 1 ? x : g.add1(collective_def, std::move(c), {x});
}

bool has_collectives(const Graph& g) {
    bool found = false;
    visit_nodes(g, [&](const Graph&, const Node& n) { found = found || n.is(collective_def); });
    return found;
}

void check_collectives(const Graph& g, const Rank& rank) {
    visit_nodes(g, [&](const Graph&, const Node& n) {
        if (!n.is(collective_def)) {
            return;
        }
        const auto& c = n.as<Collective>();
        if (c.group.empty()) {
            require(c.ranks == rank.ranks, ErrorCode::InvalidArgument, "node '", n.name,
                    "' exchanges data between ", c.ranks, " ranks, the communicator has ",
                    rank.ranks);
            return;
        }
        int64_t largest = *std::max_element(c.group.begin(), c.group.end());
        require(largest < rank.ranks, ErrorCode::InvalidArgument, "node '", n.name,
                "' exchanges data between ranks ", c.group, ", the communicator has ", rank.ranks);
        require(c.position(rank.rank) >= 0, ErrorCode::InvalidArgument, "node '", n.name,
                "' exchanges data between ranks ", c.group, ", and this is rank ", rank.rank,
                ": each rank needs an engine with its own group");
    });
}

extern const OpTable collective_ops;
static const OpDef* const list[] = {&collective_def};
const OpTable collective_ops = list;

} // namespace ingot
