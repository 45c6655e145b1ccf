// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/timeline_text.h"

#include "base/text.h"

namespace ingot::cuda {

using kernels::KernelParameter;

std::string timeline_text(const kernels::Launch& l) {
    kernels::Program p = l.program;
    std::string defines = str("#define TIMELINE_PARAMETER \"", l.entry, "_param_",
                              l.args.offsets().size() - 1, "\"\n");
    if (p.kernel) {
        p.kernel->parameters.push_back({KernelParameter::Kind::Pointer, "u64*", "timeline_times"});
        p.kernel->statements.insert(0, "begin_kernel();\n");
    } else { // a device file declares the kernel: its name adds the parameter
        append(defines,
               str("#define ", l.entry, "(...) ", l.entry, "(__VA_ARGS__, u64* timeline_times)\n"));
    }
    std::string_view intrinsics = kernels::device_file("ptx");
    return str(intrinsics, defines, kernels::device_file("timeline"),
               kernels::full_text(p).substr(intrinsics.size()));
}

} // namespace ingot::cuda
