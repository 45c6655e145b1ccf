// SPDX-License-Identifier: Apache-2.0
#include "workflow/inputs/npy.h"

#include "base/error.h"
#include "base/file.h"
#include "base/page_guard.h"

#include <array>
#include <charconv>
#include <cstring>

namespace ingot {

namespace {

struct Descriptor {
    std::string_view text;
    DType dtype;
};
constexpr std::array<Descriptor, 13> descriptors = {{{"|b1", DType::Bool},
                                                     {"|i1", DType::I8},
                                                     {"|u1", DType::U8},
                                                     {"<i2", DType::I16},
                                                     {"<u2", DType::U16},
                                                     {"<i4", DType::I32},
                                                     {"<u4", DType::U32},
                                                     {"<i8", DType::I64},
                                                     {"<u8", DType::U64},
                                                     {"<f2", DType::F16},
                                                     {"<f4", DType::F32},
                                                     {"<f8", DType::F64},
                                                     {"?", DType::Bool}}};

// The text after "'key':" in the header's dictionary, up to the end of its value.
std::string_view field(std::string_view header, std::string_view key, const std::string& path) {
    size_t at = header.find(str("'", key, "'"));
    size_t colon = header.find(':', at);
    require(at != std::string_view::npos && colon != std::string_view::npos,
            ErrorCode::InvalidArgument, path, ": the npy header has no '", key, "'");
    std::string_view rest = header.substr(colon + 1);
    while (!rest.empty() && rest.front() == ' ') {
        rest.remove_prefix(1);
    }
    return rest;
}

DType parse_descriptor(std::string_view rest, const std::string& path) {
    size_t close = rest.empty() ? std::string_view::npos : rest.find(rest[0], 1);
    bool quoted = close != std::string_view::npos && (rest[0] == '\'' || rest[0] == '"');
    std::string_view text = quoted ? rest.substr(1, close - 1) : rest.substr(0, 8);
    for (const Descriptor& d : descriptors) {
        if (d.text == text) {
            return d.dtype;
        }
    }
    fail(ErrorCode::InvalidArgument, path, ": npy type '", text,
         "' is not supported; save little-endian numbers or bool");
}

Shape parse_npy_shape(std::string_view rest, const std::string& path) {
    size_t close = rest.find(')');
    require(!rest.empty() && rest[0] == '(' && close != std::string_view::npos,
            ErrorCode::InvalidArgument, path, ": the npy header has no shape");
    Shape shape;
    std::string_view body = rest.substr(1, close - 1);
    while (!body.empty()) {
        size_t end = std::min(body.find(','), body.size());
        std::string_view word = body.substr(0, end);
        while (!word.empty() && word.front() == ' ') {
            word.remove_prefix(1);
        }
        if (!word.empty()) {
            int64_t v = 0;
            auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), v);
            require(error == std::errc() && last == word.data() + word.size() && v >= 0,
                    ErrorCode::InvalidArgument, path, ": '", word,
                    "' in the npy shape is not a size");
            shape.push_back(v);
        }
        body.remove_prefix(std::min(end + 1, body.size()));
    }
    return shape;
}

/// Reads an array whose first axis is the innermost.
void copy_from_fortran_order(std::span<const std::byte> data, Tensor& to) {
    auto size = static_cast<size_t>(bit_width(to.dtype()) / 8);
    const Shape& shape = to.shape();
    Shape at(shape.size(), 0);
    std::span<std::byte> out = to.mutable_bytes();
    for (size_t i = 0; i < out.size(); i += size) {
        size_t from = 0;
        for (size_t k = shape.size(); k-- > 0;) {
            from = from * static_cast<size_t>(shape[k]) + static_cast<size_t>(at[k]);
        }
        std::memcpy(out.data() + i, data.data() + from * size, size);
        for (size_t k = shape.size(); k-- > 0 && ++at[k] == shape[k];) {
            at[k] = 0;
        }
    }
}

Tensor storable(const Tensor& t) {
    switch (t.dtype()) {
    case DType::I4:
    case DType::U4:
    case DType::F4E2M1:
        return unpacked(t);
    case DType::BF16:
    case DType::F8E4M3:
    case DType::F8E5M2: {
        Tensor wide = Tensor::empty(DType::F32, t.shape());
        for (int64_t i = 0; i < t.count(); ++i) {
            wide.set_f64(i, t.get_f64(i));
        }
        return wide;
    }
    default:
        return t;
    }
}

struct Header {
    bool columns_first = false;
    DType dtype = DType::F32;
    Shape shape;
    size_t data = 0; // where it begins in the file
};

Header read_header(std::span<const std::byte> bytes, const std::string& path) {
    require(bytes.size() >= 10 && std::memcmp(bytes.data(), "\x93NUMPY", 6) == 0,
            ErrorCode::InvalidArgument, path, ": not an npy file");
    auto major = std::to_integer<unsigned>(bytes[6]);
    size_t length = std::to_integer<size_t>(bytes[8]) | std::to_integer<size_t>(bytes[9]) << 8;
    size_t start = 10;
    if (major >= 2) {
        require(bytes.size() >= 12, ErrorCode::InvalidArgument, path,
                ": the npy header is truncated");
        length |= std::to_integer<size_t>(bytes[10]) << 16 | std::to_integer<size_t>(bytes[11])
                                                                 << 24;
        start = 12;
    }
    require(length <= bytes.size() - start && length <= (1U << 20), ErrorCode::InvalidArgument,
            path, ": the npy header is truncated");
    std::string header(reinterpret_cast<const char*>(bytes.data()) + start, length);
    return {field(header, "fortran_order", path).starts_with("True"),
            parse_descriptor(field(header, "descr", path), path),
            parse_npy_shape(field(header, "shape", path), path), start + length};
}

} // namespace

Shape read_npy_shape(const std::string& path) {
    auto file = MappedFile::open(path);
    Header header = read_header(file->bytes(), path);
    check_pages(file->bytes().first(header.data));
    return header.shape;
}

Tensor read_npy(const std::string& path) {
    auto file = MappedFile::open(path);
    auto [columns_first, dtype, shape, start] = read_header(file->bytes(), path);
    std::span<const std::byte> data = file->bytes().subspan(start);
    require(static_cast<int64_t>(data.size()) == byte_size(dtype, count_of(shape)),
            ErrorCode::InvalidArgument, path, ": the npy data has ", data.size(),
            " bytes, expected ", dtype, shape);
    Tensor t = Tensor::empty(dtype, shape);
    if (columns_first && shape.size() > 1) {
        copy_from_fortran_order(data, t);
    } else if (!data.empty()) {
        std::memcpy(t.mutable_bytes().data(), data.data(), data.size());
    }
    check_pages(data);
    return t;
}

void write_npy(const std::string& path, const Tensor& tensor) {
    Tensor t = storable(tensor);
    std::string_view descriptor;
    for (const Descriptor& d : descriptors) {
        if (d.dtype == t.dtype() && descriptor.empty()) {
            descriptor = d.text;
        }
    }
    std::string shape;
    for (int64_t d : t.shape()) {
        append(shape, str(d, ","));
    }
    std::string header =
        str("{'descr': '", descriptor, "', 'fortran_order': False, 'shape': (", shape, "), }");
    while ((header.size() + 11) % 64 != 0) {
        header += ' ';
    }
    header += '\n';
    auto low = static_cast<char>(header.size() & 255U);
    auto high = static_cast<char>(header.size() >> 8);
    AtomicFile out(path);
    out.write(std::string("\x93NUMPY\x01", 7) + '\0' + low + high + header);
    out.write(t.bytes());
    out.commit();
}

} // namespace ingot
