// SPDX-License-Identifier: Apache-2.0
// Kept so that programs that include it compile: what plugins need is in NvInferRuntime.h.
#pragma once

#include "NvInferRuntime.h"
