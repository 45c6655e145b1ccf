// SPDX-License-Identifier: Apache-2.0
// Text in a fixed buffer, for messages when memory may have run out.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace ingot {

/// The parts joined into a C string that is cut to `size` bytes.
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
