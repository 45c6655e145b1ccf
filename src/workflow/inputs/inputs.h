// SPDX-License-Identifier: Apache-2.0
// Inputs of a run: from files, or random in a range that suits the type.
#pragma once

#include "engine/engine.h"
#include "workflow/inputs/image.h"

namespace ingot {

struct InputSource {
    std::vector<std::pair<std::string, std::string>>
        files; // input name, path of .npy, .png, .jpg or raw bytes in the input's format
    std::vector<std::pair<std::string, Shape>> shapes;
    ImageOptions image;
    uint64_t seed = 0;
};
struct LoadedInputs {
    std::vector<Tensor> tensors;     // in the order of the graph's inputs
    std::vector<std::string> random; // names of inputs without a file
};
/// Shapes come from the file, else `shapes`, else symbols bound by other inputs, else the profile.
/// Errors: InvalidArgument naming input, got and expected, and the nearest name.
LoadedInputs load_inputs(const Engine& engine, const InputSource& source);

/// The shapes that are known without an engine: `shapes`, and those of the .npy files of other
/// inputs. Errors: Io, InvalidArgument.
std::vector<std::pair<std::string, Shape>> known_shapes(const InputSource& source);

/// Uniform values from a counter-based generator: floats in [-1, 1), unsigned 8-bit in [0, 255],
/// other integers in [0, 10), bool fair. The same seed and name give the same tensor everywhere.
Tensor random_tensor(DType dtype, const Shape& shape, uint64_t seed, std::string_view name);

} // namespace ingot
