// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/specialise.h"

#include "backends/cuda/jit/launch_text.h"
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
