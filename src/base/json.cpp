// SPDX-License-Identifier: Apache-2.0
// nlohmann's event parser reads and its printer escapes; no nlohmann value with elements is built.
#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ingot {

namespace {

/// Builds a value from the parser's events.
class Builder : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit Builder(int levels) : levels_(levels) {}
    Json take() { return std::move(root_); }

    bool null() override { return put({}); }
    bool boolean(bool v) override { return put(v); }
    bool number_integer(number_integer_t v) override { return put(v); }
    bool number_unsigned(number_unsigned_t v) override { return put(v); }
    bool number_float(number_float_t, const string_t& text) override {
        fail(ErrorCode::InvalidArgument, "an integer is expected, got ", text);
    }
    bool string(string_t& v) override { return put(std::move(v)); }
    bool binary(binary_t&) override { return false; } // binary formats only
    bool start_object(size_t) override { return enter(Json::object()); }
    bool key(string_t& v) override {
        key_ = std::move(v);
        return true;
    }
    bool end_object() override {
        check_keys(open_.back()->members());
        open_.pop_back();
        return true;
    }
    bool start_array(size_t) override { return enter(Json::list()); }
    bool end_array() override {
        open_.pop_back();
        return true;
    }
    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
        std::string_view text = e.what(); // "[json.exception.parse_error.101] parse error at ..."
        size_t end = text.find("] ");
        fail(ErrorCode::InvalidArgument, text.substr(end == text.npos ? 0 : end + 2));
    }

private:
    /// Each open container is the last element of its parent, so references to it hold until it
    /// closes.
    Json& insert(Json v) {
        if (open_.empty()) {
            root_ = std::move(v);
            return root_;
        }
        Json& parent = *open_.back();
        if (parent.is_list()) {
            return parent.add(std::move(v));
        }
        return parent.set(std::move(key_), std::move(v));
    }
    bool put(Json v) {
        insert(std::move(v));
        return true;
    }
    bool enter(Json v) {
        require(open_.size() < static_cast<size_t>(levels_), ErrorCode::InvalidArgument,
                "it is nested deeper than ", levels_, " levels");
        open_.push_back(&insert(std::move(v)));
        return true;
    }
    static void check_keys(const Json::Members& members) {
        std::vector<std::string_view> keys;
        keys.reserve(members.size());
        for (const Json::Member& m : members) {
            keys.push_back(m.key);
        }
        std::sort(keys.begin(), keys.end());
        auto twice = std::adjacent_find(keys.begin(), keys.end());
        require(twice == keys.end(), ErrorCode::InvalidArgument, "an object has '",
                twice == keys.end() ? std::string_view() : *twice, "' twice");
    }

    int levels_;
    Json root_;
    std::vector<Json*> open_; // objects and lists, outermost first
    std::string key_;
};

void print_text(std::string& out, const std::string& v) {
    try {
        append(out, nlohmann::json(v).dump());
    } catch (const nlohmann::json::exception&) {
        fail(ErrorCode::InvalidArgument, "a text is not UTF-8: '", v, "'");
    }
}

void begin_line(std::string& out, int indent, int depth) {
    if (indent >= 0) {
        append(out, '\n');
        out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
    }
}

} // namespace

Json Json::list() {
    Json j;
    j.value_ = List();
    return j;
}

Json Json::object() {
    Json j;
    j.value_ = Members();
    return j;
}

bool Json::is_list() const {
    return std::holds_alternative<List>(value_);
}

Json::Json() noexcept = default;
Json::~Json() = default;
/// libstdc++'s variant (to version 12 at least) is destroyed as something that it is not where its
/// own copy finds no memory.
Json::Json(const Json& from) {
    std::visit([&](const auto& value) { value_ = value; }, from.value_);
}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json& from) {
    return *this = Json(from);
}
Json& Json::operator=(Json&&) noexcept = default;

Json::Json(bool v) : value_(v) {}

Json::Json(Integer v) : value_(v.value) {}

Json::Json(std::string v) : value_(std::move(v)) {}

Json::Json(std::string_view v) : value_(std::string(v)) {}

Json::Json(const char* v) : value_(std::string(v)) {}

Json& Json::add() {
    return add(Json());
}

Json& Json::add(Json value) {
    if (std::holds_alternative<std::monostate>(value_)) {
        value_ = List();
    }
    CHECK(is_list(), "cannot add an element: not a list");
    return std::get<List>(value_).emplace_back(std::move(value));
}

Json& Json::set(std::string key, Json value) {
    if (std::holds_alternative<std::monostate>(value_)) {
        value_ = Members();
    }
    CHECK(std::holds_alternative<Members>(value_), "cannot set a member: not an object");
    auto& all = std::get<Members>(value_);
    all.push_back({std::move(key), std::move(value)});
    return all.back().value;
}

const Json::List& Json::items() const {
    const List* list = std::get_if<List>(&value_);
    if (list == nullptr) {
        refuse("a list");
    }
    return *list;
}

const Json::Members& Json::members() const {
    const Members* all = std::get_if<Members>(&value_);
    if (all == nullptr) {
        refuse("an object");
    }
    return *all;
}

const Json& Json::at(size_t index) const {
    const List& all = items();
    require(index < all.size(), ErrorCode::InvalidArgument, "a list of ", all.size(),
            " elements has none at ", index);
    return all[index];
}

const Json* Json::find(std::string_view key) const {
    const Members& all = members();
    auto it = std::find_if(all.begin(), all.end(), [&](const Member& m) { return m.key == key; });
    return it == all.end() ? nullptr : &it->value;
}

const Json& Json::at(std::string_view key) const {
    const Json* found = find(key);
    require(found != nullptr, ErrorCode::InvalidArgument, "an object has no '", key, "'");
    return *found;
}

void Json::refuse(std::string_view expected) const {
    constexpr std::array<const char*, 6> kinds = {"null",   "a truth value", "an integer",
                                                  "a text", "a list",        "an object"};
    fail(ErrorCode::InvalidArgument, expected, " is expected, got ", kinds.at(value_.index()));
}

void Json::read(bool& out) const {
    const bool* v = std::get_if<bool>(&value_);
    if (v == nullptr) {
        refuse("a truth value");
    }
    out = *v;
}

void Json::read(int64_t& out) const {
    const int64_t* v = std::get_if<int64_t>(&value_);
    if (v == nullptr) {
        refuse("an integer");
    }
    out = *v;
}

void Json::read(std::string& out) const {
    const std::string* v = std::get_if<std::string>(&value_);
    if (v == nullptr) {
        refuse("a text");
    }
    out = *v;
}

void Json::print(std::string& out, int indent, int depth) const {
    auto each = [&](char open, const auto& all, char close, const auto& one) {
        append(out, open);
        for (size_t i = 0; i < all.size(); ++i) {
            append(out, i == 0 ? "" : ",");
            begin_line(out, indent, depth + 1);
            one(all[i]);
        }
        if (!all.empty()) {
            begin_line(out, indent, depth);
        }
        append(out, close);
    };
    if (const bool* b = std::get_if<bool>(&value_)) {
        append(out, *b ? "true" : "false");
    } else if (const int64_t* i = std::get_if<int64_t>(&value_)) {
        append(out, *i);
    } else if (const std::string* s = std::get_if<std::string>(&value_)) {
        print_text(out, *s);
    } else if (const List* list = std::get_if<List>(&value_)) {
        each('[', *list, ']', [&](const Json& j) { j.print(out, indent, depth + 1); });
    } else if (const Members* all = std::get_if<Members>(&value_)) {
        each('{', *all, '}', [&](const Member& m) {
            print_text(out, m.key);
            append(out, indent >= 0 ? ": " : ":");
            m.value.print(out, indent, depth + 1);
        });
    } else {
        append(out, "null");
    }
}

std::string Json::dump(int indent) const {
    std::string out;
    print(out, indent, 0);
    return out;
}

Json Json::parse(std::string_view text, int levels) {
    Builder builder(levels);
    nlohmann::json::sax_parse(text, &builder);
    return builder.take();
}

} // namespace ingot
