// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, format 1.0 to 3.0, C order, little-endian.
#pragma once

#include "ir/tensor.h"

#include <string>

namespace ingot {

/// Reads one array. bf16, fp8 and 4-bit types have no NumPy name: they are read as u16 or u8, and
/// the caller reinterprets the bits. Errors: Io, InvalidArgument with path, got and expected.
Tensor read_npy(const std::string& path);
/// The array's shape, from the file's header alone. Errors: as above.
Shape read_npy_shape(const std::string& path);
/// Writes an array, whole or not at all. bf16 is written as f32, fp8 and fp4 as f32, int4 as i8.
void write_npy(const std::string& path, const Tensor& t);

} // namespace ingot
