// SPDX-License-Identifier: Apache-2.0
// --useRuntime=lean|dispatch: runs engines in another library of the API, behind the backend
// interface, so that measurement and reports are shared.
#pragma once

#include "trtexec.h"

namespace ingot::tool {

/// Switches the engine to the library of --useRuntime and --leanDLLPath. Does nothing for full.
/// Errors: Io for a missing library; the library's errors for the engine.
void choose_runtime(TrtexecRun& run);

} // namespace ingot::tool
