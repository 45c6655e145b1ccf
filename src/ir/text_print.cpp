// SPDX-License-Identifier: Apache-2.0
// Printing of the text form.
#include "base/hash.h"
#include "base/hex.h"
#include "ir/text.h"
#include "ir/text_cursor.h"

#include <set>

namespace ingot {

namespace {

std::string word(std::string_view name) {
    bool plain = !name.empty() && (name[0] < '0' || name[0] > '9');
    for (char c : name) {
        plain = plain && text::is_word_char(c);
    }
    return plain ? std::string(name) : quote(name);
}

std::string hex(std::span<const std::byte> bytes) {
    return str("x\"", to_hex(bytes), '"');
}

// "[1,2]", or "" where numbers would not give the same bits back.
std::string numbers(const Tensor& t) {
    Tensor again = Tensor::zeros(t.dtype(), t.shape());
    std::string out = "[";
    for (int64_t i = 0; i < t.count(); ++i) {
        append(out, i == 0 ? "" : ",");
        if (!is_float(t.dtype())) {
            append(out, t.get_i64(i));
            again.set_i64(i, t.get_i64(i));
            continue;
        }
        double v = t.get_f64(i);
        append(out, t.dtype() == DType::F64 ? str(v) : str(static_cast<float>(v)));
        again.set_f64(i, v);
    }
    return again == t ? out + "]" : "";
}

std::string tensor(const Tensor& t, const PrintOptions& o) {
    if (!t.defined()) {
        return "none";
    }
    std::string values = t.count() <= o.max_elements ? numbers(t) : "";
    if (values.empty()) {
        values = o.full || t.count() <= o.max_elements ? hex(t.bytes())
                                                       : str("<", xxh3_128(t.bytes()), ">");
    }
    return str(t.type(), " ", values);
}

void print_graph(std::string& out, const Graph& g, const PrintOptions& o, size_t indent);

// Prints every field as name and text.
struct AttrPrinter : AttrVisitor {
    const PrintOptions& options;
    size_t indent;
    std::vector<std::pair<std::string, std::string>> fields;

    AttrPrinter(const PrintOptions& o, size_t i) : options(o), indent(i) {}
    void put(std::string_view name, std::string text) {
        fields.emplace_back(std::string(name), std::move(text));
    }
    void field(std::string_view n, bool& v) override { put(n, str(v)); }
    void field(std::string_view n, int64_t& v) override { put(n, str(v)); }
    void field(std::string_view n, double& v) override { put(n, str(v)); }
    void field(std::string_view n, std::string& v) override { put(n, quote(v)); }
    void field(std::string_view n, DType& v) override { put(n, str(v)); }
    void field(std::string_view n, Dim& v) override { put(n, str(v)); }
    void field(std::string_view n, std::vector<int64_t>& v) override { put(n, str(v)); }
    void field(std::string_view n, std::vector<double>& v) override { put(n, str(v)); }
    void field(std::string_view n, std::vector<std::string>& v) override {
        std::vector<std::string> quoted;
        for (const std::string& s : v) {
            quoted.push_back(quote(s));
        }
        put(n, str(quoted));
    }
    void field(std::string_view n, Dims& v) override { put(n, str(v)); }
    void field(std::string_view n, Expr& v) override { put(n, quote(to_text(v))); }
    void field(std::string_view n, Tensor& v) override { put(n, tensor(v, options)); }
    void field(std::string_view n, GraphRef& v) override {
        std::string text = "none";
        if (v != nullptr) {
            text.clear();
            print_graph(text, *v, options, indent + 2);
        }
        put(n, std::move(text));
    }
};

std::string attrs_text(const OpDef& def, const void* attrs, const PrintOptions& o, size_t indent) {
    AttrPrinter now(o, indent);
    visit_attrs(def, attrs, now);
    AttrPrinter defaults(o, indent);
    visit_attrs(def, def.make().get(), defaults);
    std::string out;
    for (size_t i = 0; i < now.fields.size(); ++i) {
        if (now.fields[i].second != defaults.fields[i].second) {
            append(out,
                   str(out.empty() ? "" : ", ", now.fields[i].first, "=", now.fields[i].second));
        }
    }
    return out;
}

std::string host_text(const HostValue& host) {
    std::vector<std::string> parts;
    for (const auto& e : host.elements) {
        parts.push_back(e && e->denominator == 1 ? to_text(e->numerator) : "_");
    }
    return str(parts);
}

struct GraphPrinter {
    const Graph& g;
    const PrintOptions& options;
    std::string& out;
    std::vector<std::string> names;

    void name_value(Value v, size_t number, std::set<std::string>& taken) {
        const std::string& name = g.value_name(v);
        names[v.id] =
            !name.empty() && taken.insert(name).second ? str("%", word(name)) : str("%", number);
    }

    void name_values() {
        names.resize(g.value_count());
        std::set<std::string> taken;
        size_t number = 0;
        for (Value v : g.inputs()) {
            name_value(v, number++, taken);
        }
        for (const Node& n : g.nodes()) {
            for (Value v : n.outputs) {
                name_value(v, number++, taken);
            }
        }
    }

    void inputs() {
        const char* separator = "";
        for (Value v : g.inputs()) {
            append(out, str(separator, names[v.id], ": ", g.type(v)));
            if (g.host(v) != nullptr) {
                append(out, str(" = ", host_text(*g.host(v))));
            }
            separator = ", ";
        }
    }

    void list(std::span<const Value> values) {
        for (size_t i = 0; i < values.size(); ++i) {
            append(out, str(i == 0 ? "" : ", ", names[values[i].id]));
        }
    }

    void node(const Node& n, size_t indent) {
        list(n.outputs);
        append(out, str(n.outputs.empty() ? "" : " = ", n.def->name, "("));
        list(n.inputs);
        std::string attrs = attrs_text(*n.def, n.attrs.get(), options, indent);
        append(out, attrs.empty() ? ")" : str(") {", attrs, "}"));
        for (size_t i = 0; i < n.outputs.size(); ++i) {
            append(out, str(i == 0 ? " : " : ", ", g.type(n.outputs[i])));
        }
        if (options.origins && !n.name.empty()) {
            append(out, str(" ", quote(n.name)));
        }
        out += '\n';
    }

    void results() {
        append(out, "return");
        for (size_t i = 0; i < g.outputs().size(); ++i) {
            append(out, str(i == 0 ? " " : ", ", names[g.outputs()[i].id]));
            if (!g.output_names()[i].empty()) {
                append(out, str(" as ", word(g.output_names()[i])));
            }
        }
        out += '\n';
    }
};

void print_graph(std::string& out, const Graph& g, const PrintOptions& o, size_t indent) {
    GraphPrinter p{g, o, out, {}};
    p.name_values();
    append(out, str("graph ", word(g.name()), "("));
    p.inputs();
    append(out, ") {\n");
    std::string margin(indent + 2, ' ');
    for (const Node& n : g.nodes()) {
        out += margin;
        p.node(n, indent + 2);
    }
    out += margin;
    p.results();
    out.append(indent, ' ');
    out += '}';
}

} // namespace

std::string print(const Graph& g, const PrintOptions& options) {
    std::string out;
    print_graph(out, g, options, 0);
    out += '\n';
    return out;
}

std::string print_attrs(const OpDef& def, const void* attrs, const PrintOptions& options) {
    return attrs_text(def, attrs, options, 0);
}

} // namespace ingot
