// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/joined_launch.h"

#include "backends/cuda/jit/launch_text.h"
#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

using kernels::Args;
using kernels::Launch;
using kernels::Operand;

namespace {

constexpr std::string_view block_index = "blockIdx.x";
constexpr std::string_view block_size = "__launch_bounds__(256)";

std::string parameter_text(const Launch& l, const Parameter& p) {
    return l.program.body.substr(p.begin, p.end - p.begin);
}

bool is_pointer(const Launch& l, const Parameter& p) {
    return parameter_text(l, p).find('*') != std::string::npos;
}

bool is_wide(const Parameter& p) {
    return p.type == "u64" || p.type == "i64";
}

/// The type of a parameter without its name.
std::string type_text(const Launch& l, const Parameter& p) {
    std::string text = parameter_text(l, p);
    return text.substr(0, text.rfind(' '));
}

/// The buffer address that a parameter is, or null.
const Args::Fixup* fixup_at(const Args& args, uint32_t offset) {
    auto it = std::find_if(args.fixups().begin(), args.fixups().end(),
                           [offset](const Args::Fixup& f) { return f.at == offset; });
    return it == args.fixups().end() ? nullptr : &*it;
}

/// Every blockIdx is a blockIdx.x behind `from`.
bool knows_its_block(const std::string& body, size_t from) {
    for (size_t at = body.find("blockIdx"); at != std::string::npos;
         at = body.find("blockIdx", at + 1)) {
        if (at < from || body.compare(at, block_index.size(), block_index) != 0) {
            return false;
        }
    }
    return body.find("gridDim") == std::string::npos;
}

/// "#undef"s for what the text defines.
std::string undefine(const std::string& text) {
    std::string out;
    constexpr std::string_view define = "#define ";
    for (size_t at = text.find(define); at != std::string::npos; at = text.find(define, at + 1)) {
        size_t begin = at + define.size();
        append(out,
               str("#undef ", text.substr(begin, text.find_first_of(" (\n", begin) - begin), '\n'));
    }
    return out;
}

/// A part's program in a namespace of its own; `start` does the work of a block, given by number,
/// and takes the arguments as addresses and integers.
std::string part_text(const Launch& l, size_t number) {
    size_t inside = 0;
    std::vector<Parameter> parameters = parameters_of(l, inside);
    const std::string& body = l.program.body;
    size_t head = body.rfind("KERNEL void", inside);
    size_t open = body.rfind('(', parameters[0].begin);
    std::string declare = "DEVICE void start(const u32 block_number";
    std::string pass = "work(block_number";
    for (size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& p = parameters[i];
        bool pointer = is_pointer(l, p);
        append(declare, str(", ", pointer ? "const void*" : p.type, " a", i));
        append(pass, str(", (", type_text(l, p), ")a", i));
    }
    std::string work = body.substr(open + 1);
    for (size_t at = work.find(block_index); at != std::string::npos; at = work.find(block_index)) {
        work.replace(at, block_index.size(), "block_number");
    }
    return str("namespace part", number, " {\n", l.program.defines, body.substr(0, head),
               "DEVICE void work(const u32 block_number, ", work, declare, ") {\n", pass, ");\n}\n",
               undefine(l.program.defines), undefine(body), "}\n");
}

/// Adds the parameters of a part to those of the kernel, and passes them on.
void add_parameters(Launch& out, const Launch& l, size_t part, std::string& declare,
                    std::string& pass) {
    size_t inside = 0;
    std::vector<Parameter> parameters = parameters_of(l, inside);
    for (size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& p = parameters[i];
        uint32_t offset = l.args.offsets()[i];
        std::string name = str("p", part, "_", i);
        append(pass, str(", ", name));
        append(declare,
               str(declare.empty() ? "" : ", ", is_pointer(l, p) ? "void*" : p.type, " ", name));
        const std::byte* bytes = l.args.bytes().data() + offset;
        if (is_pointer(l, p)) {
            const Args::Fixup* f = fixup_at(l.args, offset);
            Operand o{DType::U8, f == nullptr ? -1 : f->buffer, {}};
            o.view.offset = f == nullptr ? 0 : f->offset;
            f == nullptr ? out.args.null() : out.args.pointer(o);
        } else if (is_wide(p)) {
            int64_t v = 0;
            std::memcpy(&v, bytes, sizeof v);
            out.args.i64(v);
        } else {
            int32_t v = 0;
            std::memcpy(&v, bytes, sizeof v);
            out.args.i32(v);
        }
    }
}

} // namespace

bool can_join(const Launch& l) {
    if (!l.program.family.empty() || l.grid[1] != 1 || l.grid[2] != 1 || l.grid[0] < 1 ||
        l.block != 256 || l.shared != 0 || l.cluster != 1 || !l.args.maps().empty()) {
        return false;
    }
    size_t inside = 0;
    std::vector<Parameter> parameters = parameters_of(l, inside);
    bool known = !parameters.empty() && parameters.size() == l.args.offsets().size() &&
                 l.program.body.find(block_size) != std::string::npos &&
                 knows_its_block(l.program.body, inside);
    for (size_t i = 0; known && i < parameters.size(); ++i) {
        const Args::Fixup* f = fixup_at(l.args, l.args.offsets()[i]);
        known = is_pointer(l, parameters[i]) ? f == nullptr || f->what == Args::Patch::Buffer
                                             : !parameters[i].type.empty() && f == nullptr;
    }
    return known;
}

int64_t most_joined_blocks(const kernels::Arch& arch) {
    constexpr int64_t blocks_per_sm = 8;
    return blocks_per_sm * arch.sms;
}

Launch joined(std::span<const Launch* const> parts) {
    Launch out;
    out.entry = "joined";
    out.grid = {0, 1, 1};
    std::string declare;
    std::string ends;
    std::string choose;
    for (size_t i = 0; i < parts.size(); ++i) {
        const Launch& l = *parts[i];
        for (std::string_view file : l.program.uses) {
            if (std::count(out.program.uses.begin(), out.program.uses.end(), file) == 0) {
                out.program.uses.push_back(file);
            }
        }
        auto same = [&](const Launch* o) {
            return o->program.defines == l.program.defines && o->program.body == l.program.body;
        };
        auto first = std::find_if(parts.begin(), parts.end(), same);
        auto number = static_cast<size_t>(first - parts.begin());
        if (number == i) {
            append(out.program.body, part_text(l, i));
        }
        std::string pass;
        add_parameters(out, l, i, declare, pass);
        bool last = i + 1 == parts.size();
        std::string block = i == 0 ? "blockIdx.x" : str("blockIdx.x - end", i - 1);
        append(choose, str(last ? "" : str("if (blockIdx.x < end", i, ") "), "part", number,
                           "::start(", block, pass, ");\n", last ? "" : "else "));
        out.grid[0] += l.grid[0];
        append(ends, last ? std::string() : str(", u32 end", i));
    }
    int64_t end = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        end += parts[i]->grid[0];
        out.args.i32(end);
    }
    append(out.program.body,
           str("KERNEL void ", block_size, " joined(", declare, ends, ") {\n", choose, "}\n"));
    return out;
}

} // namespace ingot::cuda
