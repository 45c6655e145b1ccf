// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/apart.h"

#include "base/error.h"
#include "base/integers.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace ingot::kernels {

namespace {

constexpr std::string_view prefix = "apart_";
constexpr int64_t scratch_step = 256;
/// In a replayed graph two launches take less than the sum of both. Measured: 60 pairs of DenseNet
/// that become one launch gain 18 us, where the sums say 110.
constexpr double overlap_us = 1.2;
/// The least that two launches of a chain take.
constexpr double least_us = 2.8;

/// Some nodes of a group as a problem of their own, with one result.
class Part {
public:
    /// `between`: the operand of the value that the first part hands to the second.
    Part(const Problem& p, std::span<const Node> nodes, Value between, const Operand& there)
        : p_(p), nodes_(nodes), outputs_(nodes.back().outputs.begin(), nodes.back().outputs.end()),
          out_(outputs_[0] == between ? there : p.out[0]) {
        for (const Node& n : nodes) {
            for (Value v : n.inputs) {
                add(v, between, there);
            }
        }
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    const Family& family() const { return family_of(nodes_.front().def->name); }
    Problem problem() const {
        return {group_,     p_.symbols, in_,     std::span(&out_, 1),
                constants_, p_.arch,    p_.tf32, p_.batch_invariant};
    }

private:
    const Problem& p_;
    std::span<const Node> nodes_;
    Values inputs_;
    Values outputs_;
    std::vector<Operand> in_;
    std::vector<const std::byte*> constants_;
    Operand out_;
    Group group_{p_.group.graph, nodes_, inputs_, outputs_};

    void add(Value v, Value between, const Operand& there) {
        bool known = std::count(inputs_.begin(), inputs_.end(), v) > 0;
        int given = p_.group.input_index(v);
        if (known || (given < 0 && v != between)) {
            return;
        }
        auto i = static_cast<size_t>(std::max(given, 0));
        inputs_.push_back(v);
        in_.push_back(given < 0 ? there : p_.in[i]);
        constants_.push_back(given < 0 ? nullptr : p_.constants[i]);
        group_.inputs = inputs_;
    }
};

/// The tensor between the parts, at `offset` bytes of scratch memory.
Operand between(const Problem& p, Value v, int64_t offset) {
    const Type& t = p.group.graph.type(v);
    Operand o{t.dtype, in_scratch,
              plan::dense(eval(t.dims, p.symbols), plan::channels_last(t.rank()))};
    o.view.offset = offset * 8 / bit_width(t.dtype);
    return o;
}

struct Parts {
    Value value; // the first part's result
    Operand there;
    Part first, second;
    Parts(const Problem& p, size_t count, int64_t offset)
        : value(p.group.nodes[count - 1].outputs[0]), there(between(p, value, offset)),
          first(p, p.group.nodes.first(count), value, there),
          second(p, p.group.nodes.subspan(count), value, there) {}
};

/// The first part's best launches without scratch memory of their own, and their cost.
struct First {
    Emitted emitted;
    double cost_us = 0;
};
std::optional<First> first_of(const Parts& parts) {
    Problem p = parts.first.problem();
    for (const Tactic& t : parts.first.family().tactics(p)) {
        Emitted e = parts.first.family().emit(p, t);
        if (e.scratch == 0) {
            return First{std::move(e), t.cost_us};
        }
    }
    return std::nullopt;
}

} // namespace

bool is_apart(const Tactic& t) {
    return t.name.starts_with(prefix);
}

std::vector<Tactic> with_apart(std::vector<Tactic> joined, const Problem& p, size_t count,
                               int64_t most_elements) {
    if (p.batch_invariant) {
        return joined;
    }
    Parts parts(p, count, 0);
    std::optional<First> first = first_of(parts);
    if (!first) {
        return joined;
    }
    if (parts.there.view.count() > most_elements) {
        joined.clear();
    }
    Tactic t = parts.second.family().tactics(parts.second.problem()).front();
    t.name.insert(0, prefix);
    t.cost_us = std::max(least_us, first->cost_us + t.cost_us - overlap_us);
    joined.push_back(std::move(t));
    std::stable_sort(joined.begin(), joined.end(), cheaper);
    return joined;
}

Emitted emit_apart(const Problem& p, size_t count, const Tactic& t) {
    // The second part's own scratch memory comes first.
    Parts alone(p, count, 0);
    int64_t before = alone.second.family().emit(alone.second.problem(), t).scratch;
    Parts parts(p, count, round_up(before, scratch_step));
    std::optional<First> first = first_of(parts);
    CHECK(first, t.name, " needs scratch memory for its first part");
    Emitted out = std::move(first->emitted);
    Emitted rest = parts.second.family().emit(parts.second.problem(), t);
    out.launches.insert(out.launches.end(), std::make_move_iterator(rest.launches.begin()),
                        std::make_move_iterator(rest.launches.end()));
    const View& view = parts.there.view;
    out.scratch = (view.offset + view.count()) * bit_width(parts.there.dtype) / 8;
    return out;
}

} // namespace ingot::kernels
