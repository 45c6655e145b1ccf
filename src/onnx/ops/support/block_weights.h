// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks, as MatMulNBits of ONNX Runtime has them.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// Weights [N,K] of `bits` bits, packed in bytes; each block along K has a scale and, unless
/// `zero` is invalid, a zero point: floats, or packed like the weights.
struct BlockWeights {
    int64_t n = 1;
    int64_t k = 1;
    int64_t bits = 4;
    int64_t block = 1;
    Value packed;
    Value scale;
    Value zero;
    Value bias;  // [N], or invalid
    Value group; // i32 [K]: the block of each row's scale and zero point; invalid: rows in order
};
/// N from the attribute of this name, and the sizes in attributes K, bits and block_size. Refuses
/// numbers of other sizes than 2, 4 and 8 bits, and weights in layouts of other providers.
BlockWeights block_weights(const NodeContext& c, std::string_view n);
/// x [...,K] -> [...,N] of x's type. Weights with a size of 0 are left out: all products are 0.
Value block_product(const NodeContext& c, Value x, const BlockWeights& w);

} // namespace ingot::onnx
