// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/launch_text.h"

#include "base/text.h"

#include <algorithm>

namespace ingot::cuda {

using kernels::Launch;
using kernels::Program;

namespace {

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

} // namespace

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

} // namespace ingot::cuda
