// SPDX-License-Identifier: Apache-2.0
// fuse_input_maps: a map whose operands but one differ by channel alone becomes part of the
// pointwise convolution that alone reads it, with the map behind that, where a kernel runs them:
// the mapped tensor is never written.
#include "lower/join_pair.h"
#include "lower/lowering.h"
#include "ops/primitives.h"

namespace ingot::plan {

namespace {

std::optional<Group> map_group(const Graph& g, const Node* n) {
    return n != nullptr && n->is(map_def) ? std::optional(group_of(g, *n)) : std::nullopt;
}

} // namespace

Pass fuse_input_maps(const KernelSet& kernels) {
    return join_pass("fuse_input_maps",
                     "maps by channel become part of the pointwise convolutions that read them",
                     {kernels, "mapped_conv", map_group});
}

} // namespace ingot::plan
