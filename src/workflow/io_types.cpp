// SPDX-License-Identifier: Apache-2.0
#include "workflow/io_types.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/rewrite.h"
#include "ops/ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace ingot {

namespace {

using Types = std::vector<DType>;

struct Entry {
    std::optional<DType> type;            // none: unchanged
    std::vector<const IoFormat*> formats; // empty: row major
};

constexpr std::array<std::pair<std::string_view, DType>, 9> type_names = {{{"fp32", DType::F32},
                                                                           {"fp16", DType::F16},
                                                                           {"bf16", DType::BF16},
                                                                           {"int32", DType::I32},
                                                                           {"int64", DType::I64},
                                                                           {"int8", DType::I8},
                                                                           {"uint8", DType::U8},
                                                                           {"fp8", DType::F8E4M3},
                                                                           {"bool", DType::Bool}}};

std::optional<DType> type_named(std::string_view text) {
    for (const auto& [name, type] : type_names) {
        if (text == name) {
            return type;
        }
    }
    return std::nullopt;
}

[[noreturn]] void fail_entry(std::string_view option, std::string_view entry,
                             std::string_view part) {
    std::vector<std::string> types;
    for (const auto& [name, type] : type_names) {
        types.emplace_back(name);
    }
    std::vector<std::string> formats;
    for (const IoFormat& f : io_formats()) {
        formats.emplace_back(f.name);
    }
    fail(ErrorCode::InvalidArgument, option, ": '", entry, "': there is no '", part,
         "', expected TYPE, FORMAT[+FORMAT] or TYPE:FORMAT[+FORMAT]. Types: ", join(types, ", "),
         ". Formats: ", join(formats, ", "));
}

std::vector<const IoFormat*> parse_formats(std::string_view option, std::string_view entry,
                                           std::string_view list) {
    std::vector<const IoFormat*> out;
    while (true) {
        size_t plus = std::min(list.find('+'), list.size());
        const IoFormat* f = find_io_format(list.substr(0, plus));
        if (f == nullptr) {
            fail_entry(option, entry, list.substr(0, plus));
        }
        out.push_back(f);
        if (plus == list.size()) {
            return out;
        }
        list.remove_prefix(plus + 1);
    }
}

Entry parse_entry(std::string_view option, std::string_view entry) {
    size_t colon = std::min(entry.find(':'), entry.size());
    std::optional<DType> type = type_named(entry.substr(0, colon));
    if (colon < entry.size()) {
        if (!type) {
            fail_entry(option, entry, entry.substr(0, colon));
        }
        return {type, parse_formats(option, entry, entry.substr(colon + 1))};
    }
    return {type, type ? std::vector<const IoFormat*>() : parse_formats(option, entry, entry)};
}

/// One entry for each of `count` values, or one for all.
std::vector<Entry> parse_list(std::string_view option, std::string_view list, size_t count) {
    std::vector<Entry> entries;
    for (std::string_view rest = list; !rest.empty();) {
        size_t comma = std::min(rest.find(','), rest.size());
        entries.push_back(parse_entry(option, rest.substr(0, comma)));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    require(entries.size() <= 1 || entries.size() == count, ErrorCode::InvalidArgument, option, ' ',
            list, ": got ", entries.size(), " entries, expected 1 or ", count);
    return entries;
}

/// The types that the list gives to values of the declared types.
Types wanted(std::string_view option, std::string_view list, const Types& declared) {
    Types out = declared;
    std::vector<Entry> entries = parse_list(option, list, declared.size());
    for (size_t i = 0; i < out.size() && !entries.empty(); ++i) {
        bool one_for_all = entries.size() == 1 && declared.size() > 1;
        DType t = entries[one_for_all ? 0 : i].type.value_or(declared[i]);
        bool fits = is_float(declared[i]) ? is_float(t) && bit_width(t) >= 16
                                          : is_integer(declared[i]) && is_integer(t) &&
                                                bit_width(declared[i]) >= 32 && bit_width(t) >= 32;
        require(fits || one_for_all || t == declared[i], ErrorCode::InvalidArgument, option, ' ',
                list, ": entry ", i + 1, " asks for ", t, ", the model has ", declared[i]);
        out[i] = fits ? t : declared[i];
    }
    return out;
}

/// Adds to `named` the formats that the list allows.
void allow(std::string_view option, std::string_view list, const Graph& g,
           std::span<const Value> values, const std::vector<std::string>& names,
           AllowedFormats::Named& named) {
    std::vector<Entry> entries = parse_list(option, list, values.size());
    bool one_for_all = entries.size() == 1 && values.size() > 1;
    bool any = entries.empty() || entries[0].formats.empty() || !one_for_all;
    for (size_t i = 0; i < values.size() && !entries.empty(); ++i) {
        const Entry& e = entries[one_for_all ? 0 : i];
        auto fits = [&](const IoFormat* f) { return refusal(*f, g.type(values[i])).empty(); };
        bool one_fits = std::any_of(e.formats.begin(), e.formats.end(), fits);
        if (!e.formats.empty() && (one_fits || !one_for_all)) {
            named.insert_or_assign(names[i], e.formats);
            any = true;
        }
    }
    require(any, ErrorCode::InvalidArgument, option, ' ', list,
            ": none of them can have this format: give the format of each, in order");
}

Types types_of(const Graph& g, std::span<const Value> values) {
    Types out;
    for (Value v : values) {
        out.push_back(g.type(v).dtype);
    }
    return out;
}

} // namespace

Graph with_io_types(const Graph& g, std::string_view inputs, std::string_view outputs) {
    Types declared_in = types_of(g, g.inputs());
    Types declared_out = types_of(g, g.outputs());
    Types in = wanted("--inputIOFormats", inputs, declared_in);
    Types out = wanted("--outputIOFormats", outputs, declared_out);
    if (in == declared_in && out == declared_out) {
        return g;
    }
    Graph typed(g.name());
    Values arguments;
    for (size_t i = 0; i < in.size(); ++i) {
        Value v = g.inputs()[i];
        Value given = typed.add_input(std::string(g.value_name(v)), {in[i], g.type(v).dims});
        arguments.push_back(ops::cast(typed, given, declared_in[i]));
    }
    Values results = inline_graph(typed, g, arguments);
    for (size_t i = 0; i < out.size(); ++i) {
        typed.add_output(g.output_names()[i], ops::cast(typed, results[i], out[i]));
    }
    return typed;
}

void allow_formats(const Graph& g, std::string_view inputs, std::string_view outputs,
                   AllowedFormats& formats) {
    std::vector<std::string> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v));
    }
    allow("--inputIOFormats", inputs, g, g.inputs(), names, formats.inputs);
    allow("--outputIOFormats", outputs, g, g.outputs(), g.output_names(), formats.outputs);
}

} // namespace ingot
