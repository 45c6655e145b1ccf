// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/map_text.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"

#include <algorithm>

namespace ingot::kernels {

const Node* epilogue_of(const Group& group) {
    return group.nodes.size() > 1 ? &group.nodes[1] : nullptr;
}

std::optional<std::string> refuse_epilogue(const Group& group) {
    if (group.nodes.size() > 2 || group.outputs.size() != 1) {
        return "more than one node after the main one";
    }
    if (group.nodes.size() == 1) {
        return std::nullopt;
    }
    const Node& map = group.nodes[1];
    Value main = group.nodes[0].outputs[0];
    if (!map.is(map_def) || group.outputs[0] != map.outputs[0]) {
        return "what follows is not a map";
    }
    if (group.graph.type(main).dims != group.graph.type(map.outputs[0]).dims) {
        return str("the map makes ", group.graph.type(map.outputs[0]), " of ",
                   group.graph.type(main));
    }
    if (map.inputs.size() > 12 || map.as<Map>().body.code.size() > 256) {
        return "the map is too large for an epilogue";
    }
    if (is_packed(group.graph.type(map.outputs[0]).dtype)) {
        return "the map stores a packed type";
    }
    for (Value v : map.inputs) {
        if (v != main && is_packed(group.graph.type(v).dtype)) {
            return "the map reads a packed type";
        }
        if (v != main && group.input_index(v) < 0) {
            return "the map reads more than one result of the main node";
        }
    }
    return std::nullopt;
}

std::vector<ExtraAccess> extras(const Problem& p) {
    std::vector<ExtraAccess> out;
    const Node* map = epilogue_of(p.group);
    if (map == nullptr) {
        return out;
    }
    for (size_t k = 0; k < map->inputs.size(); ++k) {
        if (map->inputs[k] != p.group.nodes[0].outputs[0]) {
            const Operand& o = p.operand(map->inputs[k]);
            View v = broadcasted(o.view, p.out[0].view.shape);
            for (size_t i = 0; i < v.shape.size(); ++i) {
                v.strides[i] = v.shape[i] == 1 ? 0 : v.strides[i];
            }
            out.push_back({static_cast<int>(k), o, v.strides});
        }
    }
    return out;
}

Epilogue::Epilogue(const Problem& p, const std::vector<std::vector<int>>& groups, int vector)
    : empty_(epilogue_of(p.group) == nullptr) {
    for (ExtraAccess& extra : extras(p)) {
        Access a;
        a.extra = std::move(extra);
        for (const std::vector<int>& group : groups) {
            View part;
            for (int axis : group) {
                part.shape.push_back(p.out[0].view.shape[static_cast<size_t>(axis)]);
                part.strides.push_back(a.extra.strides[static_cast<size_t>(axis)]);
            }
            plan::LoopNest nest = merged_loops(std::span(&part, 1), plan::row_major(part.rank()));
            a.walks.push_back({nest.sizes, nest.strides[0]});
        }
        describe(a, static_cast<int>(accesses_.size()), groups.size(), vector);
        accesses_.push_back(std::move(a));
    }
    write(p, groups.size(), vector);
}

// Writes an index as a sum over coordinates; strides and, where a coordinate runs over several
// axes, their sizes become arguments.
void Epilogue::describe(Access& a, int id, size_t coordinates, int vector) const {
    auto argument = [&](int64_t value, bool size) {
        a.names.push_back(str("e", id, "_", a.names.size()));
        a.values.push_back(value);
        a.is_size.push_back(size);
        return a.names.back();
    };
    for (size_t c = 0; c < coordinates; ++c) {
        const Walk& w = a.walks[c];
        bool last = c + 1 == coordinates;
        std::string& into = last ? a.last : a.index;
        std::string rest = str("(u32)c", c);
        for (size_t n = w.sizes.size(); n-- > 0;) {
            bool any_outside =
                std::any_of(w.strides.begin(), w.strides.begin() + static_cast<std::ptrdiff_t>(n),
                            [](int64_t s) { return s != 0; });
            bool divide = n > 0 && (any_outside || w.strides[n] != 0);
            std::string size = divide ? argument(w.sizes[n], true) : "";
            if (w.strides[n] != 0) {
                std::string part = divide ? str("(", rest, " % (u32)", size, ")") : rest;
                bool unit = last && w.sizes.size() == 1 && w.strides[n] == 1;
                append(into, unit ? str(" + (i64)", part)
                                  : str(" + (i64)", part, " * ", argument(w.strides[n], false)));
            }
            if (!any_outside) {
                break;
            }
            rest = str("(", rest, " / (u32)", size, ")");
        }
    }
    const Walk& w = a.walks.back();
    int64_t width = std::max(bit_width(a.extra.operand.dtype) / 8, 1);
    int64_t chunk = std::min<int64_t>(vector, std::max<int64_t>(16 / width, 1));
    bool aligned = a.extra.operand.view.offset % chunk == 0;
    for (size_t c = 0; c + 1 < coordinates; ++c) {
        aligned = aligned && std::all_of(a.walks[c].strides.begin(), a.walks[c].strides.end(),
                                         [&](int64_t s) { return s % chunk == 0; });
    }
    a.kind = a.last.empty()                                        ? Access::Last::Zero
             : aligned && w.sizes.size() == 1 && w.strides[0] == 1 ? Access::Last::Vector
                                                                   : Access::Last::Other;
}

void Epilogue::write(const Problem& p, size_t coordinates, int vector) {
    const Node& main = p.group.nodes[0];
    DType in = p.group.graph.type(main.outputs[0]).dtype;
    DType out = p.group.graph.type(p.group.outputs[0]).dtype;
    std::string params;
    std::string names;
    std::string one;
    std::string before;
    std::string inside;
    for (size_t k = 0; k < accesses_.size(); ++k) {
        const Access& a = accesses_[k];
        std::string_view type = c_type(a.extra.operand.dtype);
        append(params, str(", const ", type, "* e", k));
        append(names, str(", e", k));
        for (size_t n = 0; n < a.names.size(); ++n) {
            append(params, str(a.is_size[n] ? ", i32 " : ", i64 ", a.names[n]));
            append(names, str(", ", a.names[n]));
        }
        append(one, str("const ", compute_c_type(a.extra.operand.dtype), " x", k, " = widen(e", k,
                        "[0", a.index, a.last, "]);\n"));
        if (a.kind == Access::Last::Vector) {
            append(before, str(type, " p", k, "[EPILOGUE_N];\nload_pack<", type, ", EPILOGUE_N>(p",
                               k, ", e", k, " + (0", a.index, a.last, "));\n"));
        } else if (a.kind == Access::Last::Zero) {
            append(before, str("const ", type, " p", k, " = e", k, "[0", a.index, "];\n"));
        } else {
            append(before, str("const i64 p", k, " = 0", a.index, ";\n"));
        }
        append(inside, str("const ", compute_c_type(a.extra.operand.dtype), " x", k, " = widen(",
                           a.kind == Access::Last::Vector ? str("p", k, "[n]")
                           : a.kind == Access::Last::Zero ? str("p", k)
                                                          : str("e", k, "[p", k, a.last, "]"),
                           ");\n"));
    }
    std::string c;
    for (size_t n = 0; n < coordinates; ++n) {
        append(c, str(", i32 c", n));
    }
    ExprText body{"", "x"};
    if (!empty_) {
        std::vector<std::string> inputs(epilogue_of(p.group)->inputs.size(), "x");
        for (size_t k = 0; k < accesses_.size(); ++k) {
            inputs[static_cast<size_t>(accesses_[k].extra.input)] = str("x", k);
        }
        body = expr_text(epilogue_of(p.group)->as<Map>().body, inputs);
    }
    std::string result = str("(EpilogueOut)(", body.result, ")");
    std::string start = str("const i32 s = c", coordinates - 1, ";\n");
    text_ = str(
        "#define EPILOGUE_PARAMS", params, "\n#define EPILOGUE_ARGS", names,
        "\n#define EPILOGUE_N ", vector, "\ntypedef ", compute_c_type(in), " EpilogueIn;\ntypedef ",
        compute_c_type(out), " EpilogueOut;\ntypedef ", c_type(out),
        " EpilogueStored;\nDEVICE EpilogueOut epilogue(EpilogueIn x", c, " EPILOGUE_PARAMS) {\n",
        one, body.statements, "return ", result,
        ";\n}\nDEVICE void epilogue_n(EpilogueOut* y, const EpilogueIn* xs", c,
        " EPILOGUE_PARAMS) {\n", before, start,
        "#pragma unroll\nfor (int n = 0; n < EPILOGUE_N; ++n) {\nconst EpilogueIn x = xs[n];\n"
        "{ const i32 c",
        coordinates - 1, " = s + n;\n", inside, body.statements, "y[n] = ", result, ";\n} }\n}\n");
}

void Epilogue::add(Args& args) const {
    for (const Access& a : accesses_) {
        args.pointer(a.extra.operand);
        for (size_t n = 0; n < a.values.size(); ++n) {
            if (a.is_size[n]) {
                args.i32(a.values[n]);
            } else {
                args.i64(a.values[n]);
            }
        }
    }
}

} // namespace ingot::kernels
