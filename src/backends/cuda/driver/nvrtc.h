// SPDX-License-Identifier: Apache-2.0
// NVRTC, opened when the first kernel has to be compiled.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ingot::cuda {

struct CompiledText {
    std::string cubin;
    std::string log;
    size_t ptx_bytes = 0;
};

/// "nvrtc 13.0"; "" without NVRTC.
std::string nvrtc_version();

/// NVRTC's options for an architecture ("sm_90a").
std::vector<std::string> nvrtc_options(const std::string& arch);
/// Whether an NVRTC for this architecture ("sm_90a") is found.
bool nvrtc_knows(const std::string& arch);
/// Why not; "" where one is. An empty architecture stands for any.
std::string nvrtc_problem(const std::string& arch);

/// Compiles a translation unit for an architecture ("sm_90a"). Thread safe. Errors: Unsupported
/// when no NVRTC is found (with the searched places), Internal with the compiler's log.
CompiledText nvrtc_compile(const std::string& text, const std::string& arch);

} // namespace ingot::cuda
