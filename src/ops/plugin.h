// SPDX-License-Identifier: Apache-2.0
// Opaque layers: plugin runs code of the application; cuda_source carries its kernel as text in the
// graph. Both run on backends only.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Any inputs -> results with the types given here. The application's code is found by name,
/// version and namespace at run time (plan/plugin.h), and re-created from the fields.
struct Plugin {
    std::string name;
    std::string version;
    std::string space; // the namespace
    /// 3: IPluginV3, from fields; 2: IPluginV2, whose bytes are field 0.
    int64_t generation = 3;

    // Fields: types are PluginFieldType numbers, lengths count elements; bytes are concatenated,
    // each field aligned to field_alignment.
    std::vector<std::string> field_names;
    std::vector<int64_t> field_types;
    std::vector<int64_t> field_lengths;
    Tensor field_bytes = Tensor::zeros(DType::U8, {0});

    // Results: the name of an element type and a rank for each, and all their sizes.
    std::vector<std::string> dtypes;
    std::vector<int64_t> ranks;
    Dims sizes;
    /// Data-dependent sizes: the plugin writes symbols[i] to result size_results[i], an integer
    /// scalar; its value is at most most[i].
    Dims symbols;
    std::vector<int64_t> size_results;
    Dims most;
    /// For each result, the input that it updates in place, or -1; empty when none does.
    std::vector<int64_t> aliases;
    /// Shape inputs, which are not operands: their ranks (0 or 1); then, for each, its element
    /// count and its elements.
    std::vector<int64_t> shape_ranks;
    Dims shape_values;

    int64_t tactic = 0;
    /// Workspace bytes requested at the largest shapes it was built for.
    int64_t workspace = 0;

    static void fields(auto& s, auto&& f) {
        f("name", s.name), f("version", s.version), f("namespace", s.space),
            f("generation", s.generation), f("field_names", s.field_names),
            f("field_types", s.field_types), f("field_lengths", s.field_lengths),
            f("field_bytes", s.field_bytes), f("dtypes", s.dtypes), f("ranks", s.ranks),
            f("sizes", s.sizes), f("symbols", s.symbols), f("size_results", s.size_results),
            f("most", s.most), f("aliases", s.aliases), f("shape_ranks", s.shape_ranks),
            f("shape_values", s.shape_values), f("tactic", s.tactic), f("workspace", s.workspace);
    }
};
extern const OpDef plugin_def;

/// Result types from the attributes. Errors: InvalidModel for inconsistent lists.
std::vector<Type> plugin_results(const Plugin& p);

/// One field; a view into the plugin's attributes.
struct PluginFieldView {
    std::string_view name;
    int64_t type = 0;
    int64_t length = 0;
    std::span<const std::byte> bytes;
};
inline constexpr size_t field_alignment = 16;
/// Bytes of `length` elements of a PluginFieldType. Errors: InvalidModel for an unknown type.
size_t field_size(int64_t type, int64_t length);
/// Errors: InvalidModel for inconsistent lists and bytes.
std::vector<PluginFieldView> plugin_fields(const Plugin& p);
/// Replaces the fields by copies of `fields`.
void set_plugin_fields(Plugin& p, std::span<const PluginFieldView> fields);

/// A kernel as CUDA C++ text. ingot::CudaSource in include/ingot.h defines the texts.
struct SourceKernel {
    std::string title;
    std::string source;
    std::string kernel;
    std::string signature;
    std::string arguments;
    std::string grid;
    std::string block;
    std::string shared;
    std::string workspace;
    /// Names that expressions may use in addition to those of sizes.
    std::vector<std::string> int_names;
    std::vector<int64_t> int_values;
    std::vector<std::string> float_names;
    std::vector<double> float_values;

    static void fields(auto& s, auto&& f) {
        f("title", s.title), f("source", s.source), f("kernel", s.kernel),
            f("signature", s.signature), f("arguments", s.arguments), f("grid", s.grid),
            f("block", s.block), f("shared", s.shared), f("workspace", s.workspace),
            f("int_names", s.int_names), f("int_values", s.int_values),
            f("float_names", s.float_names), f("float_values", s.float_values);
    }
};
extern const OpDef cuda_source_def;

/// A cuda_source bound to input types.
struct BoundSource {
    struct Argument {
        enum class Kind : uint8_t { I64, I32, F32, F64 };
        Kind kind = Kind::I64;
        Dim integer;
        double real = 0;
    };
    /// Two sizes that the signature requires to be equal, and their location.
    struct Condition {
        Dim a, b;
        std::string what;
    };
    std::vector<Type> results;
    std::vector<Argument> arguments;
    Dims grid;  // three
    Dims block; // three
    Dim shared;
    Dim workspace;
    /// Type names of the signature and the types they stand for.
    std::vector<std::pair<std::string, DType>> types;
    std::vector<Condition> conditions;
};
/// Errors: InvalidArgument with the text, the position in it, and the expectation.
BoundSource bind_source(const SourceKernel& s, std::span<const Type> in);

} // namespace ingot
