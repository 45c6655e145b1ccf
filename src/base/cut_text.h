// SPDX-License-Identifier: Apache-2.0
// Text that needs no memory: for messages where there may be none.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace ingot {

/// A C string of as much of the parts, one behind the other, as fits into `size` bytes.
template <size_t size>
class CutText {
public:
    CutText(std::initializer_list<std::string_view> parts) noexcept {
        for (std::string_view part : parts) {
            end_ += part.copy(text_.data() + end_, size - 1 - end_);
        }
    }
    const char* c_str() const noexcept { return text_.data(); }
    std::string_view view() const noexcept { return {text_.data(), end_}; }

private:
    std::array<char, size> text_{};
    size_t end_ = 0;
};

} // namespace ingot
