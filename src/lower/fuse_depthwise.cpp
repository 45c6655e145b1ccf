// SPDX-License-Identifier: Apache-2.0
// fuse_depthwise: a depthwise convolution becomes part of the pointwise one that alone reads it,
// with the maps behind both, where a kernel runs them: its channels are made where they are read.
#include "lower/join_pair.h"
#include "lower/lowering.h"

namespace ingot::plan {

Pass fuse_depthwise(const KernelSet& kernels) {
    return join_pass("fuse_depthwise",
                     "depthwise convolutions become part of the pointwise ones that read them",
                     {kernels, "depthwise_product", convolution_group});
}

} // namespace ingot::plan
