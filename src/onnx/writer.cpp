// SPDX-License-Identifier: Apache-2.0
#include "onnx/writer.h"

#include "base/error.h"
#include "base/file.h"
#include "onnx/data_type.h"
#include "onnx/wire.h"

#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace ingot::onnx {
namespace {

constexpr uint64_t data_alignment = 4096;
constexpr uint64_t default_threshold = 1024;

using Bytes = std::span<const std::byte>;

// A message under construction: its text, and the positions in it of bulk data. A message is
// complete before its parent includes it, so lengths are known and only small text is copied twice.
class Message {
public:
    // For single fields; messages and bulk data have their own functions below.
    protozero::pbf_writer put() { return protozero::pbf_writer(text_); }

    void text_unless_empty(uint32_t field, const std::string& value) {
        if (!value.empty()) {
            put().add_string(field, value);
        }
    }
    void message(uint32_t field, Message&& child) {
        length_prefix(field, child.size());
        for (Cut& c : child.cuts_) {
            c.position += text_.size();
            cuts_.push_back(c);
        }
        cut_bytes_ += child.cut_bytes_;
        text_ += child.text_;
    }
    void data(uint32_t field, Bytes value) {
        length_prefix(field, value.size());
        if (value.size() < default_threshold) {
            text_.append(reinterpret_cast<const char*>(value.data()), value.size());
            return;
        }
        cuts_.push_back({text_.size(), value});
        cut_bytes_ += value.size();
    }
    uint64_t size() const { return text_.size() + cut_bytes_; }

    // Calls f(Bytes) for each piece in order.
    template <class F>
    void pieces(const F& f) const {
        const Bytes text = std::as_bytes(std::span(text_.data(), text_.size()));
        size_t done = 0;
        for (const Cut& c : cuts_) {
            f(text.subspan(done, c.position - done));
            f(c.data);
            done = c.position;
        }
        f(text.subspan(done));
    }

private:
    struct Cut {
        size_t position;
        Bytes data;
    };
    // protozero's own length fields are 32 bits wide.
    void length_prefix(uint32_t field, uint64_t length) {
        protozero::add_varint_to_buffer(&text_, uint64_t{field} << 3U | wire_bytes);
        protozero::add_varint_to_buffer(&text_, length);
    }

    std::string text_;
    std::vector<Cut> cuts_;
    uint64_t cut_bytes_ = 0;
};

// The data file of external initializers.
struct DataFile {
    std::string location;
    uint64_t threshold = 0;
    uint64_t end = 0;
    std::vector<std::pair<uint64_t, Bytes>> parts; // offset, data

    uint64_t add(Bytes data) {
        const uint64_t offset = (end + data_alignment - 1) / data_alignment * data_alignment;
        parts.emplace_back(offset, data);
        end = offset + data.size();
        return offset;
    }
};

class Encoder {
public:
    explicit Encoder(DataFile* data_file) : data_file_(data_file) {}
    Message model(const Model& m);

private:
    Message graph(const Graph& g);
    Message node(const Node& n);
    Message attribute(const Attribute& a);
    void attribute_value(Message& out, const Attribute& a);
    Message initializer(const Tensor& t);
    Message function(const FunctionProto& f);

    DataFile* data_file_;
};

Message string_pair(const std::string& key, const std::string& value) {
    Message out;
    out.put().add_string(1, key);
    out.put().add_string(2, value);
    return out;
}

Message opset(const std::string& domain, int64_t version) {
    Message out;
    out.put().add_string(1, domain);
    out.put().add_int64(2, version);
    return out;
}

// Not packed, like protoc's output for onnx.proto.
void add_integers(Message& out, uint32_t field, const std::vector<int64_t>& list) {
    for (const int64_t v : list) {
        out.put().add_int64(field, v);
    }
}

Message tensor_head(const Tensor& t) {
    require(
        t.string_count == 0, ErrorCode::Unsupported, "tensor ", shown(t.name),
        " holds strings, which cannot be written back; where they only make labels at the ends, "
        "ingot slim --cut-strings removes them");
    Message out;
    add_integers(out, 1, t.dims);
    out.put().add_int32(2, t.data_type);
    out.text_unless_empty(8, t.name);
    return out;
}

Message tensor(const Tensor& t) {
    Message out = tensor_head(t);
    if (find_data_type(t.data_type) == nullptr ||
        find_data_type(t.data_type)->field != DataField::String) {
        out.data(9, t.bytes);
    }
    return out;
}

Message sparse_tensor(const SparseTensor& s) {
    Message out;
    out.message(1, tensor(s.values));
    out.message(2, tensor(s.indices));
    add_integers(out, 3, s.dims);
    return out;
}

Message shape(const std::vector<ShapeDim>& dims) {
    Message out;
    for (const ShapeDim& d : dims) {
        Message dim;
        if (d.value >= 0) {
            dim.put().add_int64(1, d.value);
        } else {
            dim.text_unless_empty(2, d.param);
        }
        out.message(1, std::move(dim));
    }
    return out;
}

Message value_info(const ValueInfo& v) {
    Message out;
    out.put().add_string(1, v.name);
    if (v.kind == ValueKind::Tensor) {
        Message tensor_type;
        if (v.elem_type != 0) {
            tensor_type.put().add_int32(1, v.elem_type);
        }
        if (v.has_shape) {
            tensor_type.message(2, shape(v.dims));
        }
        Message type;
        type.message(1, std::move(tensor_type));
        out.message(2, std::move(type));
    } else if (v.kind != ValueKind::None) {
        out.put().add_message(2, v.type_message);
    }
    return out;
}

Message Encoder::initializer(const Tensor& t) {
    if (data_file_ == nullptr || t.bytes.empty() || t.bytes.size() < data_file_->threshold) {
        return tensor(t);
    }
    Message out = tensor_head(t);
    const uint64_t offset = data_file_->add(t.bytes);
    out.message(13, string_pair("location", data_file_->location));
    out.message(13, string_pair("offset", str(offset)));
    out.message(13, string_pair("length", str(t.bytes.size())));
    out.put().add_int32(14, 1);
    return out;
}

void Encoder::attribute_value(Message& out, const Attribute& a) {
    switch (a.type) {
    case AttributeType::Float:
        out.put().add_float(2, a.f);
        break;
    case AttributeType::Int:
        out.put().add_int64(3, a.i);
        break;
    case AttributeType::String:
        out.put().add_bytes(4, a.s);
        break;
    case AttributeType::Tensor:
        out.message(5, tensor(a.t));
        break;
    case AttributeType::Graph:
        out.message(6, graph(*a.g));
        break;
    case AttributeType::SparseTensor:
        out.message(22, sparse_tensor(*a.sparse_tensor));
        break;
    case AttributeType::Floats:
        for (const float v : a.floats) {
            out.put().add_float(7, v);
        }
        break;
    case AttributeType::Ints:
        add_integers(out, 8, a.ints);
        break;
    case AttributeType::Strings:
        for (const std::string& v : a.strings) {
            out.put().add_bytes(9, v);
        }
        break;
    case AttributeType::Tensors:
        for (const Tensor& v : a.tensors) {
            out.message(10, tensor(v));
        }
        break;
    case AttributeType::Graphs:
        for (const std::shared_ptr<Graph>& v : a.graphs) {
            out.message(11, graph(*v));
        }
        break;
    default:
        fail(ErrorCode::Unsupported, "attribute ", shown(a.name), " has type ", a.type,
             ", which cannot be written back");
    }
}

Message Encoder::attribute(const Attribute& a) {
    Message out;
    out.put().add_string(1, a.name);
    if (a.ref_attr_name.empty()) {
        attribute_value(out, a);
    }
    if (a.type != AttributeType::Undefined) {
        out.put().add_int32(20, static_cast<int32_t>(a.type));
    }
    out.text_unless_empty(21, a.ref_attr_name);
    return out;
}

Message Encoder::node(const Node& n) {
    Message out;
    for (const std::string& v : n.inputs) {
        out.put().add_string(1, v);
    }
    for (const std::string& v : n.outputs) {
        out.put().add_string(2, v);
    }
    out.text_unless_empty(3, n.name);
    out.put().add_string(4, n.op_type);
    with_place([&] { return str("node ", shown(n.name), " (", escaped(n.op_type), ")"); },
               [&] {
                   for (const Attribute& a : n.attributes) {
                       out.message(5, attribute(a));
                   }
               });
    out.text_unless_empty(7, n.domain);
    out.text_unless_empty(8, n.overload);
    return out;
}

Message Encoder::graph(const Graph& g) {
    Message out;
    for (const Node& n : g.nodes) {
        out.message(1, node(n));
    }
    out.put().add_string(2, g.name);
    for (const Tensor& t : g.initializers) {
        out.message(5, initializer(t));
    }
    const auto values = [&](uint32_t field, const std::vector<ValueInfo>& list) {
        for (const ValueInfo& v : list) {
            out.message(field, value_info(v));
        }
    };
    values(11, g.inputs);
    values(12, g.outputs);
    values(13, g.value_info);
    for (const QuantizationAnnotation& a : g.quantization_annotation) {
        Message annotation;
        annotation.put().add_string(1, a.tensor_name);
        for (const auto& [key, value] : a.parameters) {
            annotation.message(2, string_pair(key, value));
        }
        out.message(14, std::move(annotation));
    }
    for (const SparseTensor& s : g.sparse_initializers) {
        out.message(15, sparse_tensor(s));
    }
    return out;
}

Message Encoder::function(const FunctionProto& f) {
    Message out;
    out.put().add_string(1, f.key.name);
    const auto names = [&](uint32_t field, const std::vector<std::string>& list) {
        for (const std::string& v : list) {
            out.put().add_string(field, v);
        }
    };
    names(4, f.inputs);
    names(5, f.outputs);
    names(6, f.attributes);
    for (const Node& n : f.nodes) {
        out.message(7, node(n));
    }
    for (const auto& [domain, version] : f.opset_imports) {
        out.message(9, opset(domain, version));
    }
    out.put().add_string(10, f.key.domain);
    for (const Attribute& a : f.attribute_protos) {
        out.message(11, attribute(a));
    }
    for (const ValueInfo& v : f.value_info) {
        out.message(12, value_info(v));
    }
    out.text_unless_empty(13, f.key.overload);
    return out;
}

Message Encoder::model(const Model& m) {
    Message out;
    out.put().add_int64(1, m.ir_version);
    out.text_unless_empty(2, m.producer_name);
    out.text_unless_empty(3, m.producer_version);
    out.text_unless_empty(4, m.domain);
    if (m.model_version != 0) {
        out.put().add_int64(5, m.model_version);
    }
    out.message(7, graph(m.graph));
    for (const auto& [domain, version] : m.opset_imports) {
        out.message(8, opset(domain, version));
    }
    for (const auto& [key, value] : m.metadata_props) {
        out.message(14, string_pair(key, value));
    }
    for (const auto& [key, f] : m.functions) {
        out.message(25, function(f));
    }
    return out;
}

void write_data_file(const DataFile& data, AtomicFile& file) {
    static constexpr std::array<std::byte, data_alignment> zeros{};
    for (const auto& [offset, bytes] : data.parts) {
        file.write(std::span(zeros).first(static_cast<size_t>(offset - file.position())));
        file.write(bytes);
    }
}

std::string file_name(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

} // namespace

void write_model_file(const Model& model, const std::string& path, const WriteOptions& options) {
    DataFile data{file_name(path) + ".data", options.external_threshold.value_or(0), 0, {}};
    Message message = Encoder(options.external_threshold ? &data : nullptr).model(model);
    if (!options.external_threshold && message.size() > options.message_limit) {
        data.threshold = default_threshold;
        message = Encoder(&data).model(model);
    }
    require(message.size() <= options.message_limit, ErrorCode::InvalidArgument, path,
            ": the model needs ", message.size(), " bytes beside its external data, at most ",
            options.message_limit, " are possible");
    if (!data.parts.empty()) {
        AtomicFile file(path + ".data");
        write_data_file(data, file);
        file.commit();
    }
    AtomicFile file(path);
    message.pieces([&](Bytes piece) { file.write(piece); });
    file.commit();
}

std::string write_model(const Model& model) {
    const Message message = Encoder(nullptr).model(model);
    std::string out;
    out.reserve(static_cast<size_t>(message.size()));
    message.pieces([&](Bytes piece) {
        out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return out;
}

} // namespace ingot::onnx
