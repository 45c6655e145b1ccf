// SPDX-License-Identifier: Apache-2.0
// Tensors that a calibrated engine keeps as bytes, for comparison with those of the model.
#pragma once

#include "ir/graph.h"

#include <map>
#include <string>

namespace ingot {

/// The tensor that calibrated bytes round: (bytes - zero) * scale.
struct CalibratedBytes {
    std::string tensor;
    double scale = 1;
    double zero = 0;
};

/// Those of an engine's graph, by the names of the bytes.
std::map<std::string, CalibratedBytes> calibrated_bytes(const Graph& g);
/// The tensor in f32.
Tensor dequantised(const Tensor& bytes, const CalibratedBytes& by);

} // namespace ingot
