// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/ties.h"

#include "ops/ops.h"
#include "ops/primitives.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ingot {

namespace {

struct Chooser {
    Value scores;
    int64_t axis = 0;
};

std::optional<Chooser> chooser(const Graph& g, Value indices) {
    const Node* n = g.producer(indices);
    bool second = g.output_index(indices) == 1;
    if (n->is(arg_reduce_def)) {
        return Chooser{n->inputs[0], n->as<ArgReduce>().axis};
    }
    if (n->is(ops::topk_def) && second) {
        return Chooser{n->inputs[0], n->as<ops::TopK>().axis};
    }
    if (n->is(sort_def) && second) {
        return Chooser{n->inputs[0], n->as<Sort>().axis};
    }
    return std::nullopt;
}

/// Looks through reshapes and conversions, whose elements are those of their operand.
std::optional<Choice> choice_behind(const Graph& g, size_t output) {
    Value v = g.outputs()[output];
    while (is_integer(g.type(v).dtype)) {
        const Node* n = g.producer(v);
        if (n == nullptr) {
            return std::nullopt;
        }
        if (std::optional<Chooser> c = chooser(g, v)) {
            int64_t rank = g.type(c->scores).rank();
            return Choice{output, v, c->scores, c->axis < 0 ? c->axis + rank : c->axis};
        }
        bool one = n->is(reshape_def) || (n->is(map_def) && n->inputs.size() == 1);
        if (!one) {
            return std::nullopt;
        }
        v = n->inputs[0];
    }
    return std::nullopt;
}

/// Outputs as rows: those whose leading sizes are the sizes of the scores.
class Rows {
public:
    Rows(std::span<const ComparedOutput> all, const ComparedOutput& scores, double atol,
         double rtol)
        : scores_(scores), atol_(atol), rtol_(rtol) {
        const Shape& s = scores.ours->shape();
        for (const ComparedOutput& o : all) {
            const Shape& shape = o.ours->shape();
            bool fits = o.ours->shape() == o.reference->shape() && shape.size() >= s.size() &&
                        std::equal(s.begin(), s.end(), shape.begin());
            if (fits) {
                members_.push_back(o);
            }
        }
        count_ = s.empty() ? 0 : s.back();
    }

    /// The number of elements that only changed order; nullopt when the outputs differ otherwise.
    std::optional<int64_t> reordered() const {
        int64_t rows = scores_.ours->count();
        double slack = 2 * scores_.difference->max_absolute;
        int64_t moved = 0;
        for (int64_t first = 0; first < rows;) {
            int64_t end = first + 1;
            int64_t last_of_slice = first - first % count_ + count_;
            while (end < last_of_slice &&
                   std::fabs(reference_score(end) - reference_score(end - 1)) <= slack) {
                ++end;
            }
            std::optional<int64_t> here = matched(first, end);
            if (!here) {
                return std::nullopt;
            }
            moved += *here;
            first = end;
        }
        return moved;
    }
    const std::vector<ComparedOutput>& members() const { return members_; }
    bool worth() const {
        return count_ > 1 && std::any_of(members_.begin(), members_.end(),
                                         [](const auto& m) { return !m.difference->within; });
    }

private:
    double reference_score(int64_t row) const { return scores_.reference->get_f64(row); }

    bool same_row(int64_t ours, int64_t reference) const {
        for (const ComparedOutput& m : members_) {
            int64_t width = m.ours->count() / scores_.ours->count();
            double limit = atol_ + rtol_ * m.difference->range;
            for (int64_t k = 0; k < width; ++k) {
                double a = m.ours->get_f64(ours * width + k);
                double b = m.reference->get_f64(reference * width + k);
                if (is_mismatch(a, b) || (a != b && !(std::fabs(a - b) <= limit))) {
                    return false;
                }
            }
        }
        return true;
    }
    /// The number of rows in [first, end) that moved, provided each one is a row of the reference
    /// there.
    std::optional<int64_t> matched(int64_t first, int64_t end) const {
        std::vector<bool> used(static_cast<size_t>(end - first), false);
        int64_t moved = 0;
        for (int64_t i = first; i < end; ++i) {
            int64_t found = used[static_cast<size_t>(i - first)] || !same_row(i, i) ? end : i;
            for (int64_t j = first; j < end && found == end; ++j) {
                found = !used[static_cast<size_t>(j - first)] && same_row(i, j) ? j : end;
            }
            if (found == end) {
                return std::nullopt;
            }
            used[static_cast<size_t>(found - first)] = true;
            moved += found == i ? 0 : 1;
        }
        return moved;
    }

    const ComparedOutput& scores_;
    double atol_;
    double rtol_;
    std::vector<ComparedOutput> members_;
    int64_t count_ = 0; // rows along the last axis of the scores
};

} // namespace

std::vector<Choice> choices(const Graph& g) {
    std::vector<Choice> out;
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        if (std::optional<Choice> c = choice_behind(g, i)) {
            out.push_back(*c);
        }
    }
    return out;
}

std::optional<int64_t> tied_choices(const Tensor& ours, const Tensor& reference,
                                    const Tensor& scores, int64_t axis, double slack) {
    int64_t size = scores.shape()[static_cast<size_t>(axis)];
    int64_t inner = 1;
    for (size_t i = static_cast<size_t>(axis) + 1; i < scores.shape().size(); ++i) {
        inner *= scores.shape()[i];
    }
    int64_t outer = size * inner == 0 ? 0 : scores.count() / (size * inner);
    int64_t chosen = outer * inner == 0 ? 0 : ours.count() / (outer * inner);
    int64_t tied = 0;
    for (int64_t slice = 0; slice < outer * inner; ++slice) {
        int64_t o = slice / inner;
        int64_t i = slice % inner;
        std::set<int64_t> seen;
        for (int64_t k = 0; k < chosen; ++k) {
            int64_t at = (o * chosen + k) * inner + i;
            int64_t a = ours.get_i64(at);
            int64_t b = reference.get_i64(at);
            if (a < 0 || a >= size || !seen.insert(a).second) {
                return std::nullopt;
            }
            double apart = std::fabs(scores.get_f64((o * size + a) * inner + i) -
                                     scores.get_f64((o * size + b) * inner + i));
            if (a != b && !(apart <= slack)) {
                return std::nullopt;
            }
            tied += a == b ? 0 : 1;
        }
    }
    return tied;
}

void accept_reordered_rows(std::span<const ComparedOutput> outputs, double atol, double rtol) {
    for (const ComparedOutput& scores : outputs) {
        bool usable = scores.difference->within && is_float(scores.reference->dtype()) &&
                      scores.ours->rank() > 0 && scores.ours->count() > 0;
        if (!usable) {
            continue;
        }
        Rows rows(outputs, scores, atol, rtol);
        std::optional<int64_t> moved = rows.worth() ? rows.reordered() : std::nullopt;
        if (!moved) {
            continue;
        }
        for (const ComparedOutput& m : rows.members()) {
            m.difference->tied = m.difference->within ? 0 : *moved;
            m.difference->within = true;
        }
    }
}

} // namespace ingot
