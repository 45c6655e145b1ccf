// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/specialise.h"

#include "base/text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace ingot::cuda {

namespace {

using kernels::Launch;
using kernels::Program;

/// Whether the generated text divides an index by sizes that are arguments.
bool divides(const Program& p) {
    return std::find(p.uses.begin(), p.uses.end(), "strided") != p.uses.end() &&
           (p.body.find("quotient(") != std::string::npos ||
            p.body.find(") / d") != std::string::npos);
}

struct Parameter {
    size_t begin = 0; // in the body
    size_t end = 0;
    std::string type; // "u32", "i32", "u64", "i64", or "" for anything else
    std::string name;
};

Parameter parse(const std::string& body, size_t begin, size_t end, const Program& p) {
    Parameter out;
    out.begin = body.find_first_not_of(" \n", begin);
    out.end = end;
    std::string text = body.substr(out.begin, end - out.begin);
    size_t space = text.rfind(' ');
    if (space == std::string::npos) {
        return out;
    }
    out.type = text.substr(0, space);
    out.name = text.substr(space + 1);
    if (out.type == "I") { // the index type of some kernels
        out.type = p.defines.find("typedef i64 I;") != std::string::npos ? "i64" : "i32";
    }
    if (out.type != "u32" && out.type != "i32" && out.type != "u64" && out.type != "i64") {
        out.type.clear();
    }
    return out;
}

/// The parameters of the kernel, and where its body begins; empty when the text is not understood.
std::vector<Parameter> parameters_of(const Launch& l, size_t& inside) {
    const std::string& body = l.program.body;
    std::string head = str(' ', l.entry, '(');
    size_t at = body.find(head);
    std::vector<Parameter> out;
    if (at == std::string::npos || body.rfind("KERNEL void", at) == std::string::npos) {
        return out;
    }
    size_t begin = at + head.size();
    size_t close = body.find(')', begin);
    inside = body.find('{', begin);
    if (close == std::string::npos || inside == std::string::npos ||
        body.find('(', begin) < close) {
        return out;
    }
    inside++;
    while (begin < close) {
        size_t end = std::min(body.find(',', begin), close);
        out.push_back(parse(body, begin, end, l.program));
        begin = end + 1;
    }
    return out;
}

std::string literal(const std::string& type, const std::byte* bytes) {
    uint64_t v = 0;
    bool wide = type == "u64" || type == "i64";
    std::memcpy(&v, bytes, wide ? 8 : 4);
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
    return str('(', type, ')', static_cast<const char*>(text), wide ? "ull" : "u");
}

} // namespace

std::optional<std::string> specialised_text(const Launch& l) {
    if (!divides(l.program)) {
        return std::nullopt;
    }
    size_t inside = 0;
    std::vector<Parameter> parameters = parameters_of(l, inside);
    if (parameters.empty() || parameters.size() != l.args.offsets().size()) {
        return std::nullopt;
    }
    const std::string& body = l.program.body;
    std::string declare = "\n";
    std::string head;
    size_t done = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& p = parameters[i];
        if (p.type.empty()) {
            continue;
        }
        head += body.substr(done, p.begin - done) + str(p.type, ' ', p.name, "_argument");
        done = p.end;
        declare += str("const ", p.type, ' ', p.name, " = ",
                       literal(p.type, l.args.bytes().data() + l.args.offsets()[i]), ";\n");
    }
    head += body.substr(done, inside - done);
    Program special = l.program;
    special.body = head + declare + body.substr(inside);
    return kernels::full_text(special);
}

} // namespace ingot::cuda
