// SPDX-License-Identifier: Apache-2.0
// Reports as JSON values, for the files of this folder.
#pragma once

#include "workflow/report/kernel_report.h"

#include <nlohmann/json.hpp>

namespace ingot {

nlohmann::ordered_json json_of(const KernelReport& r, bool sources);
/// Text with U+FFFD for bytes that are no UTF-8, which names may have. `indent` -1: one line.
std::string dumped(const nlohmann::ordered_json& j, int indent);

} // namespace ingot
