// SPDX-License-Identifier: Apache-2.0
// Strings at the ends of a model: operators that only turn indices into labels, and what the model
// is without them.
#pragma once

#include "onnx/model.h"

#include <string>
#include <vector>

namespace ingot::onnx {

struct StringEnds {
    /// Nodes that read or make strings, or maps of labels (ZipMap); empty when nothing can be cut.
    std::vector<std::string> nodes;
    std::vector<std::string> outputs; // graph outputs that go with them
    std::vector<std::string> instead; // tensors that become outputs
    /// Why strings cannot be cut: they are inputs, or other nodes compute with them. "" for a model
    /// without strings.
    std::string obstacle;

    /// "1 string operator at the ends ('label'): output 'label' becomes 'index'", or the obstacle.
    std::string text() const;
};
StringEnds string_ends(const Model& model);

/// The model without them: tensors that they read are outputs in place of theirs, behind the other
/// outputs. A model without such nodes is returned unchanged. Errors: Unsupported with the
/// obstacle.
Model without_string_ends(const Model& model);

/// Advice for a model that is refused and has strings, as a line of its own; else "".
std::string string_advice(const Model& model);

} // namespace ingot::onnx
