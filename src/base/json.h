// SPDX-License-Identifier: Apache-2.0
// Json: a JSON value for text that engines carry and inspectors print. Unlike nlohmann's value, it
// allocates nothing when destroyed or moved, so that a half-built value unwinds safely when memory
// runs out.
#pragma once

#include "base/error.h"

#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ingot {

/// Null, bool, 64-bit integer, string, list, or an object that keeps the order of its members; no
/// fractions. Errors: InvalidArgument for values outside these.
class Json {
public:
    struct Member;
    using List = std::vector<Json>;
    using Members = std::vector<Member>;

    Json() noexcept;
    ~Json();
    Json(const Json&);
    Json(Json&&) noexcept;
    Json& operator=(const Json&);
    Json& operator=(Json&&) noexcept;
    // Values turn into JSON where one is expected.
    // NOLINTBEGIN(google-explicit-constructor)
    Json(bool v);
    template <std::integral T>
    requires(!std::same_as<T, bool>) Json(T v) : Json(Integer{integer(v)}) {}
    Json(std::string v);
    Json(std::string_view v);
    Json(const char* v);
    template <class T>
    Json(const std::vector<T>& v);
    template <class T, size_t n>
    Json(const std::array<T, n>& v);
    template <class T, class Less>
    Json(const std::map<std::string, T, Less>& v);
    // NOLINTEND(google-explicit-constructor)
    static Json list();
    static Json object();

    /// Appends to a list; a null becomes one. The reference holds until the next append. Without a
    /// value: appends null.
    Json& add();
    Json& add(Json value);
    /// Appends to an object; a null becomes one. The key must be new. The reference holds until the
    /// next append.
    Json& set(std::string key, Json value);

    bool is_list() const;
    const List& items() const;
    const Members& members() const;
    const Json& at(size_t index) const;
    const Json& at(std::string_view key) const;
    /// Null when absent. Linear search.
    const Json* find(std::string_view key) const;

    /// Converts to bool, an integer type that can hold it, std::string, or a std::vector,
    /// std::array or std::map of these.
    template <class T>
    T get() const {
        T out{};
        read(out);
        return out;
    }
    template <class T>
    T value(std::string_view key, const T& otherwise) const {
        const Json* found = find(key);
        return found == nullptr ? otherwise : found->get<T>();
    }

    /// On one line without spaces, or one element a line with `indent` spaces for each level of
    /// nesting. Errors: InvalidArgument for a string that is not UTF-8.
    std::string dump(int indent = -1) const;
    /// Errors: InvalidArgument, also for nesting beyond `levels` and for a duplicate key.
    static Json parse(std::string_view text, int levels = 8);

private:
    struct Integer {
        int64_t value;
    };
    explicit Json(Integer v);
    template <std::integral T>
    static int64_t integer(T v) {
        require(std::in_range<int64_t>(v), ErrorCode::InvalidArgument, "an integer of at most ",
                INT64_MAX, " is expected, got ", v);
        return static_cast<int64_t>(v);
    }
    [[noreturn]] void refuse(std::string_view expected) const;
    void read(bool& out) const;
    void read(int64_t& out) const;
    void read(std::string& out) const;
    template <std::integral T>
    void read(T& out) const;
    template <class T>
    void read(std::vector<T>& out) const;
    template <class T, size_t n>
    void read(std::array<T, n>& out) const;
    template <class T, class Less>
    void read(std::map<std::string, T, Less>& out) const;
    void print(std::string& out, int indent, int depth) const;

    std::variant<std::monostate, bool, int64_t, std::string, List, Members> value_;
};

struct Json::Member {
    std::string key;
    Json value;
};

template <class T>
Json::Json(const std::vector<T>& v) : Json(list()) {
    for (const T& one : v) {
        add(one);
    }
}

template <class T, size_t n>
Json::Json(const std::array<T, n>& v) : Json(list()) {
    for (const T& one : v) {
        add(one);
    }
}

template <class T, class Less>
Json::Json(const std::map<std::string, T, Less>& v) : Json(object()) {
    for (const auto& [key, one] : v) {
        set(key, one);
    }
}

template <std::integral T>
void Json::read(T& out) const {
    auto v = get<int64_t>();
    require(std::in_range<T>(v), ErrorCode::InvalidArgument, v, " is too large here");
    out = static_cast<T>(v);
}

template <class T>
void Json::read(std::vector<T>& out) const {
    for (const Json& one : items()) {
        out.push_back(one.get<T>());
    }
}

template <class T, size_t n>
void Json::read(std::array<T, n>& out) const {
    require(items().size() == n, ErrorCode::InvalidArgument, "a list of ", n,
            " elements is expected, got ", items().size());
    for (size_t i = 0; i < n; ++i) {
        out[i] = at(i).get<T>();
    }
}

template <class T, class Less>
void Json::read(std::map<std::string, T, Less>& out) const {
    for (const Member& m : members()) {
        out.emplace(m.key, m.value.get<T>());
    }
}

} // namespace ingot
