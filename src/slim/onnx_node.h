// SPDX-License-Identifier: Apache-2.0
// Reading and writing the parts of one ONNX node.
#pragma once

#include "onnx/model.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::slim {

/// Is it this operator of the default domain?
bool is_op(const onnx::Node& n, std::string_view type);

const onnx::Attribute* find_attribute(const onnx::Node& n, std::string_view name);
int64_t get_int(const onnx::Node& n, std::string_view name, int64_t fallback);
float get_float(const onnx::Node& n, std::string_view name, float fallback);
std::string get_string(const onnx::Node& n, std::string_view name, std::string_view fallback);
/// Empty when absent.
std::vector<int64_t> get_ints(const onnx::Node& n, std::string_view name);

void set_int(onnx::Node& n, std::string_view name, int64_t v);
void set_float(onnx::Node& n, std::string_view name, float v);
void set_ints(onnx::Node& n, std::string_view name, std::vector<int64_t> v);
void set_string(onnx::Node& n, std::string_view name, std::string v);
void remove_attribute(onnx::Node& n, std::string_view name);

/// The name of operand i; "" when omitted.
const std::string& input(const onnx::Node& n, size_t i);
bool has_input(const onnx::Node& n, size_t i);
/// Sets operand i; i may be one past the end.
void set_input(onnx::Node& n, size_t i, std::string name);
/// A node of the default domain with one result.
onnx::Node make_node(std::string_view type, std::vector<std::string> inputs, std::string output,
                     std::string name);

} // namespace ingot::slim
