// SPDX-License-Identifier: Apache-2.0
// The message of a call that must fail.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>

namespace ingot {

inline std::string message(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

} // namespace ingot
