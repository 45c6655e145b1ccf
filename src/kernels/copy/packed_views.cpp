// SPDX-License-Identifier: Apache-2.0
// View ops of packed types: elements are not addressable one by one, so a thread makes one byte of
// a dense result.
#include "kernels/common/expr_text.h"
#include "kernels/copy/movement.h"
#include "kernels/pointwise/index_text.h"
#include "plan/views.h"

namespace ingot::kernels {

std::optional<std::string> refuse_packed_view(const Group& group) {
    if (group.nodes.size() != 1 || !is_packed(group.graph.type(group.outputs[0]).dtype)) {
        return "views of elements that stand alone need no kernel";
    }
    return std::nullopt;
}

Emitted emit_packed_view(const Problem& p, const Tactic&) {
    Emitted out;
    const Operand& y = p.out[0];
    const Node& node = p.group.first();
    int64_t n = y.view.count();
    if (n == 0) {
        return out;
    }
    std::optional<Operand> from = plan::find_view(*node.def)(
        node, p.in[0], p.group.graph.type(p.group.outputs[0]), p.symbols);
    require(from.has_value() && plan::is_dense(y.view) && y.view.offset % 2 == 0,
            ErrorCode::Unsupported, node.def->name, " of packed elements with strides ",
            p.in[0].view.strides);
    constexpr int64_t most = int64_t{1} << 30;
    IndexText index(y.view.shape, n >= most);
    Signature parameters(n >= most);
    parameters.pointer("u8*", "y", y);
    int64_t first = from->view.offset;
    from->view.offset = 0;
    parameters.pointer("const u8*", "x", *from).size("n", n).i64("first", first);
    index.add(parameters);
    std::vector<std::string> x;
    std::vector<std::string> strides;
    for (size_t k = 0; k < y.view.shape.size(); ++k) {
        x.push_back(str("x", k));
        strides.push_back(str("s", k));
        parameters.i64(strides.back(), from->view.strides[k]);
    }
    std::string text =
        str("grid_wait();\nconst ", index.type(), " b = (", index.type(), ")", block_number,
            " * 256u + threadIdx.x;\nif (b * 2 >= n) return;\nu32 byte = "
            "0;\n#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
            index.type(), " i = b * 2 + k;\nif (i < n) {\n", index.split("i"),
            "byte |= (u32)load_nibble<U4>(x, first + ", offset_text("i64", x, strides),
            ").bits << (4 * k);\n}\n}\nend_main_loop();\ny[b] = (u8)byte;\n");
    Launch l = std::move(parameters).launch("packed_view", std::move(text));
    l.grid = {blocks_for((n + 1) / 2), 1, 1};
    out.launches.push_back(std::move(l));
    return out;
}

} // namespace ingot::kernels
