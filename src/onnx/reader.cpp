// SPDX-License-Identifier: Apache-2.0
// ModelProto, FunctionProto, and the entry points of the reader.
#include "onnx/reader.h"

#include "base/file.h"
#include "base/page_guard.h"
#include "onnx/reader_parts.h"

#include <algorithm>
#include <new>

namespace ingot::onnx {
namespace {

void read_opset(Bytes message, OpsetImports& imports, ReadContext& context) {
    std::string domain;
    int64_t version = 0;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            domain = plain_domain(w.once("domain").text());
            break;
        case 2:
            version = w.once("version").integer();
            break;
        default:
            w.skip();
        }
    }
    require(version > 0, ErrorCode::InvalidModel, "opset_import of domain ", shown(domain),
            " has version ", version, ", expected 1 or more");
    context.budget.take(sizeof(OpsetImports::value_type) + 48 + domain.size());
    const auto [found, is_new] = imports.emplace(domain, version);
    require(is_new || found->second == version, ErrorCode::InvalidModel, "opset_import of domain ",
            shown(domain), " has two versions, ", found->second, " and ", version);
}

bool read_function_body(Wire& w, FunctionProto& f, ReadContext& context) {
    switch (w.field()) {
    case 7: {
        const Bytes part = w.repeated("node").bytes();
        append_message(f.nodes, part, "node", 3, context,
                       [&] { return read_node_message(part, context); });
        return true;
    }
    case 9:
        read_opset(w.repeated("opset_import").bytes(), f.opset_imports, context);
        return true;
    case 11: {
        const Bytes part = w.repeated("attribute_proto").bytes();
        append_message(f.attribute_protos, part, "attribute", 1, context,
                       [&] { return read_attribute_message(part, context); });
        return true;
    }
    case 12: {
        const Bytes part = w.repeated("value_info").bytes();
        append_message(f.value_info, part, "value_info", 1, context,
                       [&] { return read_value_info_message(part, context); });
        return true;
    }
    default:
        return false;
    }
}

bool read_function_head(Wire& w, FunctionProto& f, ReadContext& context) {
    switch (w.field()) {
    case 1:
        f.key.name = context.budget.text(w.once("name").text());
        return true;
    case 4:
        context.budget.take_element(f.inputs);
        f.inputs.push_back(context.budget.text(w.repeated("input").text()));
        return true;
    case 5:
        context.budget.take_element(f.outputs);
        f.outputs.push_back(context.budget.text(w.repeated("output").text()));
        return true;
    case 6:
        context.budget.take_element(f.attributes);
        f.attributes.push_back(context.budget.text(w.repeated("attribute").text()));
        return true;
    case 10:
        f.key.domain = plain_domain(w.once("domain").text());
        return true;
    case 13:
        f.key.overload = context.budget.text(w.once("overload").text());
        return true;
    default:
        return false;
    }
}

void check_function(const FunctionProto& f) {
    require(!f.key.name.empty(), ErrorCode::InvalidModel, "has no name");
    require_unique({f.inputs.begin(), f.inputs.end()}, "input");
    require_unique({f.outputs.begin(), f.outputs.end()}, "output");
    std::vector<std::string_view> attributes(f.attributes.begin(), f.attributes.end());
    for (const Attribute& a : f.attribute_protos) {
        attributes.emplace_back(a.name);
    }
    require_unique(std::move(attributes), "attribute");
}

FunctionProto read_function(Bytes message, ReadContext& context) {
    FunctionProto f;
    Wire w(message, context.origin);
    context.in_function = true;
    while (w.next()) {
        if (!read_function_head(w, f, context) && !read_function_body(w, f, context)) {
            w.skip();
        }
    }
    context.in_function = false;
    check_function(f);
    return f;
}

void add_function(Bytes message, size_t index, Model& m, ReadContext& context) {
    with_place([&] { return place_of("function", message, 1, index); },
               [&] {
                   context.budget.take(sizeof(FunctionKey) + sizeof(FunctionProto) + 64);
                   FunctionProto f = read_function(message, context);
                   FunctionKey key = f.key;
                   require(m.functions.emplace(std::move(key), std::move(f)).second,
                           ErrorCode::InvalidModel,
                           "is defined twice with the same domain, name and overload");
               });
}

// The state of reading a ModelProto.
struct ModelReader {
    Model& m;
    ReadContext& context;
    bool has_graph = false;
    size_t function_count = 0;

    bool read_head(Wire& w) const {
        switch (w.field()) {
        case 1:
            m.ir_version = w.once("ir_version").integer();
            return true;
        case 2:
            m.producer_name = w.once("producer_name").text();
            return true;
        case 3:
            m.producer_version = w.once("producer_version").text();
            return true;
        case 4:
            m.domain = w.once("domain").text();
            return true;
        case 5:
            m.model_version = w.once("model_version").integer();
            return true;
        default:
            return false;
        }
    }

    bool read_body(Wire& w) {
        switch (w.field()) {
        case 7:
            m.graph = read_graph_message(w.once("graph").bytes(), context);
            has_graph = true;
            return true;
        case 8:
            read_opset(w.repeated("opset_import").bytes(), m.opset_imports, context);
            return true;
        case 14:
            context.budget.take_element(m.metadata_props);
            m.metadata_props.push_back(
                read_string_pair(w.repeated("metadata_props").bytes(), context));
            return true;
        case 25:
            add_function(w.repeated("functions").bytes(), function_count, m, context);
            ++function_count;
            return true;
        default:
            return false;
        }
    }
};

bool is_model_field(uint32_t field) {
    return field <= 8 || field == 14 || field == 25;
}

Model decode_model(Bytes bytes, ReadContext& context) {
    Model m;
    ModelReader reader{m, context};
    bool is_model = false;
    try {
        Wire w(bytes, context.origin);
        while (w.next()) {
            is_model = is_model || is_model_field(w.field());
            if (!reader.read_head(w) && !reader.read_body(w)) {
                w.skip();
            }
        }
    } catch (Error& e) {
        if (!is_model) {
            e.at("not an ONNX model");
        }
        throw;
    }
    require(m.ir_version > 0, ErrorCode::InvalidModel, "not an ONNX model: ir_version is ",
            m.ir_version, ", expected 1 or more");
    require(reader.has_graph, ErrorCode::InvalidModel, "the model has no graph");
    require(!m.graph.outputs.empty(), ErrorCode::InvalidModel, "the graph has no outputs");
    // Before IR version 3 there was a single, implicit operator set.
    if (m.opset_imports.empty() && m.ir_version < 3) {
        m.opset_imports.emplace("", 1);
    }
    require(!m.opset_imports.empty(), ErrorCode::InvalidModel, "the model has no opset_import");
    return m;
}

void refuse_other_files(Bytes bytes) {
    require(!bytes.empty(), ErrorCode::InvalidModel, "the file is empty");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    require(!text.starts_with("version https://git-lfs."), ErrorCode::InvalidModel,
            "this is a Git LFS pointer, not the file it stands for; fetch it with 'git lfs pull'");
}

// Untrusted bytes may request more memory than the machine has: reports that as an error of the
// input.
template <class F>
auto guard_memory(const F& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        fail(ErrorCode::OutOfMemory, "out of memory while reading the model");
    }
}

} // namespace

MemoryBudget::MemoryBudget(size_t file_bytes)
    : file_bytes_(file_bytes), limit_((size_t{512} << 20) + 2 * file_bytes) {}

void MemoryBudget::take(size_t bytes) {
    taken_ += bytes;
    require(taken_ <= limit_, ErrorCode::InvalidModel,
            "the list of nodes, values, attributes and names needs more than ", limit_,
            " bytes of memory; the limit is 512 MiB and twice the file's ", file_bytes_,
            " bytes. Store numbers as initializers, drop unused value_info and metadata, or "
            "split the model");
}

size_t count_field(Bytes message, uint32_t field) {
    size_t n = 0;
    try {
        Wire w(message, message.data());
        while (w.next()) {
            n += w.field() == field ? 1 : 0;
            w.skip();
        }
    } catch (const Error&) {
        return n; // reported where it is read
    }
    return n;
}

std::pair<std::string, std::string> read_string_pair(Bytes message, ReadContext& context) {
    std::pair<std::string, std::string> p;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            p.first = context.budget.text(w.once("key").text());
            break;
        case 2:
            p.second = context.budget.text(w.once("value").text());
            break;
        default:
            w.skip();
        }
    }
    return p;
}

std::string place_of(std::string_view kind, Bytes message, uint32_t name_field, size_t index) {
    const std::string name = peek_text(message, name_field);
    if (kind == "node") {
        const std::string op = peek_text(message, 4);
        const std::string label = name.empty() ? str("node #", index) : str("node ", shown(name));
        return op.empty() ? label : str(label, " (", escaped(op), ")");
    }
    return name.empty() ? str(kind, " #", index) : str(kind, " ", shown(name));
}

std::string plain_domain(std::string domain) {
    return domain == "ai.onnx" ? std::string() : std::move(domain);
}

void require_unique(std::vector<std::string_view> names, std::string_view kind) {
    std::sort(names.begin(), names.end());
    require(names.empty() || !names.front().empty(), ErrorCode::InvalidModel, "an ", kind,
            " has no name");
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
        fail(ErrorCode::InvalidModel, "two ", kind, "s are called ", shown(*twice));
    }
}

namespace {

Model read(std::span<const std::byte> bytes, std::string folder, std::shared_ptr<const void> owner,
           bool may_lack_data) {
    return guard_memory([&] {
        refuse_other_files(bytes);
        ReadContext context{bytes, owner, ExternalFiles(folder)};
        context.initializers_may_lack_data = may_lack_data;
        Model m = decode_model(bytes, context);
        m.folder = std::move(folder);
        m.owner = std::move(owner);
        return m;
    });
}

} // namespace

Model read_model(std::span<const std::byte> bytes, std::string folder,
                 std::shared_ptr<const void> owner) {
    return read(bytes, std::move(folder), std::move(owner), false);
}

Model read_model_without_data(std::span<const std::byte> bytes, std::string folder,
                              std::shared_ptr<const void> owner) {
    return read(bytes, std::move(folder), std::move(owner), true);
}

Model read_model_file(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    Model m = with_place([&] { return path; },
                         [&] { return read_model(file->bytes(), parent_folder(path), file); });
    check_pages(file->bytes());
    return m;
}

Tensor read_tensor(std::span<const std::byte> bytes) {
    return guard_memory([&] {
        ReadContext context{bytes, nullptr, ExternalFiles("")};
        return read_tensor_message(bytes, context);
    });
}

Tensor read_tensor_file(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    return with_place(
        [&] { return path; },
        [&] {
            return guard_memory([&] {
                refuse_other_files(file->bytes());
                ReadContext context{file->bytes(), file, ExternalFiles(parent_folder(path))};
                return read_tensor_message(file->bytes(), context);
            });
        });
}

} // namespace ingot::onnx
