// SPDX-License-Identifier: Apache-2.0
// fold_pads: a pad before a convolution or pooling becomes part of its own padding.
#include "passes/passes.h"
#include "passes/rules.h"

#include <cmath>

namespace ingot::passes {

namespace {

// The sizes and fill value of a constant pad over spatial axes only.
struct Border {
    Value x;
    Dims low;
    Dims high;
    double fill = 0;
};

std::optional<Border> border(Site& s) {
    const Node* p = s.producer(0, pad_def);
    if (p == nullptr || p->as<Pad>().mode != "constant") {
        return std::nullopt;
    }
    const Pad& a = p->as<Pad>();
    const Tensor* fill = s.g().constant(p->inputs[1]);
    if (fill == nullptr || a.low.size() < 3) {
        return std::nullopt;
    }
    for (size_t i = 0; i < 2; ++i) {
        if (!a.low[i].is_const(0) || !a.high[i].is_const(0)) {
            return std::nullopt;
        }
    }
    return Border{p->inputs[0], Dims(a.low.begin() + 2, a.low.end()),
                  Dims(a.high.begin() + 2, a.high.end()), fill->get_f64(0)};
}

void add_to(Dims& pads, const Dims& more) {
    for (size_t i = 0; i < pads.size(); ++i) {
        pads[i] = pads[i] + more[i];
    }
}

bool none(const Dims& pads) {
    for (const Dim& d : pads) {
        if (!d.is_const(0)) {
            return false;
        }
    }
    return true;
}

std::optional<Values> into_conv(Site& s) {
    auto b = border(s);
    if (!b || b->fill != 0) {
        return std::nullopt;
    }
    ops::Conv a = s.as<ops::Conv>();
    add_to(a.low, b->low);
    add_to(a.high, b->high);
    return Values{ops::conv(s.g(), a, b->x, s.in(1))};
}

std::optional<Values> into_pool(Site& s) {
    auto b = border(s);
    ops::Pool a = s.as<ops::Pool>();
    if (!b) {
        return std::nullopt;
    }
    bool max = a.fn == "max";
    bool counted = a.count_padding || (none(a.low) && none(a.high));
    if (max ? b->fill != -INFINITY : (b->fill != 0 || !counted)) {
        return std::nullopt;
    }
    add_to(a.low, b->low);
    add_to(a.high, b->high);
    a.count_padding = a.count_padding || !max;
    return Values{ops::pool(s.g(), a, b->x)};
}

} // namespace

const Pass fold_pads = {
    .name = "fold_pads",
    .summary = "make padding part of convolutions and pooling",
    .run =
        [](const Graph& g, const PassOptions&) {
            static const RuleRow rows[] = {{&ops::conv_def, into_conv},
                                           {&ops::pool_def, into_pool}};
            return apply_rules(g, Rules(rows));
        },
    .structural = true,
};

} // namespace ingot::passes
