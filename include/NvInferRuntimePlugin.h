// SPDX-License-Identifier: Apache-2.0
// Plugins: layers that an application implements.
#pragma once

#include "NvInferPluginBase.h"
#include "ingot/plugin_shapes.h"
#include "ingot/plugin_v2.h"
#include "ingot/plugin_v3.h"
