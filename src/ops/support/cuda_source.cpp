// SPDX-License-Identifier: Apache-2.0
// Binds a cuda_source's texts (signature, expressions, arguments) to given input types.
#include "base/error.h"
#include "ops/plugin.h"

#include <charconv>
#include <map>

namespace ingot {

namespace {

constexpr int max_depth = 64;
constexpr std::string_view rest_text = "...";

constexpr std::pair<std::string_view, DType> type_names[] = {
    {"float32", DType::F32},        {"float16", DType::F16}, {"bfloat16", DType::BF16},
    {"float8_e4m3", DType::F8E4M3}, {"int8", DType::I8},     {"uint8", DType::U8},
    {"int32", DType::I32},          {"int64", DType::I64},   {"bool", DType::Bool},
};

std::string_view type_name(DType t) {
    for (const auto& [text, type] : type_names) {
        if (type == t) {
            return text;
        }
    }
    return name(t);
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_identifier(std::string_view text) {
    bool good = !text.empty() && is_letter(text[0]);
    for (char c : text) {
        good = good && (is_letter(c) || is_digit(c));
    }
    return good;
}

/// Reads one text from left to right.
class Cursor {
public:
    Cursor(std::string_view what, std::string_view text) : what_(what), text_(text) { skip(); }

    bool at_end() const { return at_ == text_.size(); }
    bool take(std::string_view token) {
        if (text_.substr(at_, token.size()) != token) {
            return false;
        }
        at_ += token.size();
        skip();
        return true;
    }
    void expect(std::string_view token) {
        if (!take(token)) {
            refuse(str("expected '", token, "'"));
        }
    }
    /// A name, or "".
    std::string word() {
        size_t begin = at_;
        if (at_ < text_.size() && is_letter(text_[at_])) {
            while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) {
                ++at_;
            }
        }
        std::string w(text_.substr(begin, at_ - begin));
        skip();
        return w;
    }
    std::optional<int64_t> integer() {
        if (at_end() || !is_digit(text_[at_])) {
            return std::nullopt;
        }
        int64_t v = 0;
        auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
        if (error != std::errc()) {
            refuse("expected a number below 2^63");
        }
        at_ = static_cast<size_t>(end - text_.data());
        skip();
        return v;
    }
    std::optional<double> real() {
        double v = 0;
        auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
        if (error != std::errc()) {
            return std::nullopt;
        }
        at_ = static_cast<size_t>(end - text_.data());
        skip();
        return v;
    }
    [[noreturn]] void refuse(const std::string& reason) const {
        fail(ErrorCode::InvalidArgument, what_, " '", text_, "': at character ", at_ + 1, " ",
             at_end() ? std::string("(its end)") : str("('", text_.substr(at_, 1), "')"), ": ",
             reason);
    }

private:
    void skip() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
            ++at_;
        }
    }
    std::string_view what_;
    std::string_view text_;
    size_t at_ = 0;
};

class Binder {
public:
    Binder(const SourceKernel& s, std::span<const Type> in) : source_(s), in_(in) {
        require(s.int_names.size() == s.int_values.size() &&
                    s.float_names.size() == s.float_values.size(),
                ErrorCode::InvalidArgument, "the number of names and of values differs");
        for (size_t i = 0; i < s.int_names.size(); ++i) {
            sizes_.emplace(s.int_names[i], s.int_values[i]);
        }
        for (size_t i = 0; i < s.float_names.size(); ++i) {
            reals_.emplace(s.float_names[i], s.float_values[i]);
        }
    }

    BoundSource run() {
        require(is_identifier(source_.kernel), ErrorCode::InvalidArgument, "the kernel's name is '",
                source_.kernel, "', expected a C++ identifier");
        require(source_.source.find(source_.kernel) != std::string::npos,
                ErrorCode::InvalidArgument, "the source has no function '", source_.kernel, "'");
        signature();
        out_.arguments = arguments();
        out_.grid = three("the grid", source_.grid);
        out_.block = three("the block", source_.block);
        out_.shared = one("the shared memory", source_.shared);
        out_.workspace = one("the workspace", source_.workspace);
        return std::move(out_);
    }

private:
    // --- signature ---

    void signature() {
        Cursor c("the signature", source_.signature);
        size_t count = 0;
        while (!c.take("->")) {
            if (count > 0) {
                c.expect(",");
            }
            if (count >= in_.size()) {
                c.refuse(str("the layer has only ", in_.size(), " inputs"));
            }
            input(c, count++);
        }
        require(count == in_.size(), ErrorCode::InvalidArgument, "the signature '",
                source_.signature, "' has ", count, " inputs, the layer has ", in_.size());
        do {
            result(c);
        } while (c.take(","));
        if (!c.at_end()) {
            c.refuse("expected ',' or the end");
        }
    }

    DType type_of(Cursor& c, const Type* actual, size_t index) {
        std::string text = c.word();
        for (const auto& [known, type] : type_names) {
            if (text == known) {
                if (actual != nullptr && actual->dtype != type) {
                    c.refuse(str("input ", index, " is ", type_name(actual->dtype),
                                 to_text(*actual).substr(name(actual->dtype).size()),
                                 ", the signature says ", known));
                }
                return type;
            }
        }
        if (text.empty() || text[0] < 'A' || text[0] > 'Z') {
            c.refuse(str("expected a type (float32, float16, bfloat16, float8_e4m3, int8, uint8, "
                         "int32, int64, bool, or a name with a capital letter for any of them)"));
        }
        auto it = types_.find(text);
        if (it == types_.end()) {
            if (actual == nullptr) {
                c.refuse(str("no input has type ", text));
            }
            types_.emplace(text, actual->dtype);
            out_.types.emplace_back(text, actual->dtype);
            return actual->dtype;
        }
        if (actual != nullptr && actual->dtype != it->second) {
            c.refuse(str("input ", index, " is ", type_name(actual->dtype), ", but ", text, " is ",
                         type_name(it->second)));
        }
        return it->second;
    }

    void input(Cursor& c, size_t index) {
        const Type& actual = in_[index];
        type_of(c, &actual, index);
        c.expect("[");
        std::vector<std::string> items;
        std::optional<size_t> rest;
        while (!c.take("]")) {
            if (!items.empty()) {
                c.expect(",");
            }
            if (c.take(rest_text)) {
                if (rest) {
                    c.refuse("'...' occurs twice");
                }
                rest = items.size();
                items.emplace_back(rest_text);
            } else if (std::optional<int64_t> n = c.integer()) {
                items.push_back(str(*n));
            } else {
                items.push_back(c.word());
                if (items.back().empty()) {
                    c.refuse("expected a name, a number or '...'");
                }
            }
        }
        size_t rank = actual.dims.size();
        if (rest ? rank + 1 < items.size() : rank != items.size()) {
            c.refuse(str("input ", index, " ", actual, " has ", rank,
                         " dimensions, the signature says ", rest ? "at least " : "",
                         items.size() - (rest ? 1 : 0)));
        }
        size_t at = 0;
        for (const std::string& item : items) {
            if (item == rest_text) {
                size_t n = rank + 1 - items.size();
                auto begin = actual.dims.begin() + static_cast<ptrdiff_t>(at);
                bind_rest(c, Dims(begin, begin + static_cast<ptrdiff_t>(n)), index);
                at += n;
            } else {
                bind_size(c, item, actual.dims[at], str("dimension ", at, " of input ", index));
                ++at;
            }
        }
    }

    void bind_rest(Cursor& c, Dims dims, size_t index) {
        if (!rest_) {
            rest_ = std::move(dims);
            return;
        }
        if (rest_->size() != dims.size()) {
            c.refuse(str("'...' matches ", rest_->size(), " dimensions, in input ", index, " for ",
                         dims.size()));
        }
        for (size_t i = 0; i < dims.size(); ++i) {
            agree(c, (*rest_)[i], dims[i], str("'...' of input ", index));
        }
    }

    void bind_size(Cursor& c, const std::string& item, const Dim& d, const std::string& where) {
        if (is_digit(item[0])) {
            Dim number = parse_dim(item);
            agree(c, number, d, where);
            return;
        }
        auto [it, fresh] = sizes_.emplace(item, d);
        if (!fresh) {
            agree(c, it->second, d, str(where, ", '", item, "'"));
        }
    }

    /// Requires both to be the same size; `known` becomes the more precisely known one.
    void agree(Cursor& c, Dim& known, const Dim& d, const std::string& where) {
        if (known == d) {
            return;
        }
        if (known.is_const() && d.is_const()) {
            c.refuse(str(where, " is ", d, ", expected ", known));
        }
        out_.conditions.push_back({known, d, where});
        known = d.is_const() ? d : known;
    }

    void result(Cursor& c) {
        Type t;
        t.dtype = type_of(c, nullptr, 0);
        c.expect("[");
        for (bool first = true; !c.take("]"); first = false) {
            if (!first) {
                c.expect(",");
            }
            if (c.take(rest_text)) {
                const Dims& all = rest(c);
                t.dims.insert(t.dims.end(), all.begin(), all.end());
            } else {
                t.dims.push_back(sum(c, 0));
                if (t.dims.back().as_const().value_or(0) < 0) {
                    c.refuse(str("the size is ", t.dims.back()));
                }
            }
        }
        out_.results.push_back(std::move(t));
    }

    const Dims& rest(const Cursor& c) const {
        if (!rest_) {
            c.refuse("no input has '...'");
        }
        return *rest_;
    }

    // --- expressions ---

    Dim sum(Cursor& c, int depth) const {
        if (depth > max_depth) {
            c.refuse("the expression is nested too deep");
        }
        Dim v = product_of(c, depth);
        while (true) {
            if (c.take("+")) {
                v = v + product_of(c, depth);
            } else if (c.take("-")) {
                v = v - product_of(c, depth);
            } else {
                return v;
            }
        }
    }

    Dim product_of(Cursor& c, int depth) const {
        Dim v = unary(c, depth);
        while (true) {
            if (c.take("*")) {
                v = v * unary(c, depth);
            } else if (c.take("/")) {
                v = floor_div(v, divisor(c, unary(c, depth)));
            } else if (c.take("%")) {
                v = mod(v, divisor(c, unary(c, depth)));
            } else {
                return v;
            }
        }
    }

    static Dim divisor(const Cursor& c, const Dim& d) {
        if (d.is_const(0)) {
            c.refuse("division by zero");
        }
        return d;
    }

    Dim unary(Cursor& c, int depth) const {
        if (depth > max_depth) {
            c.refuse("the expression is nested too deep");
        }
        return c.take("-") ? Dim(0) - unary(c, depth + 1) : atom(c, depth);
    }

    Dim atom(Cursor& c, int depth) const {
        if (std::optional<int64_t> n = c.integer()) {
            return *n;
        }
        if (c.take(rest_text)) {
            return product(rest(c));
        }
        if (c.take("(")) {
            Dim v = sum(c, depth + 1);
            c.expect(")");
            return v;
        }
        std::string word = c.word();
        if (word.empty()) {
            c.refuse("expected a number, a name or '('");
        }
        if (c.take("(")) {
            return function(c, word, depth);
        }
        auto it = sizes_.find(word);
        if (it == sizes_.end()) {
            c.refuse(str("'", word, "' is not a size of an input"));
        }
        return it->second;
    }

    Dim function(Cursor& c, const std::string& word, int depth) const {
        if (word != "min" && word != "max" && word != "ceil_div") {
            c.refuse(str("'", word, "' is not a function, expected min, max or ceil_div"));
        }
        Dim a = sum(c, depth + 1);
        c.expect(",");
        Dim b = sum(c, depth + 1);
        c.expect(")");
        return word == "min" ? min(a, b) : word == "max" ? max(a, b) : ceil_div(a, divisor(c, b));
    }

    Dim one(std::string_view what, const std::string& text) const {
        if (text.empty()) {
            return 0;
        }
        Cursor c(what, text);
        Dim d = sum(c, 0);
        if (!c.at_end()) {
            c.refuse("expected an operator or the end");
        }
        return d;
    }

    Dims three(std::string_view what, const std::string& text) const {
        Cursor c(what, text);
        Dims all;
        do {
            all.push_back(sum(c, 0));
        } while (all.size() < 3 && c.take(","));
        if (!c.at_end()) {
            c.refuse("expected one to three expressions");
        }
        all.resize(3, Dim(1));
        return all;
    }

    // --- arguments ---

    std::vector<BoundSource::Argument> arguments() const {
        using Argument = BoundSource::Argument;
        std::vector<Argument> all;
        if (source_.arguments.empty()) {
            return all;
        }
        Cursor c("the arguments", source_.arguments);
        do {
            Argument a;
            if (c.take("int(")) {
                a.kind = Argument::Kind::I32;
                a.integer = sum(c, 0);
                c.expect(")");
            } else if (c.take("float(")) {
                a.kind = Argument::Kind::F32;
                a.real = real(c);
            } else if (c.take("double(")) {
                a.kind = Argument::Kind::F64;
                a.real = real(c);
            } else {
                a.integer = sum(c, 0);
            }
            all.push_back(std::move(a));
        } while (c.take(","));
        if (!c.at_end()) {
            c.refuse("expected ',' or the end");
        }
        return all;
    }

    double real(Cursor& c) const {
        std::optional<double> v = c.real();
        if (!v) {
            std::string word = c.word();
            auto it = reals_.find(word);
            if (it == reals_.end()) {
                c.refuse("expected a number");
            }
            v = it->second;
        }
        c.expect(")");
        return *v;
    }

    const SourceKernel& source_;
    std::span<const Type> in_;
    std::map<std::string, Dim> sizes_;
    std::map<std::string, double> reals_;
    std::map<std::string, DType> types_;
    std::optional<Dims> rest_;
    BoundSource out_;
};

} // namespace

BoundSource bind_source(const SourceKernel& s, std::span<const Type> in) {
    return Binder(s, in).run();
}

} // namespace ingot
