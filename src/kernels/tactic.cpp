// SPDX-License-Identifier: Apache-2.0
#include "kernels/tactic.h"

#include "base/error.h"
#include "base/text.h"

#include <charconv>
#include <map>
#include <variant>

namespace ingot::kernels {

namespace {

using Field = std::variant<int*, std::string*>;

/// The fields of parameters, by name.
struct FieldMap : ParameterVisitor {
    std::map<std::string_view, Field> fields;

    FieldMap(const Algorithm& a, void* parameters) { a.visit(parameters, *this); }
    void field(std::string_view name, int& v) override { fields.emplace(name, &v); }
    void field(std::string_view name, std::string& v) override { fields.emplace(name, &v); }
};

/// A pattern in pieces: literal text, then a field; the last one has no field.
struct Piece {
    std::string_view literal;
    std::string_view field;
};

std::vector<Piece> pieces_of(std::string_view pattern) {
    std::vector<Piece> out;
    for (;;) {
        size_t open = pattern.find('{');
        if (open == std::string_view::npos) {
            out.push_back({pattern, {}});
            return out;
        }
        size_t close = pattern.find('}', open);
        CHECK(close != std::string_view::npos, "no end of a field in '", pattern, "'");
        out.push_back({pattern.substr(0, open), pattern.substr(open + 1, close - open - 1)});
        pattern.remove_prefix(close + 1);
    }
}

std::string print(const Algorithm& a, void* parameters) {
    FieldMap map(a, parameters);
    std::string out;
    size_t printed = 0;
    for (const Piece& p : pieces_of(a.pattern)) {
        append(out, p.literal);
        if (p.field.empty()) {
            continue;
        }
        auto it = map.fields.find(p.field);
        CHECK(it != map.fields.end(), "'", a.pattern, "' names '", p.field, "', which is no field");
        std::visit([&out](const auto* v) { append(out, *v); }, it->second);
        ++printed;
    }
    CHECK(printed == map.fields.size(), "'", a.pattern, "' does not name every field");
    return out;
}

/// Reads the value at the start of `text` and removes it; `next`: the literal after it.
bool take(std::string_view& text, std::string_view next, Field field) {
    if (auto* word = std::get_if<std::string*>(&field)) {
        size_t end = next.empty() ? text.size() : text.rfind(next);
        if (end == std::string_view::npos) {
            return false;
        }
        **word = text.substr(0, end);
        text.remove_prefix(end);
        return true;
    }
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), *std::get<int*>(field));
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
}

} // namespace

Tactic make_tactic(const Algorithm& algorithm, std::shared_ptr<void> parameters, double cost_us) {
    Tactic t;
    t.name = print(algorithm, parameters.get());
    t.cost_us = cost_us;
    t.algorithm = &algorithm;
    t.parameters = std::move(parameters);
    return t;
}

std::optional<Tactic> parse_tactic(const Algorithm& algorithm, std::string_view name) {
    std::shared_ptr<void> parameters = algorithm.make();
    FieldMap map(algorithm, parameters.get());
    std::vector<Piece> pieces = pieces_of(algorithm.pattern);
    std::string_view rest = name;
    for (size_t i = 0; i < pieces.size(); ++i) {
        if (!rest.starts_with(pieces[i].literal)) {
            return std::nullopt;
        }
        rest.remove_prefix(pieces[i].literal.size());
        if (!pieces[i].field.empty() &&
            !take(rest, pieces[i + 1].literal, map.fields.at(pieces[i].field))) {
            return std::nullopt;
        }
    }
    Tactic t = make_tactic(algorithm, std::move(parameters), 0);
    // Other spellings of a number do not parse.
    return rest.empty() && t.name == name ? std::optional(std::move(t)) : std::nullopt;
}

} // namespace ingot::kernels
