// SPDX-License-Identifier: Apache-2.0
// Launches that let blocks of the next one start while their own still wait (ptx.cuh): their
// dynamic shared memory is an odd multiple of 16 bytes, so that no program differs by it.
#pragma once

#include "kernels/family.h"

namespace ingot::cuda {

/// Not those of clusters: blocks of the next launch would leave too few SMs side by side. Not where
/// blocks are alone on their SMs (kernels::Launch::alone), or fill more than half of them: weights
/// that the next launch asks for take bandwidth from the launch that runs.
bool releases_early(const kernels::Launch& l, const kernels::Arch& arch);
/// The dynamic shared memory of a launch, which says whether it releases early.
int64_t shared_with_release(const kernels::Launch& l, const kernels::Arch& arch);
/// The most that a launch asking for these bytes has.
int64_t most_shared_with_release(int64_t bytes, const kernels::Arch& arch);

} // namespace ingot::cuda
