// SPDX-License-Identifier: Apache-2.0
// The layer builders in the table.
#pragma once

#include "api/tensorrt/parser/layer_builders/layer_builder.h"

namespace ingot::api {

// window.cpp
nv::ILayer* read_conv(const NodeReader& r);
nv::ILayer* read_conv_transpose(const NodeReader& r);
nv::ILayer* read_pool(const NodeReader& r);
nv::ILayer* read_global_pool(const NodeReader& r);
nv::ILayer* read_resize(const NodeReader& r);
nv::ILayer* read_upsample(const NodeReader& r);
nv::ILayer* read_grid_sample(const NodeReader& r);
// pointwise.cpp
nv::ILayer* read_activation(const NodeReader& r);
nv::ILayer* read_clip(const NodeReader& r);
nv::ILayer* read_prelu(const NodeReader& r);
nv::ILayer* read_unary(const NodeReader& r);
nv::ILayer* read_binary(const NodeReader& r);
nv::ILayer* read_where(const NodeReader& r);
nv::ILayer* read_cast(const NodeReader& r);
nv::ILayer* read_identity(const NodeReader& r);
// math.cpp
nv::ILayer* read_softmax(const NodeReader& r);
nv::ILayer* read_reduce(const NodeReader& r);
nv::ILayer* read_topk(const NodeReader& r);
nv::ILayer* read_matmul(const NodeReader& r);
nv::ILayer* read_gemm(const NodeReader& r);
nv::ILayer* read_einsum(const NodeReader& r);
nv::ILayer* read_cumsum(const NodeReader& r);
// norm.cpp
nv::ILayer* read_lrn(const NodeReader& r);
nv::ILayer* read_batch_norm(const NodeReader& r);
nv::ILayer* read_instance_norm(const NodeReader& r);
nv::ILayer* read_group_norm(const NodeReader& r);
nv::ILayer* read_layer_norm(const NodeReader& r);
// shape.cpp
nv::ILayer* read_constant(const NodeReader& r);
nv::ILayer* read_concat(const NodeReader& r);
nv::ILayer* read_reshape(const NodeReader& r);
nv::ILayer* read_flatten(const NodeReader& r);
nv::ILayer* read_transpose(const NodeReader& r);
nv::ILayer* read_squeeze(const NodeReader& r);
nv::ILayer* read_unsqueeze(const NodeReader& r);
nv::ILayer* read_shape(const NodeReader& r);
nv::ILayer* read_constant_of_shape(const NodeReader& r);
nv::ILayer* read_range(const NodeReader& r);
nv::ILayer* read_random(const NodeReader& r);
// slice.cpp
nv::ILayer* read_slice(const NodeReader& r);
nv::ILayer* read_split(const NodeReader& r);
nv::ILayer* read_pad(const NodeReader& r);
nv::ILayer* read_expand(const NodeReader& r);
nv::ILayer* read_tile(const NodeReader& r);
// index.cpp
nv::ILayer* read_gather(const NodeReader& r);
nv::ILayer* read_gather_elements(const NodeReader& r);
nv::ILayer* read_gather_nd(const NodeReader& r);
nv::ILayer* read_scatter(const NodeReader& r);
nv::ILayer* read_one_hot(const NodeReader& r);
nv::ILayer* read_non_zero(const NodeReader& r);
nv::ILayer* read_reverse_sequence(const NodeReader& r);
nv::ILayer* read_tensor_scatter(const NodeReader& r);
nv::ILayer* read_rotary(const NodeReader& r);
nv::ILayer* read_quantize(const NodeReader& r);
nv::ILayer* read_dequantize(const NodeReader& r);

} // namespace ingot::api
