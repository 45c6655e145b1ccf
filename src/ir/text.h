// SPDX-License-Identifier: Apache-2.0
// The text form of graphs: for people, tests and dumps. A graph printed in full parses back to a
// graph that prints the same.
//
//   graph main(%image: f32[batch,1,8,8]) {
//     %w = constant() {value=f32[2] [1,2]} : f32[2]
//     %2 = conv(%image, %w) {strides=[1,1], low=[1,1]} : f32[batch,8,8,8] "conv1"
//     return %2 as scores
//   }
//
// A value is printed by its name if that is unique, else by its number; names that are not plain
// words are quoted (%"a b"). Attributes that equal their defaults are omitted; bodies appear among
// the attributes as nested graphs. After an input's type, `= [N,4]` gives symbolically known
// contents (`_` for unknown elements). White space is free; `#` starts a comment.
#pragma once

#include "ir/graph.h"

namespace ingot {

struct PrintOptions {
    /// Prints constants of any size, the larger ones as x"hex"; otherwise as <hash of their bytes>.
    bool full = false;
    /// Constants up to this many elements are printed as numbers.
    int64_t max_elements = 16;
    bool origins = true;
};
std::string print(const Graph& g, const PrintOptions& options = {});
/// "name=value, ..." of the attributes that differ from their defaults.
std::string print_attrs(const OpDef& def, const void* attrs, const PrintOptions& options = {});

struct ParseOptions {
    /// Finds ops by name (ops/op_table.h); null where no op occurs.
    const OpDef* (*find_op)(std::string_view name) = nullptr;
    /// Returns the contents of constants that were printed as <hash>; may be empty when there are
    /// none.
    std::function<Tensor(const Type& type, std::string_view hash)> tensor;
};
/// Errors: InvalidArgument with line and column; errors of inference get that prefix.
Graph parse_graph(std::string_view text, const ParseOptions& options);
/// Attributes of one op from "fn=\"sum\" axes=[1]"; commas between them are optional.
std::shared_ptr<const void> parse_attrs(const OpDef& def, std::string_view text,
                                        const ParseOptions& options = {});

} // namespace ingot
