// SPDX-License-Identifier: Apache-2.0
// Builds ONNX messages field by field, so that tests control the exact bytes of a file, including
// wrong ones.
#pragma once

#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::onnx::test {

class Pb {
public:
    Pb& i(uint32_t field, int64_t v) {
        put().add_int64(field, v);
        return *this;
    }
    Pb& s(uint32_t field, std::string_view v) {
        put().add_bytes(field, v.data(), v.size());
        return *this;
    }
    Pb& m(uint32_t field, const Pb& v) { return s(field, v.bytes_); }
    Pb& f(uint32_t field, float v) {
        put().add_float(field, v);
        return *this;
    }
    Pb& d(uint32_t field, double v) {
        put().add_double(field, v);
        return *this;
    }
    Pb& packed(uint32_t field, std::initializer_list<int64_t> v) {
        put().add_packed_int64(field, v.begin(), v.end());
        return *this;
    }
    Pb& packed_f(uint32_t field, std::initializer_list<float> v) {
        put().add_packed_float(field, v.begin(), v.end());
        return *this;
    }
    Pb& packed_d(uint32_t field, std::initializer_list<double> v) {
        put().add_packed_double(field, v.begin(), v.end());
        return *this;
    }
    /// Bytes as they are, no key and no length.
    Pb& raw(std::string_view v) {
        bytes_ += v;
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

private:
    protozero::pbf_writer put() { return protozero::pbf_writer(bytes_); }
    std::string bytes_;
};

inline std::span<const std::byte> as_bytes(const std::string& s) {
    return std::as_bytes(std::span(s.data(), s.size()));
}

// Field numbers below are those of onnx.proto.

/// TensorProto without data.
inline Pb tensor(std::string_view name, std::initializer_list<int64_t> dims, int64_t data_type) {
    Pb t;
    for (const int64_t d : dims) {
        t.i(1, d);
    }
    t.i(2, data_type);
    if (!name.empty()) {
        t.s(8, name);
    }
    return t;
}
inline Pb tensor(std::string_view name, std::initializer_list<int64_t> dims, int64_t data_type,
                 std::string_view raw) {
    return tensor(name, dims, data_type).s(9, raw);
}

inline Pb pair(std::string_view key, std::string_view value) {
    return Pb().s(1, key).s(2, value);
}

/// TensorProto whose data is in a file.
inline Pb external_tensor(std::string_view name, std::initializer_list<int64_t> dims,
                          int64_t data_type,
                          std::initializer_list<std::pair<const char*, std::string>> entries) {
    Pb t = tensor(name, dims, data_type);
    for (const auto& [key, value] : entries) {
        t.m(13, pair(key, value));
    }
    return t.i(14, 1);
}

/// ValueInfoProto of a tensor.
inline Pb value(std::string_view name, std::initializer_list<int64_t> dims, int64_t elem_type = 1) {
    Pb shape;
    for (const int64_t d : dims) {
        shape.m(1, Pb().i(1, d));
    }
    return Pb().s(1, name).m(2, Pb().m(1, Pb().i(1, elem_type).m(2, shape)));
}

inline Pb node(std::string_view op, std::initializer_list<std::string_view> inputs,
               std::initializer_list<std::string_view> outputs) {
    Pb n;
    for (const std::string_view v : inputs) {
        n.s(1, v);
    }
    for (const std::string_view v : outputs) {
        n.s(2, v);
    }
    return n.s(4, op);
}

/// Graph 'g': y = Relu(x). Append fields to add to it.
inline Pb graph() {
    return Pb()
        .s(2, "g")
        .m(1, node("Relu", {"x"}, {"y"}))
        .m(11, value("x", {2}))
        .m(12, value("y", {2}));
}

inline Pb opset(std::string_view domain, int64_t version) {
    return Pb().s(1, domain).i(2, version);
}

inline Pb model_head() {
    return Pb().i(1, 8).m(8, opset("", 17));
}
inline Pb model(const Pb& g) {
    return model_head().m(7, g);
}
inline Pb model_with_initializer(const Pb& t) {
    return model(graph().m(5, t));
}
inline Pb model_with_node(const Pb& n) {
    return model(graph().m(1, n));
}
/// A model whose second node, "n" (Op), has this attribute.
inline Pb model_with_attribute(const Pb& a) {
    return model_with_node(node("Op", {"x"}, {"z"}).s(3, "n").m(5, a));
}
inline Pb attribute(std::string_view name, int64_t type) {
    return Pb().s(1, name).i(20, type);
}

/// A small model that uses every message the reader knows.
std::string rich_model();

} // namespace ingot::onnx::test
