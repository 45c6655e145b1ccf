// SPDX-License-Identifier: Apache-2.0
// The layer builders in the table.
#pragma once

#include "api/tensorrt/parser/layer_builders/layer_builder.h"

namespace ingot::api {

// window.cpp
nv::ILayer* build_conv(const NodeView& r);
nv::ILayer* build_conv_transpose(const NodeView& r);
nv::ILayer* build_pool(const NodeView& r);
nv::ILayer* build_global_pool(const NodeView& r);
nv::ILayer* build_resize(const NodeView& r);
nv::ILayer* build_upsample(const NodeView& r);
nv::ILayer* build_grid_sample(const NodeView& r);
// pointwise.cpp
nv::ILayer* build_activation(const NodeView& r);
nv::ILayer* build_clip(const NodeView& r);
nv::ILayer* build_prelu(const NodeView& r);
nv::ILayer* build_unary(const NodeView& r);
nv::ILayer* build_binary(const NodeView& r);
nv::ILayer* build_where(const NodeView& r);
nv::ILayer* build_cast(const NodeView& r);
nv::ILayer* build_identity(const NodeView& r);
// math.cpp
nv::ILayer* build_softmax(const NodeView& r);
nv::ILayer* build_reduce(const NodeView& r);
nv::ILayer* build_topk(const NodeView& r);
nv::ILayer* build_matmul(const NodeView& r);
nv::ILayer* build_gemm(const NodeView& r);
nv::ILayer* build_einsum(const NodeView& r);
nv::ILayer* build_cumsum(const NodeView& r);
// norm.cpp
nv::ILayer* build_lrn(const NodeView& r);
nv::ILayer* build_batch_norm(const NodeView& r);
nv::ILayer* build_instance_norm(const NodeView& r);
nv::ILayer* build_group_norm(const NodeView& r);
nv::ILayer* build_layer_norm(const NodeView& r);
// shape.cpp
nv::ILayer* build_constant(const NodeView& r);
nv::ILayer* build_concat(const NodeView& r);
nv::ILayer* build_reshape(const NodeView& r);
nv::ILayer* build_flatten(const NodeView& r);
nv::ILayer* build_transpose(const NodeView& r);
nv::ILayer* build_squeeze(const NodeView& r);
nv::ILayer* build_unsqueeze(const NodeView& r);
nv::ILayer* build_shape(const NodeView& r);
nv::ILayer* build_constant_of_shape(const NodeView& r);
nv::ILayer* build_range(const NodeView& r);
nv::ILayer* build_random(const NodeView& r);
// slice.cpp
nv::ILayer* build_slice(const NodeView& r);
nv::ILayer* build_split(const NodeView& r);
nv::ILayer* build_pad(const NodeView& r);
nv::ILayer* build_expand(const NodeView& r);
nv::ILayer* build_tile(const NodeView& r);
// index.cpp
nv::ILayer* build_gather(const NodeView& r);
nv::ILayer* build_gather_elements(const NodeView& r);
nv::ILayer* build_gather_nd(const NodeView& r);
nv::ILayer* build_scatter(const NodeView& r);
nv::ILayer* build_one_hot(const NodeView& r);
nv::ILayer* build_non_zero(const NodeView& r);
nv::ILayer* build_reverse_sequence(const NodeView& r);
nv::ILayer* build_tensor_scatter(const NodeView& r);
nv::ILayer* build_rotary(const NodeView& r);
nv::ILayer* build_quantize(const NodeView& r);
nv::ILayer* build_dequantize(const NodeView& r);

} // namespace ingot::api
