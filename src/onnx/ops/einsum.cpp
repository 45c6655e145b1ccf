// SPDX-License-Identifier: Apache-2.0
// Einsum: multiplies operands from left to right, each pair by one contraction; diagonals are a
// mask and a sum.
#include "base/error.h"
#include "onnx/importer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace ingot::onnx {

namespace {

// A letter is its code; axis i from the right of an ellipsis is -1 - i.
using Labels = std::vector<int>;

struct Operand {
    Value v;
    Labels labels;
};

bool contains(const Labels& l, int label) {
    return std::find(l.begin(), l.end(), label) != l.end();
}

int64_t position(const Labels& l, int label) {
    return std::find(l.begin(), l.end(), label) - l.begin();
}

void erase_at(Labels& l, int64_t at) {
    l.erase(l.begin() + at);
}

struct Equation {
    std::vector<std::string> terms;
    bool has_output = false;
    std::string output;
};

Equation split_equation(const NodeContext& c) {
    std::string text = c.s("equation", "");
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    Equation e;
    size_t arrow = text.find("->");
    e.has_output = arrow != std::string::npos;
    if (e.has_output) {
        e.output = text.substr(arrow + 2);
    }
    std::string left = text.substr(0, arrow);
    for (size_t from = 0; from <= left.size();) {
        size_t comma = std::min(left.find(',', from), left.size());
        e.terms.push_back(left.substr(from, comma - from));
        from = comma + 1;
    }
    c.ensure(static_cast<int>(e.terms.size()) == c.input_count(), "equation '", text, "' has ",
             e.terms.size(), " terms, the node ", c.input_count(), " inputs");
    return e;
}

// Labels of one term; an ellipsis expands to `ellipsis` axes.
Labels labels_of(const NodeContext& c, const std::string& term, int64_t ellipsis) {
    Labels out;
    for (size_t i = 0; i < term.size(); ++i) {
        if (term.compare(i, 3, "...") == 0) {
            for (int64_t k = ellipsis; k > 0; --k) {
                out.push_back(static_cast<int>(-k));
            }
            i += 2;
            continue;
        }
        c.ensure(std::isalpha(static_cast<unsigned char>(term[i])) != 0, "term '", term,
                 "' of the equation holds '", term[i], "', expected letters and one '...'");
        out.push_back(static_cast<unsigned char>(term[i]));
    }
    return out;
}

int64_t letter_count(const std::string& term) {
    return std::count_if(term.begin(), term.end(), [](char x) { return x != '.'; });
}

// For a repeated label: keeps the elements whose indices agree.
void take_diagonals(ingot::Graph& g, Operand& o) {
    for (size_t i = 0; i < o.labels.size(); ++i) {
        for (size_t k = i + 1; k < o.labels.size();) {
            if (o.labels[k] != o.labels[i]) {
                ++k;
                continue;
            }
            const Dims d = ops::dims(g, o.v);
            Dims row(d.size(), Dim(1));
            Dims column(d.size(), Dim(1));
            row[i] = d[i];
            column[k] = d[k];
            Value same = ops::equal(g, ops::iota(g, DType::I64, row, static_cast<int64_t>(i)),
                                    ops::iota(g, DType::I64, column, static_cast<int64_t>(k)));
            Value zero = ops::scalar(g, g.type(o.v).dtype, 0);
            o.v = ops::reduce_sum(g, ops::select(g, same, o.v, zero), {static_cast<int64_t>(k)});
            erase_at(o.labels, static_cast<int64_t>(k));
        }
    }
}

void sum_out(ingot::Graph& g, Operand& o, const Labels& needed) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < o.labels.size(); ++i) {
        if (contains(needed, o.labels[i])) {
            kept.push_back(o.labels[i]);
        } else {
            axes.push_back(static_cast<int64_t>(i));
        }
    }
    o.v = ops::reduce_sum(g, o.v, axes);
    o.labels = kept;
}

// Drops axes of size 1 that broadcast against the other operand's.
void drop_broadcast(ingot::Graph& g, Operand& o, const Operand& other) {
    for (int64_t i = static_cast<int64_t>(o.labels.size()) - 1; i >= 0; --i) {
        int label = o.labels[static_cast<size_t>(i)];
        if (!contains(other.labels, label)) {
            continue;
        }
        const Dim mine = ops::dims(g, o.v)[static_cast<size_t>(i)];
        const Dim theirs =
            ops::dims(g, other.v)[static_cast<size_t>(position(other.labels, label))];
        if (mine.is_const(1) && !theirs.is_const(1)) {
            o.v = ops::squeeze(g, o.v, {i});
            erase_at(o.labels, i);
        }
    }
}

// When two shared sizes may differ, one of them may be 1.
void equalise(ingot::Graph& g, Operand& a, Operand& b) {
    Dims da = ops::dims(g, a.v);
    Dims db = ops::dims(g, b.v);
    for (size_t i = 0; i < a.labels.size(); ++i) {
        if (!contains(b.labels, a.labels[i])) {
            continue;
        }
        auto k = static_cast<size_t>(position(b.labels, a.labels[i]));
        auto both = broadcast(da[i], db[k]);
        require(both.has_value(), ErrorCode::InvalidModel, "an axis that operands share has sizes ",
                da[i], " and ", db[k]);
        da[i] = *both;
        db[k] = *both;
    }
    a.v = ops::broadcast_to(g, a.v, da);
    b.v = ops::broadcast_to(g, b.v, db);
}

Value arranged(ingot::Graph& g, const Operand& o, const Labels& order) {
    std::vector<int64_t> perm;
    for (int label : order) {
        if (contains(o.labels, label)) {
            perm.push_back(position(o.labels, label));
        }
    }
    Value v = ops::permute(g, o.v, perm);
    std::vector<int64_t> missing;
    for (size_t i = 0; i < order.size(); ++i) {
        if (!contains(o.labels, order[i])) {
            missing.push_back(static_cast<int64_t>(i));
        }
    }
    return missing.empty() ? v : ops::unsqueeze(g, v, missing);
}

Operand multiply(ingot::Graph& g, Operand a, Operand b, const Labels& needed) {
    drop_broadcast(g, a, b);
    drop_broadcast(g, b, a);
    Labels needed_a = needed;
    needed_a.insert(needed_a.end(), b.labels.begin(), b.labels.end());
    sum_out(g, a, needed_a);
    Labels needed_b = needed;
    needed_b.insert(needed_b.end(), a.labels.begin(), a.labels.end());
    sum_out(g, b, needed_b);
    equalise(g, a, b);

    Dot d;
    d.dtype = g.type(a.v).dtype;
    Labels batch;
    Labels free;
    for (size_t i = 0; i < a.labels.size(); ++i) {
        int label = a.labels[i];
        auto at = static_cast<int64_t>(i);
        if (!contains(b.labels, label)) {
            free.push_back(label);
        } else if (contains(needed, label)) {
            batch.push_back(label);
            d.a_batch.push_back(at);
            d.b_batch.push_back(position(b.labels, label));
        } else {
            d.a_contract.push_back(at);
            d.b_contract.push_back(position(b.labels, label));
        }
    }
    for (int label : b.labels) {
        if (!contains(a.labels, label)) {
            free.push_back(label);
        }
    }
    Labels out = batch;
    out.insert(out.end(), free.begin(), free.end());
    if (d.a_contract.empty()) {
        return {ops::mul(g, arranged(g, a, out), arranged(g, b, out)), out};
    }
    return {ops::dot(g, d, a.v, b.v), out};
}

// Without "->": the ellipsis, then the letters that occur once, sorted.
Labels implicit_output(const std::vector<Operand>& operands, int64_t ellipsis) {
    std::map<int, int> seen;
    for (const Operand& o : operands) {
        for (int label : o.labels) {
            ++seen[label];
        }
    }
    Labels out;
    for (int64_t k = ellipsis; k > 0; --k) {
        out.push_back(static_cast<int>(-k));
    }
    for (const auto& entry : seen) {
        if (entry.first > 0 && entry.second == 1) {
            out.push_back(entry.first);
        }
    }
    return out;
}

Values einsum(NodeContext& c) {
    Equation e = split_equation(c);
    std::vector<Operand> operands;
    int64_t widest = 0;
    for (size_t i = 0; i < e.terms.size(); ++i) {
        int64_t rank = c.rank(static_cast<int>(i));
        int64_t letters = letter_count(e.terms[i]);
        bool open = e.terms[i].find("...") != std::string::npos;
        c.ensure(open ? letters <= rank : letters == rank, "term '", e.terms[i], "' names ",
                 letters, " axes of input ", i, ", which is ", c.type(static_cast<int>(i)));
        int64_t ellipsis = open ? rank - letters : 0;
        widest = std::max(widest, ellipsis);
        operands.push_back({c.in(static_cast<int>(i)), labels_of(c, e.terms[i], ellipsis)});
    }
    Labels output =
        e.has_output ? labels_of(c, e.output, widest) : implicit_output(operands, widest);
    for (Operand& o : operands) {
        take_diagonals(c.g, o);
    }
    Operand all = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) {
        Labels needed = output;
        for (size_t k = i + 1; k < operands.size(); ++k) {
            needed.insert(needed.end(), operands[k].labels.begin(), operands[k].labels.end());
        }
        all = multiply(c.g, all, operands[i], needed);
    }
    sum_out(c.g, all, output);
    for (int label : output) {
        c.ensure(contains(all.labels, label), "the equation's result names an axis '",
                 label > 0 ? std::string(1, static_cast<char>(label)) : std::string("..."),
                 "' that no operand has");
    }
    return {arranged(c.g, all, output)};
}

const ImporterRow rows[] = {{"", "Einsum", 12, einsum, no_shapes}};

} // namespace

extern const ImporterTable einsum_importers;
const ImporterTable einsum_importers = rows;

} // namespace ingot::onnx
