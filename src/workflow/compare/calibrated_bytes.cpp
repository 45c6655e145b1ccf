// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/calibrated_bytes.h"

#include "ops/ops.h"
#include "workflow/quantization/quantize.h"

namespace ingot {

std::map<std::string, CalibratedBytes> calibrated_bytes(const Graph& g) {
    std::map<std::string, CalibratedBytes> out;
    for (const Node& n : g.nodes()) {
        const Tensor* scale = n.is(ops::dequantize_def) ? g.constant(n.inputs[1]) : nullptr;
        const Tensor* zero =
            scale != nullptr && n.inputs.size() > 2 ? g.constant(n.inputs[2]) : nullptr;
        if (scale == nullptr || scale->count() != 1 ||
            (zero == nullptr) != (n.inputs.size() == 2)) {
            continue;
        }
        const std::string& bytes = g.value_name(n.inputs[0]);
        if (bytes.ends_with(quantised_suffix)) {
            out[bytes] = {bytes.substr(0, bytes.size() - quantised_suffix.size()),
                          scale->get_f64(0), zero == nullptr ? 0 : zero->get_f64(0)};
        }
    }
    return out;
}

Tensor dequantised(const Tensor& bytes, const CalibratedBytes& by) {
    Tensor out = Tensor::empty(DType::F32, bytes.shape());
    for (int64_t i = 0; i < out.count(); ++i) {
        out.set_f64(i, (bytes.get_f64(i) - by.zero) * by.scale);
    }
    return out;
}

} // namespace ingot
