// SPDX-License-Identifier: Apache-2.0
// Sets of programs that compiled well before, by their digests in tests/kernels/nvrtc_passed.txt: a
// machine that has no results of compilations compiles only sets in which a text is new.
#pragma once

#include "kernels/nvrtc_check.h"

#include <string>
#include <vector>

namespace ingot::test {

/// The list of this tree.
std::string passed_file();
/// Whether the set of this name is the listed one: texts, architectures, sizes of shared memory,
/// NVRTC, its options, and the rules of nvrtc_check.cpp.
bool have_passed(const std::string& name, const std::vector<NvrtcProgram>& programs,
                 const std::string& file = passed_file());
/// Lists the set; other processes may list theirs at the same time.
void list_passed(const std::string& name, const std::vector<NvrtcProgram>& programs,
                 const std::string& file = passed_file());

} // namespace ingot::test
