// SPDX-License-Identifier: Apache-2.0
// Attention whose results a map rounds to bytes, in one launch.
#pragma once

#include "kernels/attention/heads.h"

namespace ingot::kernels::attention {

/// Why kernels cannot store the results of a group's second node; nullopt where they can.
std::optional<std::string> refuse_map(const Group& group);
/// Sets the map of a group's second node, where there is one.
void set_byte_map(Heads& s, const Problem& p);
/// Defines RESULT, what kernels store, which is `element` or a byte; and BYTES: it is a byte.
void add_result(Defines& d, const Heads& s, std::string_view element);
/// The common device files of a program that uses `files`.
std::vector<std::string_view> uses_of(const Heads& s, std::vector<std::string_view> files);
/// Device text: EPI_PARAMS, the last parameters of kernels, and EPI_PASS, which hands them on; and
/// for bytes `rounded(x, y EPI_PASS)`, the bytes of two results, x in the low one, and
/// `rounded(two EPI_PASS)` for a pair of 16 bits. Calls functions of "types" and "math".
std::string result_text(const Heads& s);

} // namespace ingot::kernels::attention
