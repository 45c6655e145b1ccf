// SPDX-License-Identifier: Apache-2.0
// Reading of the binary form; binary.cpp has the layout.
#include "base/error.h"
#include "ir/binary.h"
#include "ir/binary_format.h"
#include "ir/verify.h"

namespace ingot {

namespace {

using namespace binary;

// An op's attribute layout in the file: the target of each stored field.
struct Layout {
    const OpDef* def = nullptr;
    std::vector<size_t> fields; // index into the op's own list
};

class Reader {
public:
    Reader(std::span<const std::byte> bytes, const ReadOptions& options)
        : bytes_(bytes), options_(options) {}
    Graph run();

private:
    template <class... Args>
    [[noreturn]] void error(const Args&... args) const {
        fail(ErrorCode::InvalidEngine, "graph section, byte ", at_, ": ", args...);
    }
    /// Runs f; its errors become InvalidEngine with the position.
    template <class F>
    decltype(auto) checked(F&& f) const {
        try {
            return std::forward<F>(f)();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::InvalidEngine || e.code() == ErrorCode::OutOfMemory) {
                throw;
            }
            error(e.what());
        }
    }

    uint8_t byte();
    uint64_t varint();
    int64_t zigzag();
    uint64_t fixed64();
    std::span<const std::byte> raw(uint64_t count);
    /// A count of items that take at least `each` bytes.
    size_t count(std::string_view what, size_t each = 1);
    /// An index below `limit`.
    size_t index(std::string_view what, size_t limit);
    DType dtype();

    const std::string& string() { return strings_[index("string", strings_.size())]; }
    const Dim& size() { return sizes_[index("size", sizes_.size())]; }
    const Type& type() { return types_[index("type", types_.size())]; }
    void read_strings();
    void read_sizes();
    void read_types();
    void read_layouts();
    Layout layout();

    Graph graph(const Graph* family, int depth);
    void input(Graph& g);
    HostRef host(const Type& t);
    void node(Graph& g, int depth);
    Values add(Graph& g, const Layout& l, std::shared_ptr<const void> attrs, const Values& in);

    void field(bool* v, int) { *v = index("flag", 2) != 0; }
    void field(int64_t* v, int) { *v = zigzag(); }
    void field(double* v, int) { *v = std::bit_cast<double>(fixed64()); }
    void field(std::string* v, int) { *v = string(); }
    void field(DType* v, int) { *v = dtype(); }
    void field(Dim* v, int) { *v = size(); }
    void field(Expr* v, int) {
        const std::string& text = string();
        *v = checked([&] { return parse_expr(text); });
    }
    template <class T>
    void field(std::vector<T>* v, int depth) {
        v->resize(count("list element"));
        for (T& x : *v) {
            field(&x, depth);
        }
    }
    void field(Tensor* v, int);
    void field(GraphRef* v, int depth) {
        *v = index("body flag", 2) == 0 ? nullptr
                                        : std::make_shared<const Graph>(graph(family_, depth + 1));
    }

    std::span<const std::byte> bytes_;
    const ReadOptions& options_;
    size_t at_ = 0;
    std::vector<std::string> strings_;
    Dims sizes_;
    std::vector<Type> types_;
    std::vector<Layout> layouts_;
    const Graph* family_ = nullptr;
};

uint8_t Reader::byte() {
    if (at_ == bytes_.size()) {
        error("the section ends here, expected more");
    }
    return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t Reader::varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint64_t b = byte();
        if (shift == 63 && b > 1) {
            break;
        }
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            return v;
        }
    }
    error("a number is longer than 64 bits");
}

int64_t Reader::zigzag() {
    uint64_t v = varint();
    return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
}

uint64_t Reader::fixed64() {
    uint64_t v = 0;
    for (int i = 0; i < 8; ++i) {
        v |= uint64_t{byte()} << (8 * i);
    }
    return v;
}

std::span<const std::byte> Reader::raw(uint64_t n) {
    if (n > bytes_.size() - at_) {
        error(n, " bytes are declared, ", bytes_.size() - at_, " are left");
    }
    at_ += n;
    return bytes_.subspan(at_ - n, n);
}

size_t Reader::count(std::string_view what, size_t each) {
    uint64_t n = varint();
    if (n > (bytes_.size() - at_) / each) {
        error("declares ", n, " of ", what, ", only ", bytes_.size() - at_, " bytes are left");
    }
    return n;
}

size_t Reader::index(std::string_view what, size_t limit) {
    uint64_t n = varint();
    if (n >= limit) {
        error(what, " ", n, " does not exist, expected less than ", limit);
    }
    return n;
}

DType Reader::dtype() {
    uint8_t v = byte();
    if (v >= dtype_count) {
        error("element type ", v, " is unknown, expected less than ", dtype_count);
    }
    return static_cast<DType>(v);
}

void Reader::read_strings() {
    size_t n = count("string");
    strings_.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        auto text = raw(varint());
        strings_.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
}

void Reader::read_sizes() {
    size_t n = count("size", 2);
    sizes_.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        if (index("kind of size", 2) == 0) {
            sizes_.emplace_back(zigzag());
        } else {
            const std::string& text = string();
            sizes_.push_back(checked([&] { return parse_dim(text); }));
        }
    }
}

void Reader::read_types() {
    size_t n = count("type", 2);
    types_.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        Type t{dtype(), {}};
        size_t rank = count("dimension");
        for (size_t k = 0; k < rank; ++k) {
            t.dims.push_back(size());
        }
        types_.push_back(std::move(t));
    }
}

Layout Reader::layout() {
    Layout l;
    const std::string& op = string();
    l.def = options_.find_op == nullptr ? nullptr : options_.find_op(op);
    if (l.def == nullptr) {
        error("unknown op '", op, "': the engine needs a newer version of this library");
    }
    std::shared_ptr<void> attrs = l.def->make();
    FieldList known(*l.def, attrs.get());
    size_t n = count("attribute", 2);
    std::vector<bool> seen(known.fields.size(), false);
    for (size_t i = 0; i < n; ++i) {
        const std::string& name = string();
        size_t at = known.find(name);
        if (at == SIZE_MAX) {
            error("op '", op, "' has no attribute '", name, "', expected one of ", known.names(),
                  ": the engine needs a newer version of this library");
        }
        uint8_t kind = byte();
        if (kind != known.fields[at].second.index() || seen[at]) {
            error("attribute '", name, "' of op '", op, "' is stored ",
                  seen[at]
                      ? "twice"
                      : str("with kind ", kind, ", expected ", known.fields[at].second.index()));
        }
        seen[at] = true;
        l.fields.push_back(at);
    }
    return l;
}

void Reader::read_layouts() {
    size_t n = count("op", 2);
    for (size_t i = 0; i < n; ++i) {
        layouts_.push_back(layout());
    }
}

void Reader::field(Tensor* v, int) {
    uint8_t kind = byte();
    if (kind == tensor_none) {
        *v = {};
        return;
    }
    if (kind != tensor_inline && kind != tensor_placed) {
        error("storage kind ", kind, " of a constant is unknown, expected 0, 1 or 2");
    }
    DType t = dtype();
    Shape shape(count("dimension"));
    for (int64_t& d : shape) {
        uint64_t size = varint();
        if (size > uint64_t{INT64_MAX}) {
            error("a constant's size ", size, " is too large");
        }
        d = static_cast<int64_t>(size);
    }
    int64_t bytes = checked([&] { return byte_size(t, count_of(shape)); });
    uint64_t stored = varint();
    if (stored != static_cast<uint64_t>(bytes)) {
        error("a constant ", t, shape, " is stored in ", stored, " bytes");
    }
    if (kind == tensor_inline) {
        auto from = raw(stored);
        Tensor copy = Tensor::empty(t, shape);
        std::copy(from.begin(), from.end(), copy.mutable_bytes().begin());
        *v = copy;
        return;
    }
    uint64_t offset = varint();
    if (!options_.fetch) {
        error("a constant lies in the weights section, but there is none");
    }
    *v = checked([&] { return options_.fetch(t, shape, offset); });
}

HostRef Reader::host(const Type& t) {
    auto out = std::make_shared<HostValue>();
    auto shape = ingot::as_const(t.dims);
    size_t n = count("known element");
    if (!shape || shape->size() > 1 || count_of(*shape) != static_cast<int64_t>(n)) {
        error("contents of ", n, " elements do not fit ", t);
    }
    out->shape = *shape;
    for (size_t i = 0; i < n; ++i) {
        uint64_t denominator = varint();
        if (denominator > uint64_t{INT64_MAX}) {
            error("denominator ", denominator, " is too large");
        }
        if (denominator == 0) {
            out->elements.emplace_back();
        } else {
            out->elements.emplace_back(HostElement{size(), static_cast<int64_t>(denominator)});
        }
    }
    return out;
}

void Reader::input(Graph& g) {
    const std::string& name = string();
    const Type& t = type();
    Value v = checked([&] { return g.add_input(name, t); });
    if (index("contents flag", 2) != 0) {
        g.set_host(v, host(t));
    }
}

Values Reader::add(Graph& g, const Layout& l, std::shared_ptr<const void> attrs, const Values& in) {
    return with_place([&] { return str("node '", g.origin(), "' (", l.def->name, ")"); },
                      [&] { return checked([&] { return g.add(*l.def, attrs, in); }); });
}

void Reader::node(Graph& g, int depth) {
    const Layout& l = layouts_[index("op", layouts_.size())];
    const std::string& origin = string();
    Values in(count("operand"));
    for (Value& v : in) {
        uint64_t back = varint();
        if (back == 0 || back > g.value_count()) {
            error("an operand of node '", origin, "' lies ", back, " values back, expected 1 to ",
                  g.value_count());
        }
        v.id = static_cast<uint32_t>(g.value_count() - back);
    }
    std::shared_ptr<void> attrs = l.def->make();
    FieldList fields(*l.def, attrs.get());
    for (size_t i : l.fields) {
        std::visit([&](auto* p) { field(p, depth); }, fields.fields[i].second);
    }
    g.set_origin(origin);
    Values out = add(g, l, attrs, in);
    size_t results = count("result");
    if (results != out.size()) {
        error("node '", origin, "' (", l.def->name, ") has ", out.size(), " results, ", results,
              " are stored");
    }
    for (Value v : out) {
        const Type& t = type();
        if (!(t == g.type(v))) {
            error("a result of node '", origin, "' (", l.def->name, ") is stored as ", t,
                  ", inference gives ", g.type(v));
        }
        const std::string& name = string();
        if (!name.empty()) {
            g.set_value_name(v, name);
        }
    }
}

Graph Reader::graph(const Graph* family, int depth) {
    if (depth > max_depth) {
        error("bodies are nested deeper than ", max_depth);
    }
    const std::string& name = string();
    Graph g = family == nullptr ? Graph(name) : family->sibling(name);
    family_ = &g;
    for (size_t n = count("input", 3); n > 0; --n) {
        input(g);
    }
    for (size_t n = count("node", 3); n > 0; --n) {
        node(g, depth);
    }
    for (size_t n = count("output", 2); n > 0; --n) {
        size_t v = index("output value", g.value_count());
        g.add_output(string(), Value{static_cast<uint32_t>(v)});
    }
    family_ = family;
    return g;
}

Graph Reader::run() {
    uint64_t version = varint();
    if (version != format_version) {
        error("graph format ", version, " is not supported, expected ", format_version,
              ": rebuild the engine, or use the version of the library that wrote it");
    }
    read_strings();
    read_sizes();
    read_types();
    read_layouts();
    Graph g = graph(nullptr, 0);
    if (at_ != bytes_.size()) {
        error(bytes_.size() - at_, " bytes follow the graph, expected none");
    }
    g.reserve_symbols();
    verify_names(g, ErrorCode::InvalidEngine);
    return g;
}

} // namespace

Graph read_graph(std::span<const std::byte> bytes, const ReadOptions& options) {
    return Reader(bytes, options).run();
}

} // namespace ingot
