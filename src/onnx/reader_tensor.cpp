// SPDX-License-Identifier: Apache-2.0
// TensorProto and SparseTensorProto. A tensor is read in two passes: the first finds type, dims and
// the element count of each data field, without storing elements; only when these agree does the
// second allocate and decode.
#include "base/checked.h"
#include "base/page_guard.h"
#include "base/pieces.h"
#include "onnx/data_type.h"
#include "onnx/reader.h"
#include "onnx/reader_parts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

namespace ingot::onnx {
namespace {

constexpr std::array data_fields = {DataField::Float, DataField::Int32,  DataField::String,
                                    DataField::Int64, DataField::Double, DataField::Uint64};

struct TensorParts {
    Tensor tensor;
    Bytes raw;
    std::array<int64_t, 12> counts{}; // elements in each data field, by field number
    StringPairs external;
    bool is_external = false;

    int64_t count(DataField f) const { return counts[static_cast<size_t>(f)]; }
};

TensorParts read_parts(Bytes message, ReadContext& context) {
    TensorParts parts;
    Wire w(message, context.origin);
    while (w.next()) {
        const uint32_t field = w.field();
        switch (field) {
        case 1:
            w.repeated("dims").each_varint([&](uint64_t v) {
                if (parts.tensor.dims.size() == max_rank) {
                    w.bad(str("has more than ", max_rank, " entries"));
                }
                parts.tensor.dims.push_back(static_cast<int64_t>(v));
            });
            break;
        case 2:
            parts.tensor.data_type = w.once("data_type").int32();
            break;
        case 3:
            w.once("segment").bad("is set: tensors in segments are not supported");
        case 4:
            parts.counts[field] += w.repeated("float_data").count_fixed(4);
            break;
        case 5:
        case 7:
        case 11:
            w.repeated(name(static_cast<DataField>(field)).data());
            parts.counts[field] += w.count_varints();
            break;
        case 6:
            w.repeated("string_data").bytes();
            parts.counts[field] += 1;
            break;
        case 8:
            parts.tensor.name = w.once("name").text();
            break;
        case 9:
            parts.raw = w.once("raw_data").bytes();
            break;
        case 10:
            parts.counts[field] += w.repeated("double_data").count_fixed(8);
            break;
        case 13:
            parts.external.push_back(
                read_string_pair(w.repeated("external_data").bytes(), context));
            break;
        case 14:
            switch (const int64_t location = w.once("data_location").integer(); location) {
            case 0:
            case 1:
                parts.is_external = location == 1;
                break;
            default:
                w.bad(str("is ", location, ", expected 0 (default) or 1 (external)"));
            }
            break;
        default:
            w.skip();
        }
    }
    return parts;
}

const DataTypeInfo& known_data_type(int number) {
    require(number != 0, ErrorCode::InvalidModel, "has no data_type");
    const DataTypeInfo* info = find_data_type(number);
    require(info != nullptr, ErrorCode::InvalidModel, "data_type is ", number,
            ", which is no element type of ONNX");
    return *info;
}

// The element count required of the typed field: narrow types share its bytes as in memory, except
// the 6-bit ones; a complex number is two values.
int64_t expected_count(const DataTypeInfo& info, int64_t elements) {
    if (info.bits == 4 || info.bits == 2) {
        const int64_t per_value = 8 / info.bits;
        return elements / per_value + (elements % per_value != 0 ? 1 : 0);
    }
    const bool is_complex = info.field == DataField::Float ? info.bits == 64 : info.bits == 128;
    return is_complex ? elements * 2 : elements;
}

// Width in memory of one value of the typed field.
int value_bits(const DataTypeInfo& info) {
    if (info.field == DataField::Float || info.field == DataField::Double) {
        return info.field == DataField::Float ? 32 : 64;
    }
    return info.bits == 4 || info.bits == 2 ? 8 : info.bits;
}

// Writers disagree on sign extension of small types, so both readings of the bits are accepted.
bool fits(uint64_t v, int bits) {
    const auto s = static_cast<int64_t>(v);
    return s >= -(int64_t{1} << (bits - 1)) && s < (int64_t{1} << bits);
}

// Appends values of up to 64 bits, low bits first. Rechecks the count, because the file may change
// between counting and reading.
class BitSink {
public:
    BitSink(std::vector<std::byte>& out, int bits) : out_(out), bits_(static_cast<size_t>(bits)) {}
    void put(uint64_t v) {
        if (position_ % (piece_bytes * 8) == 0) {
            check_interrupt();
        }
        require(position_ + bits_ <= out_.size() * 8, ErrorCode::InvalidModel,
                "has more values than when they were counted", advice);
        if (bits_ >= 8) {
            std::memcpy(out_.data() + position_ / 8, &v, bits_ / 8);
            position_ += bits_;
            return;
        }
        for (size_t b = 0; b < bits_; ++b, ++position_) {
            const auto bit = static_cast<unsigned>((v >> b) & 1U);
            out_[position_ / 8] |= static_cast<std::byte>(bit << (position_ % 8));
        }
    }

    /// Errors: InvalidModel when there is room for another value.
    void finish() const {
        require(position_ + bits_ > out_.size() * 8, ErrorCode::InvalidModel,
                "has fewer values than when they were counted", advice);
    }

private:
    static constexpr const char* advice =
        ": the file is written to; read it when it is whole, or replace it by renaming another";
    std::vector<std::byte>& out_;
    size_t bits_;
    size_t position_ = 0;
};

void decode_int32(Wire& w, const DataTypeInfo& info, BitSink& sink, int64_t& index) {
    const int bits = value_bits(info);
    w.each_varint([&](uint64_t v) {
        if (info.dtype == DType::Bool) {
            v = v != 0 ? 1 : 0;
        } else if (!fits(v, bits)) {
            w.bad(str("has ", static_cast<int64_t>(v), " at index ", index,
                      ", which does not fit in ", bits, " bits (", info.name, ")"));
        }
        sink.put(v);
        ++index;
    });
}

std::vector<std::byte> decode_typed(Bytes message, const DataTypeInfo& info, int64_t bytes,
                                    ReadContext& context) {
    std::vector<std::byte> out(static_cast<size_t>(bytes));
    BitSink sink(out, value_bits(info));
    int64_t index = 0;
    Wire w(message, context.origin);
    while (w.next()) {
        if (w.field() != static_cast<uint32_t>(info.field)) {
            w.skip();
            continue;
        }
        w.repeated(name(info.field).data());
        switch (info.field) {
        case DataField::Float:
            w.each_fixed<uint32_t>([&](uint32_t v) { sink.put(v); });
            break;
        case DataField::Double:
            w.each_fixed<uint64_t>([&](uint64_t v) { sink.put(v); });
            break;
        case DataField::Int32:
            decode_int32(w, info, sink, index);
            break;
        default:
            w.each_varint([&](uint64_t v) {
                if (info.bits == 32 && v > std::numeric_limits<uint32_t>::max()) {
                    w.bad(str("has ", v, " at index ", index, ", which does not fit in ", info.bits,
                              " bits (", info.name, ")"));
                }
                sink.put(v);
                ++index;
            });
        }
    }
    sink.finish();
    return out;
}

void own(Tensor& t, std::vector<std::byte> data) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(data));
    t.bytes = *kept;
    t.owner = kept;
}

void check_single_source(const TensorParts& parts, const DataTypeInfo& info) {
    for (const DataField f : data_fields) {
        if (parts.count(f) == 0) {
            continue;
        }
        require(!parts.is_external, ErrorCode::InvalidModel, "has both external data and ",
                name(f));
        require(parts.raw.empty(), ErrorCode::InvalidModel, "has both raw_data and ", name(f));
        require(f == info.field, ErrorCode::InvalidModel, "has ", parts.count(f), " values in ",
                name(f), ", but ", info.name, " belongs in ", name(info.field));
    }
    require(!parts.is_external || parts.raw.empty(), ErrorCode::InvalidModel,
            "has both external data and raw_data");
}

void read_strings(TensorParts& parts, int64_t elements) {
    Tensor& t = parts.tensor;
    require(!parts.is_external && parts.raw.empty(), ErrorCode::InvalidModel,
            "a string tensor keeps its data in string_data, not in ",
            parts.is_external ? "a file" : "raw_data");
    t.string_count = parts.count(DataField::String);
    require(t.string_count == elements, ErrorCode::InvalidModel, "string_data has ", t.string_count,
            " values, expected ", elements, " (", type_text(t.data_type, t.dims), ")");
}

// Normalises true to 1; files may have any non-zero byte.
void normalise_bool(Tensor& t) {
    const auto is_odd = [](std::byte b) { return b > std::byte{1}; };
    if (std::any_of(t.bytes.begin(), t.bytes.end(), is_odd)) {
        std::vector<std::byte> copy(t.bytes.size());
        std::transform(t.bytes.begin(), t.bytes.end(), copy.begin(),
                       [](std::byte b) { return b == std::byte{0} ? b : std::byte{1}; });
        own(t, std::move(copy));
    }
}

// Sizes and indices are checked before use: if they lie in a file that others may write to, they
// are copied (ADR 0015).
void own_indices(Tensor& t, const DataTypeInfo& info) {
    if (info.dtype && is_integer(*info.dtype) && bit_width(*info.dtype) >= 16 && t.owner) {
        const Bytes mapped = t.bytes;
        own(t, {mapped.begin(), mapped.end()});
        check_pages(mapped);
    }
}

// Stores f's error with the tensor if its data may come later.
template <class F>
void with_data(Tensor& t, const ReadContext& context, const F& f) {
    try {
        f();
    } catch (const Error& e) {
        if (!context.data_may_be_missing) {
            throw;
        }
        t.missing = e.message();
    }
}

void read_data(Bytes message, TensorParts& parts, const DataTypeInfo& info, int64_t elements,
               ReadContext& context) {
    Tensor& t = parts.tensor;
    const int64_t bytes = elements / 8 * info.bits + (elements % 8 * info.bits + 7) / 8;
    if (parts.is_external) {
        const ExternalLocation where = parse_external(parts.external);
        return with_data(t, context, [&] {
            ExternalFiles::Slice slice = context.files.map(where, static_cast<uint64_t>(bytes),
                                                           type_text(t.data_type, t.dims));
            t.bytes = slice.bytes;
            t.owner = slice.file;
            own_indices(t, info);
        });
    }
    const int64_t values = parts.count(info.field);
    if (values > 0) {
        const int64_t expected = expected_count(info, elements);
        require(values == expected, ErrorCode::InvalidModel, name(info.field), " has ", values,
                " values, expected ", expected, " (", type_text(t.data_type, t.dims), ")");
        own(t, decode_typed(message, info, bytes, context));
        return;
    }
    if (parts.raw.empty() && bytes > 0) {
        t.missing =
            str("has no data, expected ", bytes, " bytes (", type_text(t.data_type, t.dims), ")");
        require(context.data_may_be_missing, ErrorCode::InvalidModel, t.missing);
        return;
    }
    require(static_cast<int64_t>(parts.raw.size()) == bytes, ErrorCode::InvalidModel,
            "raw data has ", parts.raw.size(), " bytes, expected ", bytes, " (",
            type_text(t.data_type, t.dims), ")");
    t.bytes = parts.raw;
    t.owner = context.owner;
    own_indices(t, info);
}

void check_indices(const SparseTensor& s, int64_t dense_count) {
    const auto at = [&](int64_t i) {
        int64_t v = 0;
        std::memcpy(&v, s.indices.bytes.data() + i * 8, 8);
        return v;
    };
    const int64_t count = s.values.dims[0];
    const bool is_linear = s.indices.dims.size() == 1;
    const auto rank = static_cast<int64_t>(s.dims.size());
    int64_t last = -1;
    for (int64_t i = 0; i < count; ++i) {
        int64_t linear = is_linear ? at(i) : 0;
        require(!is_linear || (linear >= 0 && linear < dense_count), ErrorCode::InvalidModel,
                "index ", linear, " of value ", i, " is outside a tensor of ", dense_count,
                " elements");
        for (int64_t d = 0; !is_linear && d < rank; ++d) {
            const int64_t extent = s.dims[static_cast<size_t>(d)];
            const int64_t v = at(i * rank + d);
            require(v >= 0 && v < extent, ErrorCode::InvalidModel, "index ", v, " of value ", i,
                    " is outside dim ", d, ", which is ", extent);
            linear = linear * extent + v;
        }
        require(linear > last, ErrorCode::InvalidModel, "the indices of values ", i - 1, " and ", i,
                " are not in ascending order");
        last = linear;
    }
}

void check_sparse(const SparseTensor& s) {
    const auto rank = static_cast<int64_t>(s.dims.size());
    require(rank > 0, ErrorCode::InvalidModel, "dims are missing");
    const DataTypeInfo& info = known_data_type(s.values.data_type);
    const int64_t dense_count = count_elements(s.dims, info.bits, s.values.data_type);
    require(s.values.dims.size() == 1, ErrorCode::InvalidModel, "values must have one dim, got ",
            type_text(s.values.data_type, s.values.dims));
    const int64_t count = s.values.dims[0];
    const std::vector<int64_t>& d = s.indices.dims;
    const bool is_linear = d.size() == 1 && d[0] == count;
    const bool is_coordinates = d.size() == 2 && d[0] == count && d[1] == rank;
    require(s.indices.data_type == data_type_number(DType::I64) && (is_linear || is_coordinates),
            ErrorCode::InvalidModel, "indices must be i64 [", count, "] or i64 [", count, ",", rank,
            "], got ", type_text(s.indices.data_type, d));
    check_indices(s, dense_count);
}

} // namespace

std::string type_text(int data_type, std::span<const int64_t> dims) {
    constexpr size_t limit = 16;
    std::string text =
        str(data_type_name(data_type), " ", dims.first(std::min(dims.size(), limit)));
    if (dims.size() > limit) {
        text.insert(text.size() - 1, ",...");
    }
    return text;
}

int64_t count_elements(std::span<const int64_t> dims, int bits, int data_type) {
    std::optional<int64_t> product = 1;
    bool is_empty = false;
    for (size_t i = 0; i < dims.size(); ++i) {
        require(dims[i] >= 0, ErrorCode::InvalidModel, "dim ", i, " is negative (",
                type_text(data_type, dims), ")");
        is_empty = is_empty || dims[i] == 0;
        product = product ? checked_mul(*product, std::max<int64_t>(dims[i], 1)) : product;
    }
    require(product && checked_mul(*product, std::max<int64_t>(bits, 8)), ErrorCode::InvalidModel,
            "the size of ", type_text(data_type, dims), " does not fit in 64 bits");
    return is_empty ? 0 : *product;
}

Tensor read_tensor_message(Bytes message, ReadContext& context) {
    TensorParts parts = read_parts(message, context);
    Tensor& t = parts.tensor;
    const DataTypeInfo& info = known_data_type(t.data_type);
    const int64_t elements = count_elements(t.dims, info.bits, t.data_type);
    check_single_source(parts, info);
    if (info.field == DataField::String) {
        read_strings(parts, elements);
    } else {
        read_data(message, parts, info, elements, context);
    }
    if (info.dtype == DType::Bool) {
        normalise_bool(t);
    }
    return std::move(parts.tensor);
}

SparseTensor read_sparse_message(Bytes message, ReadContext& context) {
    SparseTensor s;
    bool has_values = false;
    bool has_indices = false;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1: {
            const Bytes part = w.once("values").bytes();
            with_place([] { return "values"; },
                       [&] { s.values = read_tensor_message(part, context); });
            has_values = true;
            break;
        }
        case 2: {
            const Bytes part = w.once("indices").bytes();
            with_place([] { return "indices"; },
                       [&] { s.indices = read_tensor_message(part, context); });
            has_indices = true;
            break;
        }
        case 3:
            w.repeated("dims").each_varint([&](uint64_t v) {
                if (s.dims.size() == max_rank) {
                    w.bad(str("has more than ", max_rank, " entries"));
                }
                s.dims.push_back(static_cast<int64_t>(v));
            });
            break;
        default:
            w.skip();
        }
    }
    require(has_values && has_indices, ErrorCode::InvalidModel, "has no ",
            has_values ? "indices" : "values");
    check_sparse(s);
    return s;
}

} // namespace ingot::onnx
