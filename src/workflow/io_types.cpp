// SPDX-License-Identifier: Apache-2.0
#include "workflow/io_types.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/rewrite.h"
#include "ops/ops.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace ingot {

namespace {

using Types = std::vector<DType>;

/// Nothing for an entry that states a layout only: the type stays.
std::optional<DType> parse_entry(std::string_view option, std::string_view entry) {
    constexpr std::array<std::pair<std::string_view, DType>, 5> names = {{{"fp32", DType::F32},
                                                                          {"fp16", DType::F16},
                                                                          {"bf16", DType::BF16},
                                                                          {"int32", DType::I32},
                                                                          {"int64", DType::I64}}};
    if (entry == "chw") {
        return std::nullopt;
    }
    size_t colon = std::min(entry.find(':'), entry.size());
    std::string_view layout = entry.substr(std::min(colon + 1, entry.size()));
    require(layout.empty() || layout == "chw", ErrorCode::Unsupported, option, ": '", entry,
            "': the layout '", layout, "' is not supported, only chw is");
    for (const auto& [name, type] : names) {
        if (entry.substr(0, colon) == name) {
            return type;
        }
    }
    fail(ErrorCode::InvalidArgument, option, ": '", entry,
         "': expected fp32, fp16, bf16, int32 or int64, and :chw if anything");
}

/// The types that the list gives to values of these types.
Types wanted(std::string_view option, std::string_view list, const Types& declared) {
    Types out = declared;
    std::vector<std::optional<DType>> entries;
    for (std::string_view rest = list; !rest.empty();) {
        size_t comma = std::min(rest.find(','), rest.size());
        entries.push_back(parse_entry(option, rest.substr(0, comma)));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    require(entries.size() <= 1 || entries.size() == declared.size(), ErrorCode::InvalidArgument,
            option, ' ', list, ": got ", entries.size(), " entries, expected 1 or ",
            declared.size());
    for (size_t i = 0; i < out.size() && !entries.empty(); ++i) {
        bool one_for_all = entries.size() == 1 && declared.size() > 1;
        DType t = entries[one_for_all ? 0 : i].value_or(declared[i]);
        bool fits = is_float(t) == is_float(declared[i]) &&
                    (is_float(t) || (is_integer(declared[i]) && bit_width(declared[i]) >= 32));
        require(fits || one_for_all || t == declared[i], ErrorCode::InvalidArgument, option, ' ',
                list, ": entry ", i + 1, " asks for ", t, ", the model has ", declared[i]);
        out[i] = fits ? t : declared[i];
    }
    return out;
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

} // namespace ingot
