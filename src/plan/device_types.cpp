// SPDX-License-Identifier: Apache-2.0
#include "plan/device_types.h"

namespace ingot {

bool is_fast(const Backend& backend, DType dtype) {
    constexpr int fp8_units = 89; // the first with units for it; all GPUs from 8.0 on have the rest
    int cc = compute_capability(backend);
    bool fp8 = dtype == DType::F8E4M3 || dtype == DType::F8E5M2;
    bool narrow = dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::I8;
    return dtype == DType::F32 || (cc > 0 && narrow) || (cc >= fp8_units && fp8);
}

} // namespace ingot
