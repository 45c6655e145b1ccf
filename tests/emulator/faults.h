// SPDX-License-Identifier: Apache-2.0
// Faults of device text (a missing page, a trap, a division by zero) become errors.
#pragma once

namespace ingot::emulator {

/// While one lives, faults on a fiber end the launch with an error; all others are passed on.
class FaultGuard {
public:
    FaultGuard();
    ~FaultGuard();
    FaultGuard(const FaultGuard&) = delete;
    FaultGuard& operator=(const FaultGuard&) = delete;
};

} // namespace ingot::emulator
