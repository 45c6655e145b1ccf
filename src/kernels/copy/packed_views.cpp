// SPDX-License-Identifier: Apache-2.0
// View ops of packed types: their elements cannot be addressed one by one, so a thread makes one
// byte of a dense result.
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
    Launch l;
    std::string params = str("u8* y, const u8* x, ", index.type(), " n, i64 first", index.params());
    l.args.pointer(y);
    int64_t first = from->view.offset;
    from->view.offset = 0;
    l.args.pointer(*from);
    if (n >= most) {
        l.args.i64(n);
    } else {
        l.args.i32(n);
    }
    l.args.i64(first);
    index.add(l.args);
    std::vector<std::string> x;
    std::vector<std::string> strides;
    for (size_t k = 0; k < y.view.shape.size(); ++k) {
        x.push_back(str("x", k));
        strides.push_back(str("s", k));
        append(params, str(", i64 s", k));
        l.args.i64(from->view.strides[k]);
    }
    l.program.uses = {"types", "math", "strided"};
    l.program.body = str("KERNEL void __launch_bounds__(256) packed_view(", params,
                         ") {\ngrid_wait();\nconst ", index.type(), " b = (", index.type(),
                         ")blockIdx.x * 256u + threadIdx.x;\nif (b * 2 >= n) return;\nu32 byte = "
                         "0;\n#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
                         index.type(), " i = b * 2 + k;\nif (i < n) {\n", index.split("i"),
                         "byte |= (u32)load_nibble<U4>(x, first + ", offset_text("i64", x, strides),
                         ").bits << (4 * k);\n}\n}\ngrid_release();\ny[b] = (u8)byte;\n}\n");
    l.entry = "packed_view";
    l.grid = {blocks_for((n + 1) / 2), 1, 1};
    out.launches.push_back(std::move(l));
    return out;
}

} // namespace ingot::kernels
