// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

#include <string>

namespace ingot::test {

/// what() of the Error that f throws, with its trail; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

} // namespace ingot::test
