// SPDX-License-Identifier: Apache-2.0
// Keys of tests, made for nothing else.
#pragma once

#include <string>

namespace ingot::test {

inline const std::string private_key_1 =
    "-----BEGIN PRIVATE "
    "KEY-----\nMC4CAQAwBQYDK2VwBCIEIKHlIqcNUhzxHaDQlHVCxDzt007vlsSTC2uS5+J6q2AS\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string public_key_1 =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAV3EQPukLzi0d40OiluYd4MjqjCXHoG3Cepn1AFdbRtw=\n"
    "-----END PUBLIC KEY-----\n";
inline const std::string private_key_2 =
    "-----BEGIN PRIVATE "
    "KEY-----\nMC4CAQAwBQYDK2VwBCIEIPjaD6kFMOICzyO+eTgg4fxODj6n50fS7anZx3wGnOdk\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string public_key_2 =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAhYBs8pAOgcxCz2t3U6cJpVi+unAO6dMH2saOwYFo8NA=\n"
    "-----END PUBLIC KEY-----\n";

} // namespace ingot::test
