// SPDX-License-Identifier: Apache-2.0
// Defaults of inputs in an engine's metadata: "float32[2] 0000803f00000040", bytes as they lie.
#include "base/error.h"
#include "base/hex.h"
#include "engine/properties.h"

#include <algorithm>
#include <charconv>

namespace ingot {

namespace {

/// `digits` has two for each byte.
void read_hex(std::string_view digits, std::span<std::byte> out) {
    for (size_t i = 0; i < out.size(); ++i) {
        int high = hex_digit(digits[2 * i]);
        int low = hex_digit(digits[2 * i + 1]);
        require(high >= 0 && low >= 0, ErrorCode::InvalidEngine, "byte ", i,
                " is no hexadecimal number");
        out[i] = static_cast<std::byte>(high * 16 + low);
    }
}

/// Sizes from "2,3". Errors: InvalidEngine where they are not those of the input.
Shape read_shape(std::string_view text, const Type& input) {
    Shape out;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(',', at), text.size());
        int64_t size = -1;
        auto [last, error] = std::from_chars(text.data() + at, text.data() + end, size);
        bool is_size = error == std::errc() && last == text.data() + end && size >= 0;
        out.push_back(is_size ? size : -1);
        at = end + 1;
    }
    bool fits = out.size() == input.dims.size();
    for (size_t i = 0; fits && i < out.size(); ++i) {
        fits = out[i] >= 0 && input.dims[i].as_const().value_or(out[i]) == out[i];
    }
    require(fits, ErrorCode::InvalidEngine, "its shape is [", text, "], and the input is ",
            to_text(input));
    return out;
}

Tensor read_value(std::string_view text, const Type& input) {
    size_t open = text.find('[');
    size_t close = text.find("] ", std::min(open, text.size()));
    require(close != std::string_view::npos, ErrorCode::InvalidEngine,
            "it is no type, shape and bytes");
    require(text.substr(0, open) == name(input.dtype), ErrorCode::InvalidEngine, "it is ",
            text.substr(0, close + 1), ", and the input is ", to_text(input),
            ": an input with a default keeps the model's type");
    Shape shape = read_shape(text.substr(open + 1, close - open - 1), input);
    std::string_view digits = text.substr(close + 2);
    auto bytes = static_cast<size_t>(byte_size(input.dtype, count_of(shape)));
    require(digits.size() == 2 * bytes, ErrorCode::InvalidEngine, "it has ", digits.size() / 2,
            " bytes, expected ", bytes);
    Tensor out = Tensor::empty(input.dtype, std::move(shape));
    read_hex(digits, out.mutable_bytes());
    return out;
}

std::string key_of(const std::string& input) {
    return "default." + input;
}

} // namespace

void put_input_default(const std::string& name_of_input, const Tensor& value,
                       Properties& metadata) {
    std::string sizes;
    for (int64_t size : value.shape()) {
        append(sizes, str(sizes.empty() ? "" : ",", size));
    }
    metadata[key_of(name_of_input)] =
        str(name(value.dtype()), "[", sizes, "] ", to_hex(value.bytes()));
}

Tensor input_default(const Engine& engine, size_t input) {
    Value v = engine.graph().inputs()[input];
    const std::string& called = engine.graph().value_name(v);
    auto found = engine.metadata().find(key_of(called));
    if (found == engine.metadata().end()) {
        return {};
    }
    return with_place([&] { return str("default of input '", called, "'"); },
                      [&] { return read_value(found->second, engine.graph().type(v)); });
}

NamedTensors input_defaults(const Engine& engine) {
    NamedTensors out;
    const std::vector<Value>& inputs = engine.graph().inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (Tensor value = input_default(engine, i); value.defined()) {
            out.emplace(engine.graph().value_name(inputs[i]), std::move(value));
        }
    }
    return out;
}

} // namespace ingot
