// SPDX-License-Identifier: Apache-2.0
// Writing of the binary form. The layout, in order (all numbers varints unless said otherwise):
//   format version; strings (count; length, bytes each)
//   sizes   (count; 0 and a zigzag integer, or 1 and the string of an expression)
//   types   (count; dtype byte, rank, sizes)
//   layouts (count; op's name, field count; name and kind of each field)
//   the graph: name; inputs (name, type, contents); nodes; outputs (value, name)
//   a node: layout, origin, operands (distance back to the value), fields, results (type, name)
#include "ir/binary.h"

#include "base/error.h"
#include "ir/binary_format.h"

namespace ingot {

namespace {

using namespace binary;

class Bytes {
public:
    void byte(uint8_t v) { data_.push_back(std::byte{v}); }
    void varint(uint64_t v) {
        while (v >= 0x80) {
            byte(static_cast<uint8_t>(v | 0x80));
            v >>= 7;
        }
        byte(static_cast<uint8_t>(v));
    }
    void zigzag(int64_t v) {
        varint((static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63));
    }
    void fixed64(uint64_t v) {
        for (int i = 0; i < 8; ++i) {
            byte(static_cast<uint8_t>(v >> (8 * i)));
        }
    }
    void raw(std::span<const std::byte> v) { data_.insert(data_.end(), v.begin(), v.end()); }
    void raw(std::string_view v) { raw(std::as_bytes(std::span(v.data(), v.size()))); }
    void append(const Bytes& other) { raw(other.data_); }
    std::vector<std::byte> take() { return std::move(data_); }

private:
    std::vector<std::byte> data_;
};

// Gives each distinct entry a number, in order of first use.
class Table {
public:
    /// The number of `key`; `write` appends the entry to its argument when it is new.
    template <class F>
    uint64_t index(const std::string& key, F&& write) {
        auto [at, fresh] = known_.try_emplace(key, known_.size());
        if (fresh) {
            Bytes entry;
            write(entry);
            entries_.append(entry);
        }
        return at->second;
    }
    void reserve(size_t entries) { known_.reserve(entries); }
    void write(Bytes& out) const {
        out.varint(known_.size());
        out.append(entries_);
    }

private:
    std::unordered_map<std::string, uint64_t> known_;
    Bytes entries_;
};

class Writer {
public:
    explicit Writer(const StoreTensor& store) : store_(store) {}
    std::vector<std::byte> run(const Graph& g);

private:
    uint64_t string(const std::string& s) {
        return strings_.index(s, [&](Bytes& b) {
            b.varint(s.size());
            b.raw(s);
        });
    }
    uint64_t expression(const Expr& e);
    uint64_t size(const Dim& d);
    uint64_t type(const Type& t);
    uint64_t layout(const OpDef& def, const FieldList& fields);
    void graph(Bytes& b, const Graph& g);
    void input(Bytes& b, const Graph& g, Value v);
    void node(Bytes& b, const Graph& g, const Node& n, std::vector<uint64_t>& numbers,
              uint64_t& next);
    void shape(Bytes& b, const Shape& s);

    void field(Bytes& b, const bool* v) { b.byte(*v ? 1 : 0); }
    void field(Bytes& b, const int64_t* v) { b.zigzag(*v); }
    void field(Bytes& b, const double* v) { b.fixed64(std::bit_cast<uint64_t>(*v)); }
    void field(Bytes& b, const std::string* v) { b.varint(string(*v)); }
    void field(Bytes& b, const DType* v) { b.byte(static_cast<uint8_t>(*v)); }
    void field(Bytes& b, const Dim* v) { b.varint(size(*v)); }
    void field(Bytes& b, const Expr* v) { b.varint(expression(*v)); }
    template <class T>
    void field(Bytes& b, const std::vector<T>* v) {
        b.varint(v->size());
        for (const T& x : *v) {
            field(b, &x);
        }
    }
    void field(Bytes& b, const Tensor* v);
    void field(Bytes& b, const GraphRef* v) {
        b.byte(*v == nullptr ? 0 : 1);
        if (*v != nullptr) {
            graph(b, **v);
        }
    }

    struct Hash {
        size_t operator()(const Expr& e) const { return hash_of(e); }
    };

    const StoreTensor& store_;
    Table strings_, sizes_, types_, layouts_;
    std::unordered_map<Expr, uint64_t, Hash> expressions_; // the strings of their texts
    std::unordered_map<const OpDef*, uint64_t> defs_;      // their layouts
    const Type* last_type_ = nullptr; // of a graph that is being written, with its number
    uint64_t last_number_ = 0;
};

uint64_t Writer::expression(const Expr& e) {
    auto [at, fresh] = expressions_.try_emplace(e);
    if (fresh) {
        at->second = string(to_text(e));
    }
    return at->second;
}

uint64_t Writer::size(const Dim& d) {
    std::string text = to_text(d);
    return sizes_.index(text, [&](Bytes& b) {
        b.byte(d.is_const() ? 0 : 1);
        if (d.is_const()) {
            b.zigzag(d.value());
        } else {
            b.varint(string(text));
        }
    });
}

uint64_t Writer::type(const Type& t) {
    if (last_type_ == nullptr || *last_type_ != t) { // neighbours often have one type
        last_number_ = types_.index(to_text(t), [&](Bytes& b) {
            b.byte(static_cast<uint8_t>(t.dtype));
            b.varint(t.dims.size());
            for (const Dim& d : t.dims) {
                b.varint(size(d));
            }
        });
        last_type_ = &t;
    }
    return last_number_;
}

uint64_t Writer::layout(const OpDef& def, const FieldList& fields) {
    auto [at, fresh] = defs_.try_emplace(&def);
    if (fresh) {
        at->second = layouts_.index(std::string(def.name), [&](Bytes& b) {
            b.varint(string(std::string(def.name)));
            b.varint(fields.fields.size());
            for (const auto& [name, pointer] : fields.fields) {
                b.varint(string(std::string(name)));
                b.byte(static_cast<uint8_t>(pointer.index()));
            }
        });
    }
    return at->second;
}

void Writer::shape(Bytes& b, const Shape& s) {
    b.varint(s.size());
    for (int64_t d : s) {
        b.varint(static_cast<uint64_t>(d));
    }
}

void Writer::field(Bytes& b, const Tensor* v) {
    if (!v->defined()) {
        return b.byte(tensor_none);
    }
    bool here = v->bytes().size() <= max_inline_bytes;
    b.byte(here ? tensor_inline : tensor_placed);
    b.byte(static_cast<uint8_t>(v->dtype()));
    shape(b, v->shape());
    b.varint(v->bytes().size());
    if (here) {
        b.raw(v->bytes());
    } else {
        b.varint(store_(*v));
    }
}

void Writer::input(Bytes& b, const Graph& g, Value v) {
    b.varint(string(g.value_name(v)));
    b.varint(type(g.type(v)));
    HostRef host = g.host(v);
    b.byte(host == nullptr ? 0 : 1);
    if (host == nullptr) {
        return;
    }
    b.varint(host->elements.size());
    for (const auto& e : host->elements) {
        b.varint(e ? static_cast<uint64_t>(e->denominator) : 0);
        if (e) {
            b.varint(size(e->numerator));
        }
    }
}

void Writer::node(Bytes& b, const Graph& g, const Node& n, std::vector<uint64_t>& numbers,
                  uint64_t& next) {
    FieldList fields(*n.def, const_cast<void*>(n.attrs.get()));
    b.varint(layout(*n.def, fields));
    b.varint(string(n.name));
    b.varint(n.inputs.size());
    for (Value v : n.inputs) {
        b.varint(next - numbers[v.id]);
    }
    for (const auto& f : fields.fields) {
        std::visit([&](const auto* p) { field(b, p); }, f.second);
    }
    b.varint(n.outputs.size());
    for (Value v : n.outputs) {
        numbers[v.id] = next++;
        b.varint(type(g.type(v)));
        b.varint(string(g.value_name(v)));
    }
}

void Writer::graph(Bytes& b, const Graph& g) {
    std::vector<uint64_t> numbers(g.value_count(), 0);
    uint64_t next = 0;
    b.varint(string(g.name()));
    b.varint(g.inputs().size());
    for (Value v : g.inputs()) {
        numbers[v.id] = next++;
        input(b, g, v);
    }
    b.varint(g.nodes().size());
    for (const Node& n : g.nodes()) {
        node(b, g, n, numbers, next);
    }
    b.varint(g.outputs().size());
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        b.varint(numbers[g.outputs()[i].id]);
        b.varint(string(g.output_names()[i]));
    }
}

std::vector<std::byte> Writer::run(const Graph& g) {
    strings_.reserve(g.nodes().size());
    Bytes body;
    graph(body, g);
    Bytes out;
    out.varint(format_version);
    strings_.write(out);
    sizes_.write(out);
    types_.write(out);
    layouts_.write(out);
    out.append(body);
    return out.take();
}

} // namespace

std::vector<std::byte> write_graph(const Graph& g, const StoreTensor& store) {
    return Writer(store).run(g);
}

} // namespace ingot
