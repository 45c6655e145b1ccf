// SPDX-License-Identifier: Apache-2.0
// Compiles device text for the host: replaces the intrinsics file and makes a shared library with
// g++.
#pragma once

#include "emulator/cluster.h"

#include <string>
#include <string_view>

namespace ingot::emulator {

/// The bytes of a shared library. Kept by content in `folder`, which other processes may share.
/// Errors: Device with the compiler's messages.
std::string compile_text(const std::string& text, int cc, const std::string& folder);

/// The text of a header with those that it includes as "emulator/..." in their places, from
/// `folder`, each without the lines up to `#pragma once`. Programs are kept by this text: they
/// outlive a move of lines from a header into a part of it. Errors: Device for a part without such
/// a beginning.
std::string with_parts(std::string_view text, const std::string& folder);

/// Whether compile_text would find the library kept.
bool is_compiled(const std::string& text, int cc, const std::string& folder);

/// The path of a library with the same code and its lines, for the path of one that compile_text
/// keeps; the given path where that cannot be compiled.
std::string with_lines(const std::string& library);

/// Opens such bytes (once per process) and finds a kernel. Errors: Device.
Entry load_entry(std::string_view library, const std::string& name, const std::string& folder);

/// The texts that this process compiled or found compiled, in order, each once.
struct CompiledProgram {
    std::string text;
    int cc = 0;
};
std::vector<CompiledProgram> compiled_programs();

} // namespace ingot::emulator
