// SPDX-License-Identifier: Apache-2.0
// Cursor: a position in the text form of a graph, and the small tokens of its grammar.
#pragma once

#include "base/error.h"

#include <charconv>
#include <string>
#include <string_view>

namespace ingot::text {

inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

inline bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-';
}

/// A position in the text, with the small tokens of the grammar.
class Cursor {
public:
    explicit Cursor(std::string_view text) : text_(text) {}

    size_t position() const { return at_; }
    std::string location(size_t position) const {
        size_t line = 1;
        size_t column = 1;
        for (size_t i = 0; i < position && i < text_.size(); ++i) {
            bool end = text_[i] == '\n';
            line += end ? 1 : 0;
            column = end ? 1 : column + 1;
        }
        return str("line ", line, ", column ", column);
    }
    template <class... Args>
    [[noreturn]] void error(const Args&... args) const {
        fail(ErrorCode::InvalidArgument, location(at_), ": ", args...);
    }
    /// Runs f; prefixes its errors with the position in the text.
    template <class F>
    auto located(size_t position, F&& f) const {
        return with_place([&] { return location(position); }, std::forward<F>(f));
    }

    void space() {
        while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '#')) {
            bool comment = text_[at_] == '#';
            while (comment && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
                ++at_;
            }
            ++at_;
        }
    }
    bool done() {
        space();
        return at_ == text_.size();
    }
    char peek() {
        space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (peek() != c) {
            return false;
        }
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!take(c)) {
            error("expected '", c, "', got ", shown());
        }
    }
    std::string shown() {
        char c = peek();
        return c == '\0' ? "the end of the text" : quote(std::string_view(&text_[at_], 1));
    }
    /// A run of word characters, perhaps empty.
    std::string_view word() {
        space();
        size_t start = at_;
        while (at_ < text_.size() && is_word_char(text_[at_])) {
            ++at_;
        }
        return text_.substr(start, at_ - start);
    }
    std::string string() {
        if (peek() != '"') {
            error("expected a string in double quotes, got ", shown());
        }
        size_t start = at_++;
        while (at_ < text_.size() && text_[at_] != '"') {
            at_ += text_[at_] == '\\' ? 2 : 1;
        }
        if (at_ >= text_.size()) {
            at_ = start;
            error("unterminated string");
        }
        ++at_;
        return located(start, [&] { return unquote(text_.substr(start, at_ - start)); });
    }
    /// A plain word or a quoted string.
    std::string name() {
        if (peek() == '"') {
            return string();
        }
        std::string_view w = word();
        if (w.empty()) {
            error("expected a name, got ", shown());
        }
        return std::string(w);
    }
    /// Text up to a comma, a closing bracket or space outside parentheses and square brackets.
    std::string_view expression() {
        space();
        size_t start = at_;
        int depth = 0;
        for (; at_ < text_.size(); ++at_) {
            char c = text_[at_];
            bool opens = c == '(' || c == '[';
            bool closes = c == ')' || c == ']' || c == '}';
            if (is_space(c) || (depth == 0 && (c == ',' || closes))) {
                break;
            }
            depth += opens ? 1 : closes ? -1 : 0;
        }
        if (at_ == start) {
            error("expected a value, got ", shown());
        }
        return text_.substr(start, at_ - start);
    }
    template <class T>
    T number() {
        size_t start = at_;
        std::string_view t = expression();
        T v{};
        auto [end, failed] = std::from_chars(t.data(), t.data() + t.size(), v);
        if (failed != std::errc() || end != t.data() + t.size()) {
            at_ = start;
            error("'", t, "' is not ", std::is_integral_v<T> ? "an integer" : "a number");
        }
        return v;
    }
    /// "[a,b]": calls `item` before each element.
    template <class F>
    void list(F&& item) {
        expect('[');
        if (take(']')) {
            return;
        }
        do {
            item();
        } while (take(','));
        expect(']');
    }

private:
    std::string_view text_;
    size_t at_ = 0;
};

} // namespace ingot::text
