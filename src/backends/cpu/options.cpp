// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/options.h"

#include "backends/backends.h"

namespace ingot {

namespace {

constexpr BackendOption setters[] = {
    {"no_library",
     [](CompileOptions& o, const OptionValue& v) {
         o.of<CpuOptions>().use_library = !std::get<bool>(v);
     }},
};

} // namespace

std::span<const BackendOption> cpu_options() {
    return setters;
}

} // namespace ingot
