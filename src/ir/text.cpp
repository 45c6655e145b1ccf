// SPDX-License-Identifier: Apache-2.0
// Parsing of the text form: one pass by recursive descent over a cursor that knows its line.
#include "ir/text.h"

#include "ir/field_list.h"
#include "ir/text_cursor.h"

#include <map>

namespace ingot {

namespace {

using text::Cursor;

constexpr int max_depth = 64;

class Parser {
public:
    Parser(Cursor& c, const ParseOptions& options, const Graph* family)
        : c_(c), options_(options), family_(family) {}

    Graph graph(int depth);
    std::shared_ptr<const void> attrs(const OpDef& def, char end, int depth);

private:
    using Scope = std::map<std::string, Value, std::less<>>;

    void read(bool* v, int) { *v = boolean(); }
    void read(int64_t* v, int) { *v = c_.number<int64_t>(); }
    void read(double* v, int) { *v = c_.number<double>(); }
    void read(std::string* v, int) { *v = c_.string(); }
    void read(DType* v, int) { *v = dtype(); }
    void read(Dim* v, int) { *v = dim(); }
    void read(std::vector<int64_t>* v, int) {
        v->clear();
        c_.list([&] { v->push_back(c_.number<int64_t>()); });
    }
    void read(std::vector<double>* v, int) {
        v->clear();
        c_.list([&] { v->push_back(c_.number<double>()); });
    }
    void read(std::vector<std::string>* v, int) {
        v->clear();
        c_.list([&] { v->push_back(c_.string()); });
    }
    void read(Dims* v, int) {
        v->clear();
        c_.list([&] { v->push_back(dim()); });
    }
    void read(Expr* v, int) {
        size_t start = c_.position();
        std::string text = c_.string();
        *v = c_.located(start, [&] { return parse_expr(text); });
    }
    void read(Tensor* v, int) { *v = tensor(); }
    void read(GraphRef* v, int depth) { *v = body(depth); }

    bool boolean();
    DType dtype();
    Dim dim();
    Type type();
    Tensor tensor();
    Tensor numbers(const Type& t, const Shape& shape);
    Tensor hexadecimal(const Type& t, const Shape& shape);
    Tensor elided(const Type& t, const Shape& shape);
    GraphRef body(int depth);

    std::string value_key(std::string* name);
    Value use(const Scope& scope);
    void define(Graph& g, Scope& scope, const std::string& key, const std::string& name, Value v);
    void input(Graph& g, Scope& scope);
    HostRef host(const Type& t);
    void node(Graph& g, Scope& scope, int depth);
    void results(Graph& g, const Scope& scope);
    std::shared_ptr<const void> node_attrs(const OpDef& def, int depth);
    void check_type(const Type& got, const Type& want, size_t position) const;

    Cursor& c_;
    const ParseOptions& options_;
    const Graph* family_;
};

bool Parser::boolean() {
    std::string_view w = c_.word();
    if (w != "true" && w != "false") {
        c_.error("expected true or false, got '", w, "'");
    }
    return w == "true";
}

DType Parser::dtype() {
    std::string_view w = c_.word();
    auto t = parse_dtype(w);
    if (!t) {
        c_.error("'", w, "' is not an element type");
    }
    return *t;
}

Dim Parser::dim() {
    size_t start = c_.position();
    std::string_view t = c_.expression();
    return c_.located(start, [&] { return parse_dim(t); });
}

Type Parser::type() {
    Type t{dtype(), {}};
    c_.list([&] { t.dims.push_back(dim()); });
    return t;
}

Tensor Parser::tensor() {
    Cursor before = c_;
    if (c_.word() == "none") {
        return {};
    }
    c_ = before;
    Type t = type();
    auto shape = ingot::as_const(t.dims);
    if (!shape) {
        c_.error("a constant of type ", t, " must have constant sizes");
    }
    c_.located(c_.position(), [&] { return count_of(*shape); });
    char next = c_.peek();
    return next == '<'   ? elided(t, *shape)
           : next == 'x' ? hexadecimal(t, *shape)
                         : numbers(t, *shape);
}

Tensor Parser::numbers(const Type& t, const Shape& shape) {
    std::vector<double> floats;
    std::vector<int64_t> integers;
    bool real = is_float(t.dtype);
    c_.list([&] {
        if (real) {
            floats.push_back(c_.number<double>());
        } else {
            integers.push_back(c_.number<int64_t>());
        }
    });
    auto got = static_cast<int64_t>(floats.size() + integers.size());
    if (got != count_of(shape)) {
        c_.error("got ", got, " elements for ", t, ", expected ", count_of(shape));
    }
    return real ? Tensor::of(t.dtype, shape, std::span<const double>(floats))
                : Tensor::of(t.dtype, shape, std::span<const int64_t>(integers));
}

Tensor Parser::hexadecimal(const Type& t, const Shape& shape) {
    c_.expect('x');
    std::string digits = c_.string();
    if (count_of(shape) > INT64_MAX / 64 ||
        static_cast<int64_t>(digits.size()) != 2 * byte_size(t.dtype, count_of(shape))) {
        c_.error("got ", digits.size(), " digits for ", t, ", expected two for each byte");
    }
    Tensor out = Tensor::empty(t.dtype, shape);
    std::span<std::byte> bytes = out.mutable_bytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
        uint8_t v = 0;
        const char* at = digits.data() + 2 * i;
        auto [end, failed] = std::from_chars(at, at + 2, v, 16);
        if (failed != std::errc() || end != at + 2) {
            c_.error("'", std::string_view(at, 2), "' is not a byte in hexadecimal");
        }
        bytes[i] = std::byte{v};
    }
    return out;
}

Tensor Parser::elided(const Type& t, const Shape& shape) {
    c_.expect('<');
    std::string_view hash = c_.word();
    c_.expect('>');
    if (!options_.tensor) {
        c_.error("the contents of ", t, " <", hash,
                 "> are not in the text: print the graph in full");
    }
    Tensor out = options_.tensor(t, hash);
    if (!out.defined() || out.dtype() != t.dtype || out.shape() != shape) {
        c_.error("constant <", hash, "> was not found as ", t);
    }
    return out;
}

GraphRef Parser::body(int depth) {
    Cursor before = c_;
    if (c_.word() == "none") {
        return nullptr;
    }
    c_ = before;
    return std::make_shared<const Graph>(graph(depth + 1));
}

std::shared_ptr<const void> Parser::attrs(const OpDef& def, char end, int depth) {
    std::shared_ptr<void> out = def.make();
    FieldList known(def, out.get());
    std::vector<bool> seen(known.fields.size(), false);
    while (end == '\0' ? !c_.done() : c_.peek() != end) {
        std::string name(c_.word());
        size_t i = known.find(name);
        if (i == SIZE_MAX) {
            c_.error("'", def.name, "' has no attribute '", name, "', expected one of ",
                     known.names());
        }
        if (seen[i]) {
            c_.error("attribute '", name, "' is given twice");
        }
        seen[i] = true;
        c_.expect('=');
        std::visit([&](auto* v) { read(v, depth); }, known.fields[i].second);
        c_.take(',');
    }
    return out;
}

std::string Parser::value_key(std::string* name) {
    c_.expect('%');
    if (c_.peek() == '"') {
        *name = c_.string();
        return "\"" + *name;
    }
    std::string w(c_.word());
    if (w.empty()) {
        c_.error("expected a value, such as %x or %1");
    }
    bool number = w[0] >= '0' && w[0] <= '9';
    if (number && w.find_first_not_of("0123456789") != std::string::npos) {
        c_.error("'", w, "' is not a value: quote names that begin with a digit");
    }
    *name = number ? "" : w;
    return number ? w : "\"" + w;
}

Value Parser::use(const Scope& scope) {
    std::string name;
    Cursor before = c_;
    std::string key = value_key(&name);
    auto at = scope.find(key);
    if (at == scope.end()) {
        c_ = before;
        c_.error("%", name.empty() ? key : name, " is not defined here");
    }
    return at->second;
}

void Parser::define(Graph& g, Scope& scope, const std::string& key, const std::string& name,
                    Value v) {
    if (!scope.emplace(key, v).second) {
        c_.error("%", name.empty() ? key : name, " is defined twice");
    }
    if (!name.empty()) {
        g.set_value_name(v, name);
    }
}

HostRef Parser::host(const Type& t) {
    auto out = std::make_shared<HostValue>();
    auto shape = ingot::as_const(t.dims);
    if (!shape || shape->size() > 1 || is_float(t.dtype)) {
        c_.error("contents can be known of integer tensors of rank 0 or 1, not of ", t);
    }
    out->shape = *shape;
    c_.list([&] {
        Cursor before = c_;
        if (c_.word() == "_" && (c_.peek() == ',' || c_.peek() == ']')) {
            out->elements.emplace_back();
            return;
        }
        c_ = before;
        out->elements.emplace_back(HostElement{dim(), 1});
    });
    if (static_cast<int64_t>(out->elements.size()) != count_of(*shape)) {
        c_.error("got contents of ", out->elements.size(), " elements for ", t);
    }
    return out;
}

void Parser::input(Graph& g, Scope& scope) {
    std::string name;
    std::string key = value_key(&name);
    c_.expect(':');
    Type t = type();
    Value v = g.add_input(name, t);
    define(g, scope, key, name, v);
    if (c_.take('=')) {
        g.set_host(v, host(t));
    }
}

std::shared_ptr<const void> Parser::node_attrs(const OpDef& def, int depth) {
    if (!c_.take('{')) {
        return def.make();
    }
    std::shared_ptr<const void> a = attrs(def, '}', depth);
    c_.expect('}');
    return a;
}

void Parser::check_type(const Type& got, const Type& want, size_t position) const {
    c_.located(position, [&] {
        require(got == want, ErrorCode::InvalidArgument, "the type is ", want, ", not ", got);
    });
}

void Parser::node(Graph& g, Scope& scope, int depth) {
    std::vector<std::pair<std::string, std::string>> results;
    if (c_.peek() == '%') {
        do {
            std::string name;
            std::string key = value_key(&name);
            results.emplace_back(key, name);
        } while (c_.take(','));
        c_.expect('=');
    }
    c_.space();
    size_t start = c_.position();
    std::string op(c_.word());
    const OpDef* def = options_.find_op == nullptr ? nullptr : options_.find_op(op);
    if (def == nullptr) {
        c_.error("unknown op '", op, "'");
    }
    Values in;
    c_.expect('(');
    while (c_.peek() == '%') {
        in.push_back(use(scope));
        if (!c_.take(',')) {
            break;
        }
    }
    c_.expect(')');
    std::shared_ptr<const void> a = node_attrs(*def, depth);
    std::vector<std::pair<Type, size_t>> types;
    if (c_.take(':')) {
        do {
            c_.space();
            size_t at = c_.position();
            types.emplace_back(type(), at);
        } while (c_.take(','));
    }
    g.set_origin(c_.peek() == '"' ? c_.string() : "");
    Values out = c_.located(start, [&] { return g.add(*def, a, in); });
    if (out.size() != results.size() || (!types.empty() && types.size() != out.size())) {
        c_.error("'", op, "' has ", out.size(), " results, got ", results.size(), " names and ",
                 types.size(), " types");
    }
    for (size_t i = 0; i < out.size(); ++i) {
        define(g, scope, results[i].first, results[i].second, out[i]);
        if (!types.empty()) {
            check_type(types[i].first, g.type(out[i]), types[i].second);
        }
    }
}

void Parser::results(Graph& g, const Scope& scope) {
    while (c_.peek() == '%') {
        Value v = use(scope);
        Cursor before = c_;
        std::string name;
        if (c_.word() == "as") {
            name = c_.name();
        } else {
            c_ = before;
        }
        g.add_output(name, v);
        if (!c_.take(',')) {
            break;
        }
    }
}

Graph Parser::graph(int depth) {
    if (depth > max_depth) {
        c_.error("graphs are nested deeper than ", max_depth);
    }
    if (c_.word() != "graph") {
        c_.error("expected 'graph'");
    }
    std::string name = c_.name();
    Graph g = family_ == nullptr ? Graph(name) : family_->sibling(name);
    const Graph* outer = family_;
    family_ = &g;
    Scope scope;
    c_.expect('(');
    while (c_.peek() == '%') {
        input(g, scope);
        if (!c_.take(',')) {
            break;
        }
    }
    c_.expect(')');
    c_.expect('{');
    for (;;) {
        Cursor before = c_;
        if (c_.word() == "return") {
            break;
        }
        c_ = before;
        node(g, scope, depth);
    }
    results(g, scope);
    c_.expect('}');
    family_ = outer;
    return g;
}

} // namespace

Graph parse_graph(std::string_view text, const ParseOptions& options) {
    Cursor c(text);
    Graph g = Parser(c, options, nullptr).graph(0);
    if (!c.done()) {
        c.error("expected the end of the text, got ", c.shown());
    }
    g.reserve_symbols();
    return g;
}

std::shared_ptr<const void> parse_attrs(const OpDef& def, std::string_view text,
                                        const ParseOptions& options) {
    Cursor c(text);
    return Parser(c, options, nullptr).attrs(def, '\0', 0);
}

} // namespace ingot
