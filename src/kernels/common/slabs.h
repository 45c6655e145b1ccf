// SPDX-License-Identifier: Apache-2.0
// Operands of wgmma as TMA loads them into shared memory: slabs of rows of 128 bytes.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

/// Elements of 16 bytes, the unit in which TMA walks a tensor.
inline int64_t chunk_elements(DType type) {
    return 128 / bit_width(type);
}
/// Elements of a slab: 128 bytes of the depth, what one step multiplies.
inline int64_t slab_elements(DType type) {
    return 8 * chunk_elements(type);
}
/// A map of an operand; f32 is rounded to TF32 on loading.
inline TensorMap wgmma_map(DType type, int rank) {
    TensorMap m;
    m.dtype = type;
    m.tf32 = type == DType::F32;
    m.rank = rank;
    m.box = {static_cast<uint32_t>(slab_elements(type)), 1, 1, 1, 1};
    return m;
}

} // namespace ingot::kernels
