// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/reduce_rows.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::kernels {

Nest make_nest(std::span<const View> views, const Order& order) {
    plan::LoopNest loops = plan::merged_loops(views, order);
    require(loops.sizes.size() <= max_axes && views.size() <= max_views, ErrorCode::Unsupported,
            "a kernel over ", views.size(), " operands of ", loops.sizes.size(),
            " axes that do not merge, at most ", max_views, " and ", max_axes, " are supported");
    Nest n;
    n.axes = std::max<int>(1, static_cast<int>(loops.sizes.size()));
    n.views = static_cast<int>(views.size());
    n.arg.count = views.empty() ? 1 : views[0].count();
    for (size_t k = 0; k < max_axes; ++k) {
        n.arg.sizes[k] = k < loops.sizes.size() ? loops.sizes[k] : 1;
        for (size_t v = 0; v < max_views; ++v) {
            n.arg.strides[v][k] =
                k < loops.sizes.size() && v < views.size() ? loops.strides[v][k] : 0;
        }
    }
    return n;
}

InnerArg inner_of(const Nest& n) {
    InnerArg a;
    a.count = n.arg.count;
    std::copy_n(n.arg.sizes, max_axes, a.sizes);
    std::copy_n(n.arg.strides[0], max_axes, a.strides);
    return a;
}

namespace {

View select_axes(const View& v, std::span<const int64_t> axes, bool keep) {
    View out;
    out.offset = v.offset;
    for (size_t d = 0; d < v.shape.size(); ++d) {
        bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
        if (named == keep) {
            out.shape.push_back(v.shape[d]);
            out.strides.push_back(v.strides[d]);
        }
    }
    return out;
}

} // namespace

View without_axes(const View& v, std::span<const int64_t> axes) {
    return select_axes(v, axes, false);
}

View only_axes(const View& v, std::span<const int64_t> axes) {
    return select_axes(v, axes, true);
}

int vector_width(const Operand& o, std::span<const int64_t> multiples, int most) {
    int64_t n = std::min<int64_t>(16 / bytes_of(o.dtype), most);
    while (n > 1 &&
           (o.view.offset % n != 0 || std::any_of(multiples.begin(), multiples.end(),
                                                  [n](int64_t m) { return m % n != 0; }))) {
        n /= 2;
    }
    return static_cast<int>(n);
}

std::optional<std::string> refuse_rows(const Group& group) {
    std::optional<std::string> why = plan::refuse_packed(group);
    why = why ? why : plan::refuse_epilogue(group);
    const Node* map = plan::epilogue_of(group);
    return !why && map != nullptr && map->inputs.size() > 4
               ? "the map reads more than 3 operands besides"
               : why;
}

RowEpilogue make_row_epilogue(const Problem& p, int first, size_t main_index) {
    RowEpilogue e;
    const Graph& g = p.group.graph;
    Value main = p.group.nodes[main_index].outputs[0];
    DType from = g.type(main).dtype;
    DType to = g.type(p.group.outputs[0]).dtype;
    std::string params;
    std::string pass;
    ExprText body;
    body.result = "value";
    if (p.group.nodes.size() > main_index + 1) {
        e.map = &p.group.nodes[main_index + 1];
        std::vector<std::string> inputs;
        for (Value v : e.map->inputs) {
            if (v == main) {
                inputs.push_back(str("(", compute_c_type(from), ")value"));
                continue;
            }
            size_t k = e.operands.size();
            e.operands.push_back(p.operand(v));
            params += str(", const ", c_type(g.type(v).dtype), "* __restrict__ e", k);
            pass += str(", e", k);
            inputs.push_back(str("widen(e", k, "[at[", static_cast<size_t>(first) + k, "]])"));
        }
        body = expr_text(e.map->as<Map>().body, inputs, "v",
                         narrow_result(to) ? Functions::Fast : Functions::Precise);
    }
    e.text = str(device_files(body), "#define OUT ", c_type(to), "\n#define R ",
                 compute_c_type(from), "\n#define EPI_PARAMS ", params, "\n#define EPI_PASS ", pass,
                 "\nDEVICE OUT epilogue(R value, const i64* at EPI_PARAMS) {\n(void)at;\n",
                 body.statements, "return narrow<OUT>(", body.result, ");\n}\n");
    return e;
}

} // namespace ingot::kernels
