// SPDX-License-Identifier: Apache-2.0
// Products of any element types on any GPU, without tensor cores: shared by the families.
#pragma once

#include "kernels/contraction/store_text.h"

namespace ingot::kernels {

constexpr int64_t simt_tile = 64;

double simt_cost_us(const Contraction& c, const Arch& arch);
/// The text before a kernel that uses simt_core.cuh, and the shared memory that it needs.
std::string simt_body(const StoreText& t);
int64_t simt_shared(const Contraction& c);

} // namespace ingot::kernels
