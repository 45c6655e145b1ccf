// SPDX-License-Identifier: Apache-2.0
// Gathers elements of a tensor in another order; those of a joined one from its parts.
#pragma once

#include "base/thread_pool.h"
#include "plan/view.h"

namespace ingot::plan {

/// Writes the elements behind a view of `source`, row major and densely. `unit`: the type of what
/// is copied, which has whole bytes.
void gather(const Tensor& source, DType unit, const View& view, std::byte* to, ThreadPool& pool);

} // namespace ingot::plan
