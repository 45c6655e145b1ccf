// SPDX-License-Identifier: Apache-2.0
// The meaning of the CUDA driver's error codes.
#pragma once

namespace ingot {

/// Whether this error leaves the GPU unusable to the process: ECC, NVLink, illegal address, launch
/// timeout, context destroyed, assert, hardware stack error, illegal instruction, misaligned
/// address, invalid address space, invalid program counter, launch failed.
constexpr bool loses_gpu(int error) {
    return error == 214 || error == 220 || error == 700 || error == 702 || error == 709 ||
           error == 710 || (error >= 714 && error <= 719);
}

} // namespace ingot
