// SPDX-License-Identifier: Apache-2.0
// Layers that Ingot does not know: plugin, whose code the application has, and cuda_source, whose
// kernel travels with the graph as text. Nothing looks inside: both run on backends only.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Any inputs -> results whose types stand here. The application's code is found by name, version
/// and namespace when the graph is run (plan/plugin.h), and made anew from the fields.
struct Plugin {
    std::string name;
    std::string version;
    std::string space; // the namespace
    /// 3: IPluginV3, from fields; 2: IPluginV2, whose bytes are field 0.
    int64_t generation = 3;

    // Fields: types are the numbers of PluginFieldType, lengths count elements; bytes stand one
    // after another, each beginning at a multiple of field_alignment.
    std::vector<std::string> field_names;
    std::vector<int64_t> field_types;
    std::vector<int64_t> field_lengths;
    Tensor field_bytes = Tensor::zeros(DType::U8, {0});

    // Results: an element type's name and a rank for each, and all their sizes.
    std::vector<std::string> dtypes;
    std::vector<int64_t> ranks;
    Dims sizes;
    /// Sizes that the plugin finds out: symbols[i] is what it writes to result size_results[i], an
    /// integer scalar, and at most most[i].
    Dims symbols;
    std::vector<int64_t> size_results;
    Dims most;
    /// For each result the input that it updates in place, or -1; empty for none.
    std::vector<int64_t> aliases;
    /// Shape inputs, which are no operands: their ranks (0 or 1), and of each how many elements it
    /// has, and these.
    std::vector<int64_t> shape_ranks;
    Dims shape_values;

    int64_t tactic = 0;
    /// Bytes that it asked for at the largest shapes it was built for.
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

/// Results as the attributes have them. Errors: InvalidModel for lists that do not fit together.
std::vector<Type> plugin_results(const Plugin& p);

/// One field; its bytes belong to the plugin's attributes.
struct PluginFieldView {
    std::string_view name;
    int64_t type = 0;
    int64_t length = 0;
    std::span<const std::byte> bytes;
};
inline constexpr size_t field_alignment = 16;
/// Bytes of `length` elements of a PluginFieldType. Errors: InvalidModel for a number that is none.
size_t field_size(int64_t type, int64_t length);
/// Errors: InvalidModel for lists and bytes that do not fit together.
std::vector<PluginFieldView> plugin_fields(const Plugin& p);
/// Replaces the fields by copies of these.
void set_plugin_fields(Plugin& p, std::span<const PluginFieldView> fields);

/// A kernel as CUDA C++ text. Texts are as ingot::CudaSource in include/ingot.h has them.
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
    /// Names that expressions may use beside those of sizes.
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

/// What a cuda_source is for inputs of these types.
struct BoundSource {
    struct Argument {
        enum class Kind : uint8_t { I64, I32, F32, F64 };
        Kind kind = Kind::I64;
        Dim integer;
        double real = 0;
    };
    /// Sizes that the signature says are equal, and where.
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
    /// Names of types in the signature, and what they stand for.
    std::vector<std::pair<std::string, DType>> types;
    std::vector<Condition> conditions;
};
/// Errors: InvalidArgument with the text, the place in it, and what was expected.
BoundSource bind_source(const SourceKernel& s, std::span<const Type> in);

} // namespace ingot
