// SPDX-License-Identifier: Apache-2.0
// Shared by the reader's source files; private to them.
#pragma once

#include "base/error.h"
#include "onnx/external_data.h"
#include "onnx/model.h"
#include "onnx/wire.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::onnx {

using Bytes = std::span<const std::byte>;

struct ReadContext {
    const std::byte* origin = nullptr; // the file's first byte
    std::shared_ptr<const void> owner;
    ExternalFiles files;
    int graph_depth = 0;
    bool in_function = false;
    bool initializers_may_lack_data = false; // applies to the main graph's
    bool data_may_be_missing = false;        // applies to the tensor being read
};

Tensor read_tensor_message(Bytes message, ReadContext& context);
SparseTensor read_sparse_message(Bytes message, ReadContext& context);
Graph read_graph_message(Bytes message, ReadContext& context);
Node read_node_message(Bytes message, ReadContext& context);
Attribute read_attribute_message(Bytes message, ReadContext& context);
ValueInfo read_value_info_message(Bytes message, ReadContext& context);
std::pair<std::string, std::string> read_string_pair(Bytes message, ReadContext& context);

/// "f32 [2,2]", with long lists of dims shortened.
std::string type_text(int data_type, std::span<const int64_t> dims);
/// The product of dims; fails when one is negative, or when the product of the non-zero ones times
/// `bits` overflows.
int64_t count_elements(std::span<const int64_t> dims, int bits, int data_type);
/// "node 'conv3'", or "node #3" when the message has no name.
std::string place_of(std::string_view kind, Bytes message, uint32_t name_field, size_t index);
/// "ai.onnx" and "" are one domain.
std::string plain_domain(std::string domain);
/// Fails when two names are equal or one is empty; `kind` names the kind of object.
void require_unique(std::vector<std::string_view> names, std::string_view kind);

/// Decodes one element of a repeated message field and appends it; errors get its position.
template <class List, class Read>
void append_message(List& list, Bytes message, std::string_view kind, uint32_t name_field,
                    const Read& read) {
    with_place([&] { return place_of(kind, message, name_field, list.size()); },
               [&] { list.push_back(read()); });
}

} // namespace ingot::onnx
