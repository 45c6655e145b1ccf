// SPDX-License-Identifier: Apache-2.0
// --useRuntime=lean|dispatch: engines run by another library of the API, behind the interface of a
// backend, so that measuring and reports are the same.
#pragma once

#include "trtexec.h"

namespace ingot::tool {

/// From here on the engine is run by the library that --useRuntime and --leanDLLPath name. Nothing
/// happens for full. Errors: Io when there is no such library; what it says of the engine.
void choose_runtime(TrtexecRun& run);

} // namespace ingot::tool
