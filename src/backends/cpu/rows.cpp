// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/rows.h"

#include <cstring>

namespace ingot::cpu {

FloatVector::FloatVector(const Operand& o, const Shape& shape)
    : operand_(o), load_(load_loop(o.dtype)) {
    View v = plan::broadcasted(o.view, shape);
    count_ = v.count();
    direct_ = o.dtype == DType::F32 && plan::is_dense(v);
    if (!direct_) {
        offsets_ = plan::offsets_of(v.shape, v.strides);
    }
}

const float* FloatVector::get(const RunContext& c, float* memory) const {
    if (direct_) {
        return c.at<const float>(operand_);
    }
    int64_t width = bit_width(operand_.dtype) / 8;
    const std::byte* base = c.bytes(operand_);
    for (int64_t i = 0; i < count_; ++i) {
        const std::byte* from = base + offsets_[static_cast<size_t>(i)] * width;
        if (load_ == nullptr) {
            std::memcpy(memory + i, from, sizeof(float));
        } else {
            load_(memory + i, from, nullptr, nullptr, 1);
        }
    }
    return memory;
}

} // namespace ingot::cpu
