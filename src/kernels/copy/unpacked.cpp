// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy/unpacked.h"

#include "base/error.h"
#include "kernels/pointwise/map_job.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// Empty minima and maxima give the largest or smallest value of the packed type; the wide type has
/// others, which are clamped. Sums and products wrap.
bool clamps(const Node& n, DType t) {
    const std::string* fn = n.is(reduce_def) ? &n.as<Reduce>().fn
                            : n.is(scan_def) ? &n.as<Scan>().fn
                                             : nullptr;
    return fn != nullptr && is_integer(t) && (*fn == "min" || *fn == "max");
}

Emitted emit_clamped(const Operand& from, const Operand& to) {
    bool negative = is_signed(to.dtype);
    Expr e;
    int low = e.constant_i64(from.dtype, negative ? -8 : 0);
    int high = e.constant_i64(from.dtype, negative ? 7 : 15);
    int inside = e.op(ExprOp::Max, e.op(ExprOp::Min, e.in(0, from.dtype), high), low);
    e.cast(inside, to.dtype);
    return emit_map({e, std::span(&from, 1), to, "narrow"});
}

std::shared_ptr<const void> wide_attributes(const Node& n) {
    if (!n.is(dot_def)) {
        return n.attrs;
    }
    auto a = std::make_shared<Dot>(n.as<Dot>());
    a->dtype = unpacked_dtype(a->dtype);
    return a;
}

/// The node, rebuilt over wide types.
class Unpacked {
public:
    explicit Unpacked(const Problem& p) : outer_(p), graph_(p.group.graph.sibling("unpacked")) {
        require(p.group.nodes.size() == 1, ErrorCode::Internal, "packed elements in a group");
        const Node& n = p.group.first();
        for (Value v : p.group.inputs) {
            Type t = p.group.graph.type(v);
            t.dtype = unpacked_dtype(t.dtype);
            inner_inputs_.push_back(graph_.add_input("", t));
        }
        Values in;
        for (Value v : n.inputs) {
            in.push_back(inner_inputs_[static_cast<size_t>(p.group.input_index(v))]);
        }
        Values all = graph_.add(*n.def, wide_attributes(n), in);
        for (Value v : p.group.outputs) {
            auto at = std::find(n.outputs.begin(), n.outputs.end(), v) - n.outputs.begin();
            inner_outputs_.push_back(all[static_cast<size_t>(at)]);
        }
        group_ =
            std::make_unique<Group>(Group{graph_, graph_.nodes(), inner_inputs_, inner_outputs_});
        place(0);
    }

    std::vector<Tactic> tactics(TacticsOf f) const { return f(problem()); }

    Emitted emit(EmitOf f, const Tactic& t) {
        // The kernel's own scratch memory comes first: its size is known once the kernel has
        // emitted.
        place(f(problem(), t).scratch);
        Emitted main = f(problem(), t);
        Emitted out;
        auto append = [&out](Emitted e) {
            std::move(e.launches.begin(), e.launches.end(), std::back_inserter(out.launches));
        };
        for (size_t i = 0; i < in_.size(); ++i) {
            if (is_packed(outer_.in[i].dtype)) {
                append(emit_cast(outer_.in[i], in_[i]));
            }
        }
        append(std::move(main));
        for (size_t i = 0; i < out_.size(); ++i) {
            DType narrow = outer_.out[i].dtype;
            if (is_packed(narrow)) {
                append(clamps(outer_.group.first(), narrow) ? emit_clamped(out_[i], outer_.out[i])
                                                            : emit_cast(out_[i], outer_.out[i]));
            }
        }
        out.scratch = end_;
        return out;
    }

private:
    Problem problem() const {
        return {*group_,    outer_.symbols, in_,         out_,
                constants_, outer_.arch,    outer_.tf32, outer_.batch_invariant};
    }

    /// Wide operands from byte `begin` of scratch memory on.
    void place(int64_t begin) {
        end_ = (begin + 255) / 256 * 256;
        in_.assign(outer_.in.begin(), outer_.in.end());
        out_.assign(outer_.out.begin(), outer_.out.end());
        constants_.assign(outer_.constants.begin(), outer_.constants.end());
        for (std::vector<Operand>* list : {&in_, &out_}) {
            for (Operand& o : *list) {
                if (!is_packed(o.dtype)) {
                    continue;
                }
                DType wide = unpacked_dtype(o.dtype);
                Operand there{wide, in_scratch, plan::dense(o.view.shape)};
                there.view.offset = end_ / (bit_width(wide) / 8);
                end_ += (byte_size(wide, o.view.count()) + 255) / 256 * 256;
                o = std::move(there);
            }
        }
        for (size_t i = 0; i < in_.size(); ++i) {
            constants_[i] = in_[i].buffer == in_scratch ? nullptr : constants_[i];
        }
    }

    const Problem& outer_;
    Graph graph_;
    Values inner_inputs_;
    Values inner_outputs_;
    std::unique_ptr<Group> group_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
    std::vector<const std::byte*> constants_;
    int64_t end_ = 0;
};

} // namespace

DType unpacked_dtype(DType t) {
    switch (t) {
    case DType::I4:
        return DType::I8;
    case DType::U4:
        return DType::U8;
    case DType::F4E2M1:
        return DType::F32;
    default:
        return t;
    }
}

bool has_packed(const Problem& p) {
    auto packed = [](const Operand& o) { return is_packed(o.dtype); };
    return std::any_of(p.in.begin(), p.in.end(), packed) ||
           std::any_of(p.out.begin(), p.out.end(), packed);
}

Emitted emit_cast(const Operand& from, const Operand& to) {
    Expr e;
    e.cast(e.in(0, from.dtype), to.dtype);
    return emit_map({e, std::span(&from, 1), to, "convert"});
}

std::vector<Tactic> unpacked_tactics(const Problem& p, TacticsOf tactics) {
    return Unpacked(p).tactics(tactics);
}

Emitted emit_unpacked(const Problem& p, EmitOf emit, const Tactic& t) {
    return Unpacked(p).emit(emit, t);
}

} // namespace ingot::kernels
