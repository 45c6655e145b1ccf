// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/joined_launch.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace ingot::kernels {

namespace {

using Kind = KernelParameter::Kind;

constexpr int block_threads = 256;

bool is_wide(const KernelParameter& p) {
    return p.kind == Kind::U64 || p.kind == Kind::I64;
}

/// The type of a parameter of the joined kernel, whose text lacks the part's own types.
std::string_view plain_type(const KernelParameter& p) {
    switch (p.kind) {
    case Kind::U32:
        return "u32";
    case Kind::U64:
        return "u64";
    case Kind::I64:
        return "i64";
    case Kind::Pointer:
        return "void*";
    case Kind::I32:
    case Kind::Other:
        break;
    }
    return "i32";
}

/// The buffer address in a parameter, or null.
const Args::Fixup* fixup_at(const Args& args, uint32_t offset) {
    auto it = std::find_if(args.fixups().begin(), args.fixups().end(),
                           [offset](const Args::Fixup& f) { return f.at == offset; });
    return it == args.fixups().end() ? nullptr : &*it;
}

/// A part's program in a namespace of its own; `start` runs one block, given by number, with
/// addresses and integers as arguments.
std::string part_text(const Launch& l, size_t number) {
    const KernelText& k = *l.program.kernel;
    std::string declare = "DEVICE void start(const u32 block_number";
    std::string pass = "work(block_number";
    for (size_t i = 0; i < k.parameters.size(); ++i) {
        const KernelParameter& p = k.parameters[i];
        append(declare, str(", ", p.kind == Kind::Pointer ? "const " : "", plain_type(p), " a", i));
        append(pass, str(", (", p.type, ")a", i));
    }
    std::string define;
    std::string undefine;
    for (const auto& [name, value] : k.constants) {
        append(define, str("#define ", name, ' ', value, '\n'));
        append(undefine, str("#undef ", name, '\n'));
    }
    return str("namespace part", number, " {\n", l.program.defines, define, l.program.body,
               "DEVICE void work(const u32 block_number, ", parameters_text(k.parameters), ") {\n",
               statements_text(k, "block_number"), "}\n", declare, ") {\n", pass, ");\n}\n",
               undefine, "}\n");
}

/// Declares a part's parameters in the kernel. Returns how they are passed on.
std::string declare_parameters(KernelText& kernel, const Launch& l, size_t part) {
    std::string pass;
    const std::vector<KernelParameter>& parameters = l.program.kernel->parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
        const KernelParameter& p = parameters[i];
        std::string name = str("p", part, "_", i);
        append(pass, str(", ", name));
        kernel.parameters.push_back({p.kind, std::string(plain_type(p)), name});
    }
    return pass;
}

void add_arguments(Args& out, const Launch& l) {
    const std::vector<KernelParameter>& parameters = l.program.kernel->parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
        const KernelParameter& p = parameters[i];
        uint32_t offset = l.args.offsets()[i];
        const std::byte* bytes = l.args.bytes().data() + offset;
        if (p.kind == Kind::Pointer) {
            const Args::Fixup* f = fixup_at(l.args, offset);
            Operand o{DType::U8, f == nullptr ? -1 : f->buffer, {}};
            o.view.offset = f == nullptr ? 0 : f->offset;
            if (f != nullptr && f->what == Args::Patch::Scratch) {
                out.scratch(f->offset);
            } else {
                f == nullptr ? out.null() : out.pointer(o);
            }
        } else if (is_wide(p)) {
            int64_t v = 0;
            std::memcpy(&v, bytes, sizeof v);
            out.i64(v);
        } else {
            int32_t v = 0;
            std::memcpy(&v, bytes, sizeof v);
            out.i32(v);
        }
    }
}

} // namespace

bool can_join(const Launch& l, bool same_scratch) {
    if (!l.program.kernel || !l.program.family.empty() || l.grid[1] != 1 || l.grid[2] != 1 ||
        l.grid[0] < 1 || l.block != block_threads || l.shared != 0 || l.cluster != 1 ||
        !l.args.maps().empty()) {
        return false;
    }
    const std::vector<KernelParameter>& parameters = l.program.kernel->parameters;
    CHECK(parameters.size() == l.args.offsets().size(), l.entry, " declares ", parameters.size(),
          " parameters and has ", l.args.offsets().size(), " arguments");
    for (size_t i = 0; i < parameters.size(); ++i) {
        const Args::Fixup* f = fixup_at(l.args, l.args.offsets()[i]);
        bool known = parameters[i].kind == Kind::Pointer
                         ? f == nullptr || f->what == Args::Patch::Buffer ||
                               (same_scratch && f->what == Args::Patch::Scratch)
                         : parameters[i].kind != Kind::Other;
        if (!known) {
            return false;
        }
    }
    return true;
}

int64_t most_joined_blocks(const Arch& arch) {
    constexpr int64_t blocks_per_sm = 8;
    return blocks_per_sm * arch.sms;
}

Launch joined_arguments(std::span<const Launch* const> parts) {
    Launch out;
    out.entry = "joined";
    out.grid = {0, 1, 1};
    for (const Launch* l : parts) {
        add_arguments(out.args, *l);
        out.grid[0] += l->grid[0];
    }
    int64_t end = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        end += parts[i]->grid[0];
        out.args.i32(end);
    }
    return out;
}

Launch joined(std::span<const Launch* const> parts) {
    Launch out = joined_arguments(parts);
    KernelText& kernel = out.program.kernel.emplace();
    kernel.name = out.entry;
    std::string choose;
    std::vector<std::string> texts;
    for (size_t i = 0; i < parts.size(); ++i) {
        const Launch& l = *parts[i];
        for (std::string_view file : l.program.uses) {
            if (std::count(out.program.uses.begin(), out.program.uses.end(), file) == 0) {
                out.program.uses.push_back(file);
            }
        }
        texts.push_back(generated_text(l.program));
        auto first = std::find(texts.begin(), texts.end(), texts.back());
        auto number = static_cast<size_t>(first - texts.begin());
        if (number == i) {
            append(out.program.body, part_text(l, i));
        }
        std::string pass = declare_parameters(kernel, l, i);
        bool last = i + 1 == parts.size();
        std::string block = i == 0 ? str(block_number) : str(block_number, " - end", i - 1);
        append(choose, str(last ? "" : str("if (", block_number, " < end", i, ") "), "part", number,
                           "::start(", block, pass, ");\n", last ? "" : "else "));
    }
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
        kernel.parameters.push_back({Kind::U32, "u32", str("end", i)});
    }
    kernel.statements = std::move(choose);
    return out;
}

} // namespace ingot::kernels
