// SPDX-License-Identifier: Apache-2.0
#include "engine/io_format.h"

#include "base/error.h"
#include "base/integers.h"
#include "ir/rewrite.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot {

namespace {

using enum DType;

constexpr std::array f32_only = {F32};
constexpr std::array f32_u8 = {F32, U8};
constexpr std::array f16_only = {F16};
constexpr std::array f16_bf16 = {F16, BF16};
constexpr std::array f16_i8 = {F16, I8};
constexpr std::array f16_i8_f8 = {F16, I8, F8E4M3};
constexpr std::array f32_f16_i8 = {F32, F16, I8};

// After row major: the formats that convolutions compute in, then by increasing padding.
constexpr std::array<IoFormat, 13> all_formats = {{
    {"chw", "kLINEAR", 0, 1, false, false, {}},
    {"hwc", "kHWC", 3, 1, true, false, f32_u8},
    {"hwc8", "kHWC8", 3, 8, true, false, f16_bf16},
    {"hwc16", "kHWC16", 3, 16, true, false, f16_i8_f8},
    {"dhwc", "kDHWC", 4, 1, true, false, f32_only},
    {"dhwc8", "kDHWC8", 4, 8, true, false, f16_bf16},
    {"chw2", "kCHW2", 3, 2, false, false, f16_bf16},
    {"chw4", "kCHW4", 3, 4, false, false, f16_i8},
    {"chw16", "kCHW16", 3, 16, false, false, f16_only},
    {"chw32", "kCHW32", 3, 32, false, false, f32_f16_i8},
    {"cdhw32", "kCDHW32", 4, 32, false, false, f16_i8},
    {"dla_linear", "kDLA_LINEAR", 3, 1, false, true, f16_i8},
    {"dla_hwc4", "kDLA_HWC4", 3, 4, true, true, f16_i8},
}};

using ingot::div_up;
Dim div_up(const Dim& a, int64_t b) {
    return ceil_div(a, b);
}

template <class Sizes>
Sizes storage_sizes(const IoFormat& f, const Sizes& sizes) {
    if (f.is_row_major()) {
        return sizes;
    }
    Sizes out = sizes;
    size_t axis = f.axis(sizes.size());
    auto vectors = div_up(sizes[axis], f.vector);
    if (f.last) {
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
        out.push_back(vectors * f.vector);
    } else {
        out[axis] = vectors;
        out.push_back(f.vector);
    }
    return out;
}

/// The axes of a tensor from the outermost in memory to the innermost, with vectors as elements.
std::vector<size_t> memory_order(const IoFormat& f, size_t rank) {
    std::vector<size_t> order;
    for (size_t i = 0; i < rank; ++i) {
        if (!f.last || i != f.axis(rank)) {
            order.push_back(i);
        }
    }
    if (f.last) {
        order.push_back(f.axis(rank));
    }
    return order;
}

/// Calls move(index in the tensor, index in its storage) for each element.
template <class F>
void for_elements(const IoFormat& f, const Shape& shape, const F& move) {
    Shape strides = format_strides(f, shape);
    size_t channels = f.axis(shape.size());
    Shape at(shape.size(), 0);
    int64_t count = count_of(shape);
    for (int64_t i = 0; i < count; ++i) {
        int64_t vector = 0;
        for (size_t d = 0; d < at.size(); ++d) {
            vector += (d == channels ? at[d] / f.vector : at[d]) * strides[d];
        }
        move(static_cast<size_t>(i),
             static_cast<size_t>(vector * f.vector + at[channels] % f.vector));
        for (size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];) {
            at[d] = 0;
        }
    }
}

std::string type_names(std::span<const DType> types) {
    std::string out;
    for (size_t i = 0; i < types.size(); ++i) {
        append(out, str(i == 0 ? "" : i + 1 == types.size() ? " or " : ", ", types[i]));
    }
    return out;
}

void check_format(const Graph& g, Value v, const IoFormat& f, std::string_view kind,
                  const std::string& name) {
    const Type& t = g.type(v);
    std::string why = refusal(f, t);
    require(why.empty(), ErrorCode::InvalidArgument, kind, " '", name, "' ", t,
            " cannot be stored as ", f.api_name, ", which ", why);
    if (!f.pads()) {
        return;
    }
    SymbolSet used;
    t.dims[f.axis(t.dims.size())].collect_symbols(used);
    SymbolSet known = input_symbols(g);
    for (const std::string& s : used) {
        require(
            known.contains(s), ErrorCode::InvalidArgument, kind, " '", name, "' ", t,
            " cannot be stored as ", f.api_name,
            ": its number of channels depends on data, so its memory cannot be allocated before "
            "the run; allow kLINEAR");
    }
}

} // namespace

std::span<const IoFormat> io_formats() {
    return all_formats;
}

const IoFormat& row_major() {
    return all_formats[0];
}

const IoFormat* find_io_format(std::string_view name) {
    const auto* it = std::find_if(all_formats.begin(), all_formats.end(),
                                  [&](const IoFormat& f) { return f.name == name; });
    return it == all_formats.end() ? nullptr : it;
}

std::string refusal(const IoFormat& f, const Type& t) {
    if (f.dla) {
        return "needs DLA, and engines do not run on DLA";
    }
    if (t.rank() < f.channel_axis) {
        return str("needs ", f.channel_axis, " dimensions or more, not ", t.rank());
    }
    bool holds =
        f.types.empty() || std::find(f.types.begin(), f.types.end(), t.dtype) != f.types.end();
    return holds ? "" : str("holds ", type_names(f.types), ", not ", t.dtype);
}

Dims storage_dims(const IoFormat& f, const Dims& dims) {
    return storage_sizes(f, dims);
}

Shape storage_shape(const IoFormat& f, const Shape& shape) {
    return storage_sizes(f, shape);
}

Shape tensor_shape(const IoFormat& f, const Shape& storage, int64_t channels) {
    if (f.is_row_major()) {
        return storage;
    }
    Shape out(storage.begin(), storage.end() - 1);
    if (f.last) {
        auto axis = static_cast<std::ptrdiff_t>(f.axis(storage.size()));
        out.insert(out.begin() + axis, channels);
    } else {
        out[f.axis(out.size())] = channels;
    }
    return out;
}

Shape format_strides(const IoFormat& f, const Shape& shape) {
    Shape strides(shape.size());
    int64_t stride = 1;
    std::vector<size_t> order = memory_order(f, shape.size());
    for (size_t i = order.size(); i-- > 0;) {
        int64_t size = shape[order[i]];
        bool is_channels = f.channel_axis > 0 && order[i] == f.axis(shape.size());
        strides[order[i]] = stride;
        stride =
            size < 0 || stride < 0 ? -1 : stride * (is_channels ? div_up(size, f.vector) : size);
    }
    return strides;
}

Tensor to_storage(const IoFormat& f, const Tensor& t) {
    if (f.is_row_major()) {
        return t;
    }
    Tensor out = Tensor::zeros(t.dtype(), storage_shape(f, t.shape()));
    auto width = static_cast<size_t>(bit_width(t.dtype()) / 8);
    std::byte* to = out.mutable_bytes().data();
    const std::byte* from = t.bytes().data();
    for_elements(f, t.shape(), [&](size_t i, size_t stored) {
        std::memcpy(to + stored * width, from + i * width, width);
    });
    return out;
}

Tensor from_storage(const IoFormat& f, const Tensor& storage, const Shape& shape) {
    if (f.is_row_major()) {
        return storage;
    }
    CHECK(storage.shape() == storage_shape(f, shape), "an array ", storage.shape(),
          " does not hold ", shape, " as ", f.name);
    Tensor out = Tensor::empty(storage.dtype(), shape);
    auto width = static_cast<size_t>(bit_width(storage.dtype()) / 8);
    std::byte* to = out.mutable_bytes().data();
    const std::byte* from = storage.bytes().data();
    for_elements(f, shape, [&](size_t i, size_t stored) {
        std::memcpy(to + i * width, from + stored * width, width);
    });
    return out;
}

bool IoFormats::are_plain() const {
    auto plain = [](const IoFormat* f) { return f->is_row_major(); };
    return std::all_of(inputs.begin(), inputs.end(), plain) &&
           std::all_of(outputs.begin(), outputs.end(), plain);
}

void check_formats(const Graph& g, const IoFormats& formats) {
    require(formats.inputs.size() <= g.inputs().size() &&
                formats.outputs.size() <= g.outputs().size(),
            ErrorCode::InvalidArgument, "got formats for ", formats.inputs.size(), " inputs and ",
            formats.outputs.size(), " outputs, the graph has ", g.inputs().size(), " and ",
            g.outputs().size());
    for (size_t i = 0; i < formats.inputs.size(); ++i) {
        Value v = g.inputs()[i];
        check_format(g, v, formats.input(i), "input", g.value_name(v));
    }
    for (size_t i = 0; i < formats.outputs.size(); ++i) {
        check_format(g, g.outputs()[i], formats.output(i), "output", g.output_names()[i]);
    }
}

Json formats_json(const Graph& g, const IoFormats& formats) {
    Json j;
    Json& inputs = j.set("inputs", Json::object());
    for (size_t i = 0; i < formats.inputs.size(); ++i) {
        if (!formats.input(i).is_row_major()) {
            inputs.set(g.value_name(g.inputs()[i]), formats.input(i).name);
        }
    }
    Json& outputs = j.set("outputs", Json::object());
    for (size_t i = 0; i < formats.outputs.size(); ++i) {
        if (!formats.output(i).is_row_major()) {
            outputs.set(g.output_names()[i], formats.output(i).name);
        }
    }
    return j;
}

IoFormats formats_from_json(const Graph& g, const Json& j) {
    using Named = std::map<std::string, std::string>;
    auto listed = [](std::string_view kind, Named named, const std::vector<std::string>& names) {
        std::vector<const IoFormat*> out;
        for (const std::string& name : names) {
            auto it = named.find(name);
            const IoFormat* f = it == named.end() ? &row_major() : find_io_format(it->second);
            require(f != nullptr, ErrorCode::InvalidArgument, kind, " '", name,
                    "' has the unknown format '", it == named.end() ? "" : it->second, "'");
            out.push_back(f);
            if (it != named.end()) {
                named.erase(it);
            }
        }
        require(named.empty(), ErrorCode::InvalidArgument, "a format is given for ", kind, " '",
                named.empty() ? "" : named.begin()->first, "', which does not exist");
        return out;
    };
    std::vector<std::string> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v));
    }
    IoFormats formats;
    formats.inputs = listed("input", j.at("inputs").get<Named>(), names);
    formats.outputs = listed("output", j.at("outputs").get<Named>(), g.output_names());
    check_formats(g, formats);
    return formats;
}

} // namespace ingot
