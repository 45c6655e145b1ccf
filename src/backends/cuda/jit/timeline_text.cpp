// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/timeline_text.h"

#include "base/error.h"
#include "base/text.h"

#include <cctype>
#include <set>

namespace ingot::cuda {

namespace {

constexpr std::string_view keyword = "KERNEL";
constexpr std::string_view bounds = "__launch_bounds__";

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The position after the parenthesis that closes the one at `open`.
size_t after_closing(std::string_view text, size_t open) {
    int depth = 0;
    size_t at = open;
    for (; at < text.size(); ++at) {
        depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
        if (depth == 0) {
            return at + 1;
        }
    }
    fail(ErrorCode::Internal, "a kernel's text ends inside parentheses");
}

/// A kernel of the text: its name, and the position of the parenthesis before its parameters.
struct Found {
    std::string_view name;
    size_t parameters = 0;
};

Found kernel_at(std::string_view text, size_t at) {
    at += keyword.size();
    while (at < text.size()) {
        while (at < text.size() && !is_word(text[at])) {
            ++at;
        }
        size_t begin = at;
        while (at < text.size() && is_word(text[at])) {
            ++at;
        }
        std::string_view word = text.substr(begin, at - begin);
        if (word == bounds) {
            at = after_closing(text, text.find('(', at));
        } else if (at < text.size() && text[at] == '(') {
            return {word, at};
        }
    }
    fail(ErrorCode::Internal, "a kernel's text ends before its parameters");
}

} // namespace

std::string timeline_text(const kernels::Launch& l) {
    std::string_view ptx = kernels::device_file("ptx");
    std::string text = kernels::full_text(l.program).substr(ptx.size());
    std::set<std::string> names;
    bool found = false;
    for (size_t at = text.find(keyword); at != std::string::npos;) {
        Found kernel = kernel_at(text, at);
        names.emplace(kernel.name);
        if (kernel.name == l.entry) {
            found = true;
            size_t close = after_closing(text, kernel.parameters) - 1;
            text.insert(close, ", u64* timeline_times");
            size_t body = text.find('{', close) + 1;
            text.insert(body, "\nTimelineScope timeline_scope(timeline_times);");
            at = text.find(keyword, body);
        } else {
            at = text.find(keyword, kernel.parameters);
        }
    }
    require(found, ErrorCode::Internal, "no kernel ", l.entry, " in its own text");
    std::string define;
    if (names.size() == 1) { // else the parameter's name depends on the kernel
        define = str("#define TIMELINE_PARAMETER \"", l.entry, "_param_",
                     l.args.offsets().size() - 1, "\"\n");
    }
    return str(ptx, define, kernels::device_file("timeline"), text);
}

} // namespace ingot::cuda
