// SPDX-License-Identifier: Apache-2.0
#include "ops/plugin.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <algorithm>
#include <cstring>

namespace ingot {

namespace {

/// Bits per element, indexed by PluginFieldType.
constexpr int field_bits[] = {16, 32, 64, 8, 16, 32, 8, 576, 8, 16, 64, 8, 4, 4};

void ensure(bool condition, const auto&... text) {
    require(condition, ErrorCode::InvalidModel, "plugin: ", text...);
}

DType result_dtype(const std::string& text) {
    std::optional<DType> t = parse_dtype(text);
    ensure(t.has_value(), "'", text, "' is not an element type");
    return *t;
}

void check_sizes_of_data(const Plugin& p, std::span<const Type> results) {
    ensure(p.symbols.size() == p.size_results.size() && p.symbols.size() == p.most.size(),
           p.symbols.size(), " symbols, ", p.size_results.size(), " results that hold them and ",
           p.most.size(), " bounds");
    for (size_t i = 0; i < p.symbols.size(); ++i) {
        ensure(!p.symbols[i].symbol_name().empty(), "'", p.symbols[i], "' is not a symbol");
        int64_t r = p.size_results[i];
        ensure(r >= 0 && r < static_cast<int64_t>(results.size()), "size ", i, " is in result ", r,
               " of ", results.size());
        const Type& t = results[static_cast<size_t>(r)];
        bool integer = t.dtype == DType::I32 || t.dtype == DType::I64;
        ensure(integer && t.dims.empty(), "result ", r, " holds a size and is ", t,
               ", expected an i32 or i64 scalar");
        for (size_t k = 0; k < i; ++k) {
            ensure(p.size_results[k] != r && !(p.symbols[k] == p.symbols[i]), "result ", r,
                   " holds two sizes");
        }
    }
}

void check_aliases(const Plugin& p, std::span<const Type> in, std::span<const Type> out) {
    ensure(p.aliases.empty() || p.aliases.size() == out.size(), p.aliases.size(), " aliases for ",
           out.size(), " results");
    for (size_t i = 0; i < p.aliases.size(); ++i) {
        int64_t a = p.aliases[i];
        ensure(a >= -1 && a < static_cast<int64_t>(in.size()), "result ", i, " updates input ", a,
               " of ", in.size());
        if (a < 0) {
            continue;
        }
        ensure(std::count(p.aliases.begin(), p.aliases.end(), a) == 1, "input ", a,
               " is updated by two results");
        const Type& from = in[static_cast<size_t>(a)];
        ensure(from.dtype == out[i].dtype && from.rank() == out[i].rank(), "result ", i, " ",
               out[i], " updates input ", a, " ", from);
    }
}

void check_shape_inputs(const Plugin& p) {
    size_t at = 0;
    for (int64_t rank : p.shape_ranks) {
        ensure(rank == 0 || rank == 1, "a shape input has rank ", rank, ", expected 0 or 1");
        ensure(at < p.shape_values.size(), "shape inputs have too few elements");
        std::optional<int64_t> n = p.shape_values[at].as_const();
        size_t left = p.shape_values.size() - at - 1;
        ensure(n && *n >= 0 && static_cast<uint64_t>(*n) <= left && (rank == 1 || *n == 1),
               "a shape input has ", p.shape_values[at], " elements");
        at += 1 + static_cast<size_t>(*n);
    }
    ensure(at == p.shape_values.size(), "shape inputs have too many elements");
}

std::vector<Type> infer(const Plugin& p, std::span<const Type> in) {
    ensure(!p.name.empty(), "it has no name");
    ensure(p.generation == 2 || p.generation == 3, "its generation is ", p.generation,
           ", expected 2 or 3");
    ensure(p.workspace >= 0, "it wants ", p.workspace, " bytes of workspace");
    ensure(p.tactic >= INT32_MIN && p.tactic <= INT32_MAX, "its tactic is ", p.tactic);
    static_cast<void>(plugin_fields(p));
    std::vector<Type> out = plugin_results(p);
    check_sizes_of_data(p, out);
    check_aliases(p, in, out);
    check_shape_inputs(p);
    return out;
}

} // namespace

std::vector<Type> plugin_results(const Plugin& p) {
    ensure(!p.dtypes.empty() && p.dtypes.size() == p.ranks.size(), p.dtypes.size(), " types and ",
           p.ranks.size(), " ranks of results");
    std::vector<Type> out;
    size_t at = 0;
    for (size_t i = 0; i < p.dtypes.size(); ++i) {
        int64_t rank = p.ranks[i];
        ensure(rank >= 0 && static_cast<uint64_t>(rank) <= p.sizes.size() - at, "result ", i,
               " has rank ", rank, ", ", p.sizes.size() - at, " sizes are left");
        auto begin = p.sizes.begin() + static_cast<ptrdiff_t>(at);
        out.push_back({result_dtype(p.dtypes[i]), Dims(begin, begin + rank)});
        at += static_cast<size_t>(rank);
    }
    ensure(at == p.sizes.size(), p.sizes.size(), " sizes of results, expected ", at);
    return out;
}

size_t field_size(int64_t type, int64_t length) {
    ensure(type >= 0 && type < static_cast<int64_t>(std::size(field_bits)), "a field has type ",
           type, ", expected 0 to ", std::size(field_bits) - 1);
    ensure(length >= 0 && length <= INT32_MAX, "a field has ", length, " elements");
    return (static_cast<size_t>(length) * static_cast<size_t>(field_bits[type]) + 7) / 8;
}

std::vector<PluginFieldView> plugin_fields(const Plugin& p) {
    size_t count = p.field_names.size();
    ensure(p.field_types.size() == count && p.field_lengths.size() == count, count,
           " names of fields, ", p.field_types.size(), " types, ", p.field_lengths.size(),
           " lengths");
    ensure(p.field_bytes.defined() && p.field_bytes.dtype() == DType::U8 &&
               p.field_bytes.rank() == 1,
           "the bytes of the fields are not a u8 tensor of rank 1");
    std::vector<PluginFieldView> out;
    std::span<const std::byte> left = p.field_bytes.bytes();
    for (size_t i = 0; i < count; ++i) {
        size_t bytes = field_size(p.field_types[i], p.field_lengths[i]);
        size_t room = (bytes + field_alignment - 1) / field_alignment * field_alignment;
        ensure(room <= left.size(), "field '", p.field_names[i], "' has ", bytes, " bytes, ",
               left.size(), " are left");
        out.push_back({p.field_names[i], p.field_types[i], p.field_lengths[i], left.first(bytes)});
        left = left.subspan(room);
    }
    ensure(left.empty(), left.size(), " bytes belong to no field");
    return out;
}

void set_plugin_fields(Plugin& p, std::span<const PluginFieldView> fields) {
    p.field_names.clear();
    p.field_types.clear();
    p.field_lengths.clear();
    size_t total = 0;
    for (const PluginFieldView& f : fields) {
        size_t bytes = field_size(f.type, f.length);
        CHECK(bytes == f.bytes.size(), "a field's length does not match its bytes");
        total += (bytes + field_alignment - 1) / field_alignment * field_alignment;
    }
    p.field_bytes = Tensor::zeros(DType::U8, {static_cast<int64_t>(total)});
    std::byte* at = total == 0 ? nullptr : p.field_bytes.mutable_bytes().data();
    for (const PluginFieldView& f : fields) {
        p.field_names.emplace_back(f.name);
        p.field_types.push_back(f.type);
        p.field_lengths.push_back(f.length);
        if (!f.bytes.empty()) {
            std::memcpy(at, f.bytes.data(), f.bytes.size());
            at += (f.bytes.size() + field_alignment - 1) / field_alignment * field_alignment;
        }
    }
}

/// An op without a reference evaluation.
const OpDef plugin_def = [] {
    OpDef d = detail::base_def<Plugin>("plugin", {Rounding::Matters, InHalf::Wide, like_result});
    d.infer = [](const void* a, std::span<const Type> in) {
        return infer(*static_cast<const Plugin*>(a), in);
    };
    return d;
}();

const OpDef cuda_source_def = [] {
    OpDef d = detail::base_def<SourceKernel>("cuda_source",
                                             {Rounding::Matters, InHalf::Wide, like_result});
    d.infer = [](const void* a, std::span<const Type> in) {
        return bind_source(*static_cast<const SourceKernel*>(a), in).results;
    };
    return d;
}();

extern const OpTable plugin_ops;
static const OpDef* const list[] = {&plugin_def, &cuda_source_def};
const OpTable plugin_ops = list;

} // namespace ingot
