// SPDX-License-Identifier: Apache-2.0
// One question and its answer over a connection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

/// Connects to a port of a host, or to the socket that a path names, sends `question`, and returns
/// all that comes until the other side closes, at most `limit` bytes. Waits at most `seconds` in
/// all. Errors: Io naming the address and what failed; Interrupted.
std::string exchange_tcp(const std::string& host, const std::string& port,
                         std::string_view question, double seconds, size_t limit = 16U << 20U);
std::string exchange_local(const std::string& path, std::string_view question, double seconds,
                           size_t limit = 16U << 20U);
/// Whether a port of an IPv4 address can be listened on now.
bool port_is_free(const std::string& address, uint16_t port);

} // namespace ingot
