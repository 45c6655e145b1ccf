// SPDX-License-Identifier: Apache-2.0
// Attention whose results a map rounds to bytes, in one launch.
#pragma once

#include "kernels/attention/heads.h"

namespace ingot::kernels::attention {

/// Why kernels cannot store the results of a group's second node; nullopt where they can.
std::optional<std::string> refuse_map(const Group& group);
/// The map of a group's second node, else null.
const Expr* byte_map(const Group& group);
/// Defines RESULT, what kernels store, which is `element` or a byte; and BYTES: it is a byte.
void add_result(Defines& d, const Heads& s, std::string_view element);
/// The common device files of a program that uses `files`.
std::vector<std::string_view> uses_of(const Heads& s, std::vector<std::string_view> files);
/// Device text of `rounded(x, y)`, the bytes of two results, x in the low one, and of
/// `rounded(two)` for a pair of 16 bits; empty where results are stored as they are. Calls
/// functions of "types" and "math".
std::string result_text(const Heads& s);

} // namespace ingot::kernels::attention
