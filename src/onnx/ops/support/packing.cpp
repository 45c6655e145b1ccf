// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/packing.h"

#include "base/error.h"
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

Value token_places(ingot::Graph& g, Value token_offset, const Dim& tokens) {
    const Type t = g.type(token_offset);
    require(t.rank() == 2, ErrorCode::InvalidModel, "token_offset is ", t,
            ", expected [batch,sequence]");
    return ops::slice(g, ops::flatten(g, to_i64(g, token_offset)), 0, 0, tokens);
}

Value with_padding(ingot::Graph& g, Value x, Value token_offset) {
    const Type t = g.type(x);
    require(t.rank() == 2, ErrorCode::InvalidModel, "the rows of tokens are ", t,
            ", expected [tokens,hidden]");
    Value places = token_places(g, token_offset, t.dims[0]);
    const Dims d = ops::dims(g, token_offset);
    Value zeros = ops::full(g, t.dtype, {d[0] * d[1], t.dims[1]}, 0);
    Value y = ops::scatter(g, zeros, places, x, "none");
    return ops::reshape(g, y, {d[0], d[1], t.dims[1]});
}

Value without_padding(ingot::Graph& g, Value x, Value token_offset, const Dim& tokens) {
    const Dims d = ops::dims(g, x);
    Value rows = ops::reshape(g, x, {d[0] * d[1], d[2]});
    return ops::gather(g, rows, token_places(g, token_offset, tokens), 0);
}

} // namespace ingot::onnx
