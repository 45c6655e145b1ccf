// SPDX-License-Identifier: Apache-2.0
// Inputs that say of a batch which part of it each request is.
#include "plugins/triton/batch.h"

#include <algorithm>
#include <cstring>

namespace ingot::triton {

namespace {

/// The sizes of a request's input without its rows.
std::span<const int64_t> item_shape(const std::vector<int64_t>& shape) {
    return std::span(shape).subspan(1);
}

std::vector<int64_t> accumulated(std::vector<int64_t> counts) {
    for (size_t i = 1; i < counts.size(); ++i) {
        counts[i] += counts[i - 1];
    }
    return counts;
}

/// Integers as elements of a batch input. Floats are exact up to 2^24, beyond which they round.
std::vector<std::byte> encode(const std::vector<int64_t>& values, const std::string& type) {
    std::vector<std::byte> out(values.size() * 4);
    for (size_t i = 0; i < values.size(); ++i) {
        auto integer = static_cast<int32_t>(values[i]);
        auto real = static_cast<float>(values[i]);
        std::memcpy(&out[i * 4], type == "TYPE_FP32" ? static_cast<const void*>(&real) : &integer,
                    4);
    }
    return out;
}

} // namespace

/// \param[out] shape what the engine is told.
const void* Batch::fill_batch_input(Group group, const BatchInput& b, size_t input,
                                    std::vector<int64_t>& shape) const {
    const Engine& engine = runner_.engine();
    auto source = static_cast<size_t>(engine.find_input(b.source) - engine.inputs.data());
    std::vector<int64_t> counts;
    std::vector<int64_t> sizes;
    int64_t rows = 0;
    for (const Pending* p : group) {
        counts.push_back(element_count(p->shapes[source]));
        std::span<const int64_t> item = item_shape(p->shapes[source]);
        for (int64_t row = 0; row < p->rows; ++row) {
            sizes.insert(sizes.end(), item.begin(), item.end());
        }
        rows += p->rows;
    }
    std::vector<int64_t> values = counts;
    switch (b.kind) {
    case BatchInputKind::ElementCount:
        break;
    case BatchInputKind::AccumulatedElementCount:
        values = accumulated(counts);
        break;
    case BatchInputKind::AccumulatedElementCountWithZero:
        values = accumulated(counts);
        values.insert(values.begin(), 0);
        break;
    case BatchInputKind::MaxElementCountAsShape:
        values.assign(static_cast<size_t>(*std::max_element(counts.begin(), counts.end())), 0);
        break;
    case BatchInputKind::ItemShape:
    case BatchInputKind::ItemShapeFlatten:
        values = sizes;
        break;
    }
    shape = {static_cast<int64_t>(values.size())};
    if (b.kind == BatchInputKind::ItemShape) {
        auto rank = static_cast<int64_t>(item_shape(group[0]->shapes[source]).size());
        shape = {rows, rank};
    }
    std::vector<std::byte> bytes = encode(values, b.type);
    std::byte* memory = runner_.input_memory(input, bytes.size());
    runner_.write_input(input, 0, bytes.data(), bytes.size(), TRITONSERVER_MEMORY_CPU);
    runner_.complete_input(input, bytes.size(), 0);
    return memory;
}

} // namespace ingot::triton
