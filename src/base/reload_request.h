// SPDX-License-Identifier: Apache-2.0
// SIGUSR1 asks a launcher to take up what has changed.
#pragma once

namespace ingot {

/// From here on SIGUSR1 is a request and no longer ends the process.
void watch_reload_requests();
/// Whether a request came since the last call.
bool take_reload_request() noexcept;

} // namespace ingot
