// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/post_ops.h"

#include "backends/cpu/epilogue.h"
#include "backends/cpu/numbers.h"
#include "backends/cpu/post_functions.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace ingot::cpu {

using onednn::Function;

namespace {

/// Follows the expression from the main input to the result.
class Chain {
public:
    Chain(const Expr& e, int main, const std::vector<bool>& scales)
        : e_(e), scales_(scales), follows_(e.code.size(), 0) {
        for (size_t i = 0; i < e.code.size(); ++i) {
            const ExprInstr& x = e.code[i];
            if (x.op == ExprOp::In) {
                follows_[i] = x.args[0] == main ? 1 : 0;
                start_ = x.args[0] == main ? static_cast<int>(i) : start_;
                continue;
            }
            for (int a = 0; a < arity(x.op); ++a) {
                follows_[i] |= follows_[at(x.args[static_cast<size_t>(a)])];
            }
        }
        if (start_ >= 0 && e.code[at(start_)].type == DType::I32) {
            start_ = begin_with_sums(start_);
        }
    }

    std::optional<std::vector<PostStep>> steps() const {
        std::vector<PostStep> out = first_;
        int current = start_;
        auto last = static_cast<int>(e_.code.size()) - 1;
        while (current >= 0 && current != last) {
            if (auto before = store(current)) {
                out.insert(out.end(), before->begin(), before->end());
                current = last;
                break;
            }
            int next = -1;
            std::optional<PostStep> s = longest_function(current, next);
            if (!s) {
                s = binary(current, next);
            }
            if (s) {
                out.push_back(*s);
            } else if (!add_bytes(current, next, out)) {
                return std::nullopt;
            }
            current = next;
        }
        if (out.size() > static_cast<size_t>(onednn::most_posts)) {
            return std::nullopt;
        }
        return current < 0 ? std::nullopt : std::optional(out);
    }

private:
    static size_t at(int i) { return static_cast<size_t>(i); }

    /// The only instruction that reads `from`, else -1.
    int only_reader(int from) const {
        int reader = -1;
        for (size_t i = at(from) + 1; i < e_.code.size(); ++i) {
            const ExprInstr& x = e_.code[i];
            for (int a = 0; a < plan::argument_count(x); ++a) {
                if (x.args[at(a)] == from) {
                    if (reader >= 0) {
                        return -1;
                    }
                    reader = static_cast<int>(i);
                }
            }
        }
        return reader;
    }

    /// The f32 that sums of i32 become, perhaps less a number of each column (first_); else -1.
    /// oneDNN converts before it subtracts.
    int begin_with_sums(int sums) {
        int i = only_reader(sums);
        if (i >= 0 && e_.code[at(i)].op == ExprOp::Sub && e_.code[at(i)].args[0] == sums) {
            const ExprInstr& shift = e_.code[at(e_.code[at(i)].args[1])];
            if (shift.op == ExprOp::In) {
                first_.push_back(of_input(Function::Sub, shift.args[0]));
            } else if (shift.op == ExprOp::Const) {
                first_.push_back(step(Function::Linear, 1, -static_cast<double>(shift.imm)));
            } else {
                return -1;
            }
            i = only_reader(i);
        }
        bool casts = i >= 0 && e_.code[at(i)].op == ExprOp::Cast && e_.code[at(i)].to == DType::F32;
        return casts ? i : -1;
    }

    /// If the rest of the expression stores bytes: the steps before.
    std::optional<std::vector<PostStep>> store(int from) const {
        auto last = static_cast<int>(e_.code.size()) - 1;
        Expr rest;
        rest.in(0, DType::F32);
        std::map<int, int> inside;
        if (!is_byte(e_.code.back().type) || !copy(last, from, rest, inside) ||
            !separates(from, last, inside)) {
            return std::nullopt;
        }
        return steps_before_store(rest);
    }

    /// Steps for adding (q - z) * scale, where q are bytes: (x / scale + q - z) * scale.
    bool add_bytes(int from, int& to, std::vector<PostStep>& out) const {
        to = only_reader(from);
        if (to < 0 || e_.code[at(to)].op != ExprOp::Add) {
            return false;
        }
        const ExprInstr& sum = e_.code[at(to)];
        const ExprInstr& product = e_.code[at(sum.args[0] == from ? sum.args[1] : sum.args[0])];
        if (product.op != ExprOp::Mul) {
            return false;
        }
        for (int k : {0, 1}) {
            const ExprInstr& scale = e_.code[at(product.args[at(k)])];
            int bytes = product.args[at(1 - k)];
            int q = input_of(bytes);
            bool divides = scale.op == ExprOp::In && at(scale.args[0]) < scales_.size() &&
                           scales_[at(scale.args[0])];
            if (!divides || q < 0 || !is_byte(e_.code[at(q)].type)) {
                continue;
            }
            Expr widened;
            widened.in(0, e_.code[at(q)].type);
            std::map<int, int> inside;
            auto zero = copy(bytes, q, widened, inside) && widened.type() == DType::F32
                            ? zero_point(widened, e_.code[at(q)].type)
                            : std::nullopt;
            if (zero) {
                out.push_back(of_input(Function::Div, scale.args[0]));
                out.push_back(of_input(Function::Add, e_.code[at(q)].args[0]));
                if (*zero != 0) {
                    out.push_back(step(Function::Linear, 1, -*zero));
                }
                out.push_back(of_input(Function::Mul, scale.args[0]));
                return true;
            }
        }
        return false;
    }

    /// The input at the end of a chain of first operands, else -1.
    int input_of(int i) const {
        while (e_.code[at(i)].op != ExprOp::In) {
            if (e_.code[at(i)].op == ExprOp::Const) {
                return -1;
            }
            i = e_.code[at(i)].args[0];
        }
        return i;
    }

    static PostStep of_input(Function f, int input) {
        PostStep s = step(f);
        s.input = input;
        return s;
    }

    /// Whether all dependents of `from` reach later instructions only through `to`.
    bool separates(int from, int to, const std::map<int, int>& inside) const {
        for (size_t i = at(from) + 1; i < e_.code.size(); ++i) {
            if (inside.count(static_cast<int>(i)) != 0 || follows_[i] == 0) {
                continue;
            }
            const ExprInstr& x = e_.code[i];
            for (int a = 0; a < arity(x.op); ++a) {
                int arg = x.args[at(a)];
                if (arg != to && (arg == from || (arg > from && inside.count(arg) != 0 &&
                                                  follows_[at(arg)] != 0))) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Copies instruction i and its operands, with `from` as the only input. False when it needs
    /// another input.
    bool copy(int i, int from, Expr& out, std::map<int, int>& done) const {
        if (i == from || done.count(i) != 0) {
            return true;
        }
        ExprInstr x = e_.code[at(i)];
        if (x.op == ExprOp::In || (follows_[at(i)] != 0 && i < from) || x.type == DType::F64) {
            return false;
        }
        for (int a = 0; a < (x.op == ExprOp::Const ? 0 : arity(x.op)); ++a) {
            if (!copy(x.args[at(a)], from, out, done)) {
                return false;
            }
        }
        for (int a = 0; a < (x.op == ExprOp::Const ? 0 : arity(x.op)); ++a) {
            int arg = x.args[at(a)];
            x.args[at(a)] = arg == from ? 0 : done.at(arg);
        }
        out.code.push_back(x);
        done[i] = static_cast<int>(out.code.size()) - 1;
        return true;
    }

    std::optional<PostStep> longest_function(int from, int& to) const {
        for (to = static_cast<int>(e_.code.size()) - 1; to > from; --to) {
            if (follows_[at(to)] == 0 || e_.code[at(to)].type != DType::F32) {
                continue;
            }
            Expr function;
            function.in(0, DType::F32);
            std::map<int, int> inside;
            if (!copy(to, from, function, inside) || !separates(from, to, inside)) {
                continue;
            }
            if (std::optional<PostStep> s = recognise(function)) {
                return s;
            }
        }
        return std::nullopt;
    }

    /// The only instruction that reads `from`, when its other operand is an input of the map.
    std::optional<PostStep> binary(int from, int& to) const {
        to = only_reader(from);
        if (to < 0 || arity(e_.code[at(to)].op) != 2) {
            return std::nullopt;
        }
        const ExprInstr& x = e_.code[at(to)];
        bool first = x.args[0] == from;
        const ExprInstr& other = e_.code[at(first ? x.args[1] : x.args[0])];
        std::optional<Function> f = function_of(x.op, first);
        if (!f || other.op != ExprOp::In || other.type != DType::F32) {
            return std::nullopt;
        }
        return of_input(*f, other.args[0]);
    }

    static std::optional<Function> function_of(ExprOp op, bool first) {
        switch (op) {
        case ExprOp::Add:
            return Function::Add;
        case ExprOp::Mul:
            return Function::Mul;
        case ExprOp::Min:
            return Function::Min;
        case ExprOp::Max:
            return Function::Max;
        case ExprOp::Sub:
            return first ? std::optional(Function::Sub) : std::nullopt;
        case ExprOp::Div:
            return first ? std::optional(Function::Div) : std::nullopt;
        default:
            return std::nullopt;
        }
    }

    const Expr& e_;
    const std::vector<bool>& scales_;
    std::vector<char> follows_; // depends on the main input
    int start_ = -1;
    std::vector<PostStep> first_; // of sums of i32
};

/// Whether only sums and limits read an instruction. A constant factor would become a linear
/// function, whose rounding is another than that of a division.
bool is_added(const Expr& e, int instruction) {
    return std::all_of(e.code.begin(), e.code.end(), [instruction](const ExprInstr& x) {
        bool adds = x.op == ExprOp::Add || x.op == ExprOp::Sub || x.op == ExprOp::Max ||
                    x.op == ExprOp::Min;
        auto end = x.args.begin() + plan::argument_count(x);
        return adds || std::find(x.args.begin(), end, instruction) == end;
    });
}

/// A group's map with its zero points, which are single constant elements, written into it.
Expr with_numbers(const Expr& e, const Node& map, const StepArgs& args) {
    Expr out = e;
    for (size_t i = 0; i < out.code.size(); ++i) {
        ExprInstr& x = out.code[i];
        bool wanted = x.op == ExprOp::In && x.type != DType::F64 &&
                      (!is_float(x.type) || is_added(e, static_cast<int>(i)));
        int input =
            wanted ? args.group.input_index(map.inputs[static_cast<size_t>(x.args[0])]) : -1;
        const plan::StoredConstant* c =
            input < 0 ? nullptr : args.constants[static_cast<size_t>(input)];
        if (c != nullptr && c->source().count() == 1) {
            Expr number;
            add_number(number, c->source());
            x = number.code.back();
        }
    }
    return out;
}

/// Whether an operand is one known number by which can be divided.
bool divides(const StepArgs& args, int input) {
    const plan::StoredConstant* c =
        input < 0 ? nullptr : args.constants[static_cast<size_t>(input)];
    if (c == nullptr || c->source().count() != 1 || c->source().dtype() != DType::F32) {
        return false;
    }
    double x = c->source().get_f64(0);
    return std::isnormal(x);
}

/// Whether oneDNN reads the operand of a step.
bool is_read(const PostStep& s, DType t) {
    return t == DType::F32 || (s.function == Function::Add && is_byte(t)) ||
           (s.function == Function::Sub && t == DType::I32);
}

} // namespace

std::optional<std::vector<PostStep>> post_steps(const Expr& e, int main,
                                                const std::vector<bool>& scales) {
    return Chain(e, main, scales).steps();
}

std::optional<Posts> posts_of(const StepArgs& args) {
    Posts posts;
    const Node* map = epilogue_of(args.group);
    if (map == nullptr) {
        return posts;
    }
    Value main = args.group.first().outputs[0];
    DType sums = args.group.graph.type(main).dtype;
    int index = -1;
    std::vector<bool> scales;
    for (size_t i = 0; i < map->inputs.size(); ++i) {
        if (map->inputs[i] == main) {
            if (index >= 0 || (sums != DType::F32 && sums != DType::I32)) {
                return std::nullopt;
            }
            index = static_cast<int>(i);
        }
        scales.push_back(divides(args, args.group.input_index(map->inputs[i])));
    }
    std::optional<std::vector<PostStep>> steps =
        post_steps(with_numbers(map->as<Map>().body, *map, args), index, scales);
    if (!steps) {
        return std::nullopt;
    }
    posts.steps = std::move(*steps);
    for (const PostStep& s : posts.steps) {
        Operand o;
        if (s.input >= 0) {
            int input = args.group.input_index(map->inputs[static_cast<size_t>(s.input)]);
            if (input < 0 || !is_read(s, args.in[static_cast<size_t>(input)].dtype)) {
                return std::nullopt;
            }
            o = args.in[static_cast<size_t>(input)];
            o.view = plan::broadcasted(o.view, args.out[0].view.shape);
        }
        posts.operands.push_back(std::move(o));
    }
    return posts;
}

} // namespace ingot::cpu
