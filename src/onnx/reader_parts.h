// SPDX-License-Identifier: Apache-2.0
// Shared by the reader's source files; private to them.
#pragma once

#include "base/error.h"
#include "onnx/external_data.h"
#include "onnx/model.h"
#include "onnx/wire.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::onnx {

using Bytes = std::span<const std::byte>;

/// Limits the memory of all that a file lists, in bytes: an element of a few bytes in the file is a
/// struct of hundreds in memory.
class MemoryBudget {
public:
    explicit MemoryBudget(size_t file_bytes);
    /// Counts memory before it is taken; InvalidModel when the file lists too much.
    void take(size_t bytes);
    /// One more element of a list: counts its capacity, and both copies while it grows.
    template <class List>
    void take_element(List& list) {
        using Element = typename List::value_type;
        if (list.size() < list.capacity()) {
            return;
        }
        const size_t old = list.capacity() * sizeof(Element);
        const size_t wider = list.empty() ? 1 : 2 * list.size();
        take(wider * sizeof(Element) + allocation);
        list.reserve(wider);
        taken_ -= old;
    }
    /// Room for `count` elements of an empty list, as far as there is some.
    template <class List>
    void reserve(List& list, size_t count) {
        using Element = typename List::value_type;
        count = std::min(count, (limit_ - taken_) / sizeof(Element));
        list.reserve(count);
        taken_ += count * sizeof(Element);
    }
    /// A text that the model keeps; short ones lie in the string.
    std::string text(std::string text) {
        take(text.size() < 16 ? 0 : text.size() + allocation);
        return text;
    }

private:
    static constexpr size_t allocation = 16; // what malloc takes beside each
    size_t file_bytes_;
    size_t limit_;
    size_t taken_ = 0;
};

/// The number of times that a field occurs in a message, up to where it is damaged.
size_t count_field(std::span<const std::byte> message, uint32_t field);

struct ReadContext {
    ReadContext(std::span<const std::byte> file, std::shared_ptr<const void> keeps,
                ExternalFiles external)
        : origin(file.data()), owner(std::move(keeps)), files(std::move(external)),
          budget(file.size()) {}

    const std::byte* origin; // the file's first byte
    std::shared_ptr<const void> owner;
    ExternalFiles files;
    MemoryBudget budget;
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
                    ReadContext& context, const Read& read) {
    with_place([&] { return place_of(kind, message, name_field, list.size()); },
               [&] {
                   context.budget.take_element(list);
                   list.push_back(read());
               });
}

} // namespace ingot::onnx
