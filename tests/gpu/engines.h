// SPDX-License-Identifier: Apache-2.0
// Engines and backends for the tests of whole engines on a GPU. INGOT_TEST_GPU=1 takes the first
// CUDA device, else it is the emulator; INGOT_GPU_ENGINES lists engine files, else it is a small
// model.
#pragma once

#include "engine/engine.h"

#include <string>
#include <vector>

namespace ingot::test {

bool on_device();
/// Errors: Unsupported when a device is asked for and there is none.
const Backend& gpu_backend();
/// Options that keep compiled kernels only where that helps.
CompileOptions gpu_options();

/// Names of the engines; and one of them, loaded at the first use.
const std::vector<std::string>& engine_names();
const std::shared_ptr<const Engine>& engine_at(size_t index);

/// Names of sizes of the inputs with the bounds that the first profile gives them, and a shape of
/// every input for chosen sizes.
Bounds input_bounds(const Engine& e);
std::vector<Shape> input_shapes(const Engine& e, const Symbols& symbols);
/// Sizes of the first profile's min (0), opt (1) or max (2).
Symbols profile_symbols(const Engine& e, int which);
std::vector<Tensor> random_inputs(const Engine& e, const std::vector<Shape>& shapes, uint64_t seed);

/// "" where all bytes agree, else the output that differs.
std::string bits_differ(const std::vector<Tensor>& a, const std::vector<Tensor>& b);
/// The largest difference over all outputs, of each one's range.
double range_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want);

/// An integer from the environment, else `standard`.
int64_t setting(const char* name, int64_t standard);
/// A line that gpu_tests.py puts into its results: "RESULT name key=value ...".
void report(const std::string& name, const std::string& values);

} // namespace ingot::test
