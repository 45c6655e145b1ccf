// SPDX-License-Identifier: Apache-2.0
#include "ir/expr.h"

#include "base/error.h"
#include "ir/expr_math.h"

#include <bit>
#include <charconv>

namespace ingot {

namespace {

struct Row {
    std::string_view text;
    int arity;
    ExprKind kind;
    double identity;
    std::string_view device;
};

constexpr std::array rows = {
    Row{"in", 0, ExprKind::Special, NAN, ""},
    Row{"const", 0, ExprKind::Special, NAN, ""},
    Row{"cast", 1, ExprKind::Special, NAN, ""},
    Row{"select", 3, ExprKind::Special, NAN, ""},
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    Row{#text, arity, ExprKind::kind, identity, device},
#include "ir/expr.def"
#undef INGOT_EXPR
};

const Row& row(ExprOp op) {
    return rows[static_cast<size_t>(op)];
}

template <class T>
T apply_number(ExprOp op, T a, T b) {
    using namespace expr_math;
    switch (op) {
#define INGOT_ARITH(cpp) return static_cast<T>(cpp);
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    case ExprOp::Name:                                                                             \
        if constexpr (ExprKind::kind == ExprKind::Arith ||                                         \
                      (ExprKind::kind == ExprKind::Float && is_fp<T>) ||                           \
                      (ExprKind::kind == ExprKind::Bits && !is_fp<T>)) {                           \
            INGOT_ARITH(cpp)                                                                       \
        }                                                                                          \
        break;
#include "ir/expr.def"
#undef INGOT_EXPR
#undef INGOT_ARITH
    default:
        break;
    }
    (void)a;
    (void)b;
    return T(0);
}

template <class T>
bool apply_test(ExprOp op, T a, T b) {
    using namespace expr_math;
    switch (op) {
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    case ExprOp::Name:                                                                             \
        if constexpr (ExprKind::kind == ExprKind::Compare ||                                       \
                      (ExprKind::kind == ExprKind::Classify && is_fp<T>)) {                        \
            return cpp;                                                                            \
        }                                                                                          \
        break;
#include "ir/expr.def"
#undef INGOT_EXPR
    default:
        break;
    }
    (void)a;
    (void)b;
    return false;
}

Scalar apply(ExprOp op, DType type, Scalar a, Scalar b) {
    bool test = kind(op) == ExprKind::Compare || kind(op) == ExprKind::Classify;
    Scalar r;
    if (type == DType::F32) {
        auto x = static_cast<float>(a.f);
        auto y = static_cast<float>(b.f);
        if (test) {
            r.i = apply_test(op, x, y) ? 1 : 0;
        } else {
            r.f = static_cast<double>(apply_number(op, x, y));
        }
    } else if (type == DType::F64) {
        if (test) {
            r.i = apply_test(op, a.f, b.f) ? 1 : 0;
        } else {
            r.f = apply_number(op, a.f, b.f);
        }
    } else if (type == DType::Bool) {
        bool x = a.i != 0;
        bool y = b.i != 0;
        switch (op) {
        case ExprOp::And:
            r.i = (x && y) ? 1 : 0;
            break;
        case ExprOp::Or:
            r.i = (x || y) ? 1 : 0;
            break;
        case ExprOp::Xor:
            r.i = x != y ? 1 : 0;
            break;
        case ExprOp::Not:
            r.i = x ? 0 : 1;
            break;
        default:
            r.i = test ? (apply_test(op, a.i, b.i) ? 1 : 0)
                       : (apply_number(op, a.i, b.i) != 0 ? 1 : 0);
        }
    } else if (is_signed(type)) {
        r.i = test ? (apply_test(op, a.i, b.i) ? 1 : 0)
                   : wrap_integer(apply_number(op, a.i, b.i), type);
    } else {
        auto x = static_cast<uint64_t>(a.i);
        auto y = static_cast<uint64_t>(b.i);
        r.i = test ? (apply_test(op, x, y) ? 1 : 0)
                   : wrap_integer(static_cast<int64_t>(apply_number(op, x, y)), type);
    }
    return r;
}

// Floats beyond the range of an integer type saturate; NaN gives 0 (ONNX leaves both undefined).
int64_t integer_from(double v, DType to) {
    if (std::isnan(v)) {
        return 0;
    }
    v = std::trunc(v);
    int bits = bit_width(to);
    if (is_signed(to)) {
        double limit = std::ldexp(1.0, bits - 1);
        return v >= limit   ? static_cast<int64_t>((~uint64_t{0}) >> (65 - bits))
               : v < -limit ? -static_cast<int64_t>(uint64_t{1} << (bits - 2)) * 2
                            : static_cast<int64_t>(v);
    }
    double limit = std::ldexp(1.0, bits);
    return v >= limit ? static_cast<int64_t>((~uint64_t{0}) >> (64 - bits))
           : v < 0    ? wrap_integer(v <= -9.3e18 ? 0 : static_cast<int64_t>(v), to)
                      : static_cast<int64_t>(static_cast<uint64_t>(v));
}

double round_to(double v, DType from, DType to, bool saturate) {
    auto f = static_cast<float>(v);
    switch (to) {
    case DType::F64:
        return v;
    case DType::F32:
        return static_cast<double>(f);
    case DType::F16:
        return static_cast<double>(
            f32_from_f16(from == DType::F64 ? f16_from_f64(v) : f16_from_f32(f)));
    case DType::BF16:
        return static_cast<double>(
            f32_from_bf16(from == DType::F64 ? bf16_from_f64(v) : bf16_from_f32(f)));
    case DType::F8E4M3:
        return static_cast<double>(f32_from_f8e4m3(f8e4m3_from_f32(f, saturate)));
    case DType::F8E5M2:
        return static_cast<double>(f32_from_f8e5m2(f8e5m2_from_f32(f, saturate)));
    case DType::F4E2M1:
        return static_cast<double>(f32_from_f4e2m1(f4e2m1_from_f32(f)));
    default:
        return v;
    }
}

} // namespace

std::string_view name(ExprOp op) {
    return row(op).text;
}

int arity(ExprOp op) {
    return row(op).arity;
}

bool is_commutative(ExprOp op) {
    switch (op) {
    case ExprOp::Add:
    case ExprOp::Mul:
    case ExprOp::Min:
    case ExprOp::Max:
    case ExprOp::And:
    case ExprOp::Or:
    case ExprOp::Xor:
    case ExprOp::Eq:
        return true;
    default:
        return false;
    }
}

double right_identity(ExprOp op) {
    return row(op).identity;
}

std::string_view device_text(ExprOp op) {
    return row(op).device;
}

ExprKind kind(ExprOp op) {
    return row(op).kind;
}

DType compute_type(DType stored) {
    if (is_float(stored)) {
        return stored == DType::F64 ? DType::F64 : DType::F32;
    }
    return stored == DType::I4 ? DType::I8 : stored == DType::U4 ? DType::U8 : stored;
}

int64_t wrap_integer(int64_t v, DType t) {
    if (t == DType::Bool) {
        return v != 0 ? 1 : 0;
    }
    int shift = 64 - bit_width(t);
    auto u = static_cast<uint64_t>(v) << shift;
    return is_signed(t) ? static_cast<int64_t>(u) >> shift : static_cast<int64_t>(u >> shift);
}

Scalar cast_scalar(Scalar v, DType from, DType to, bool saturate) {
    Scalar r;
    bool from_float = is_float(from);
    if (is_float(to)) {
        double x = from_float           ? v.f
                   : from == DType::U64 ? static_cast<double>(static_cast<uint64_t>(v.i))
                                        : static_cast<double>(v.i);
        if (!from_float && to == DType::F32) { // one rounding, not two
            x = static_cast<double>(from == DType::U64
                                        ? static_cast<float>(static_cast<uint64_t>(v.i))
                                        : static_cast<float>(v.i));
        }
        r.f = round_to(x, from_float ? from : DType::F64, to, saturate);
    } else if (to == DType::Bool) {
        r.i = from_float ? (v.f != 0 ? 1 : 0) : (v.i != 0 ? 1 : 0);
    } else {
        r.i = from_float ? integer_from(v.f, to) : wrap_integer(v.i, to);
    }
    return r;
}

Scalar eval(const Expr& e, std::span<const Scalar> inputs, std::span<Scalar> work) {
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        auto arg = [&](int k) { return work[static_cast<size_t>(c.args[static_cast<size_t>(k)])]; };
        switch (c.op) {
        case ExprOp::In:
            work[n] = inputs[static_cast<size_t>(c.args[0])];
            break;
        case ExprOp::Const:
            work[n] = is_float(c.type) ? Scalar{std::bit_cast<double>(c.imm), 0} : Scalar{0, c.imm};
            break;
        case ExprOp::Cast:
            work[n] =
                cast_scalar(arg(0), e.code[static_cast<size_t>(c.args[0])].type, c.to, c.imm != 0);
            break;
        case ExprOp::Select:
            work[n] = arg(0).i != 0 ? arg(1) : arg(2);
            break;
        default:
            work[n] = apply(c.op, e.code[static_cast<size_t>(c.args[0])].type, arg(0),
                            arity(c.op) > 1 ? arg(1) : Scalar{});
        }
    }
    return work[e.code.size() - 1];
}

int Expr::push(const ExprInstr& i) {
    for (size_t n = code.size(); n-- > 0;) {
        if (code[n] == i) {
            return static_cast<int>(n);
        }
    }
    code.push_back(i);
    return static_cast<int>(code.size()) - 1;
}

int Expr::in(int index, DType stored) {
    return push({ExprOp::In, compute_type(stored), {index}});
}

int Expr::constant(DType type, double value) {
    type = compute_type(type);
    if (!is_float(type)) {
        return constant_i64(type, static_cast<int64_t>(value));
    }
    double rounded = type == DType::F32 ? static_cast<double>(static_cast<float>(value)) : value;
    return push({ExprOp::Const, type, {}, std::bit_cast<int64_t>(rounded)});
}

int Expr::constant_i64(DType type, int64_t value) {
    type = compute_type(type);
    if (is_float(type)) {
        return constant(type, static_cast<double>(value));
    }
    return push({ExprOp::Const, type, {}, wrap_integer(value, type)});
}

int Expr::cast(int x, DType to, bool saturate) {
    if (code[static_cast<size_t>(x)].type == to) {
        return x;
    }
    return push({ExprOp::Cast, compute_type(to), {x}, saturate ? 1 : 0, to});
}

int Expr::select(int c, int a, int b) {
    return push({ExprOp::Select, code[static_cast<size_t>(a)].type, {c, a, b}});
}

int Expr::op(ExprOp o, int a, int b) {
    DType t = code[static_cast<size_t>(a)].type;
    bool test = kind(o) == ExprKind::Compare || kind(o) == ExprKind::Classify;
    return push({o, test ? DType::Bool : t, {a, b < 0 ? 0 : b}});
}

int Expr::inline_expr(const Expr& other, std::span<const int> inputs) {
    std::vector<int> at(other.code.size());
    for (size_t n = 0; n < other.code.size(); ++n) {
        ExprInstr i = other.code[n];
        if (i.op == ExprOp::In) {
            at[n] = inputs[static_cast<size_t>(i.args[0])];
            continue;
        }
        for (int k = 0; k < arity(i.op); ++k) {
            auto& a = i.args[static_cast<size_t>(k)];
            a = at[static_cast<size_t>(a)];
        }
        at[n] = push(i);
    }
    return at.back();
}

int Expr::input_count() const {
    int n = 0;
    for (const ExprInstr& i : code) {
        n = i.op == ExprOp::In ? std::max(n, i.args[0] + 1) : n;
    }
    return n;
}

std::string to_text(const Expr& e) {
    std::string out;
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        append(out, str(n == 0 ? "" : "; ", n, "=", c.op, "("));
        if (c.op == ExprOp::In) {
            append(out, c.args[0]);
        } else if (c.op == ExprOp::Const) {
            append(out, is_float(c.type) ? str(std::bit_cast<double>(c.imm)) : str(c.imm));
        }
        for (int k = 0; k < arity(c.op); ++k) {
            append(out, str(k == 0 ? "" : ",", c.args[static_cast<size_t>(k)]));
        }
        if (c.op == ExprOp::Cast) {
            append(out, str(",", c.to, c.imm != 0 ? ",sat" : ""));
        }
        append(out, str("):", c.type));
    }
    return out;
}

namespace {

template <class T>
T parse_number(std::string_view text) {
    T v{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    require(error == std::errc() && end == text.data() + text.size(), ErrorCode::InvalidArgument,
            "expression: '", text, "' is not a number");
    return v;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> out;
    for (size_t start = 0; start <= text.size();) {
        size_t end = std::min(text.find(at, start), text.size());
        std::string_view part = text.substr(start, end - start);
        while (!part.empty() && part.front() == ' ') {
            part.remove_prefix(1);
        }
        out.push_back(part);
        start = end + 1;
    }
    return out;
}

ExprInstr parse_instr(std::string_view text, size_t index) {
    size_t eq = text.find('=');
    size_t open = text.find('(');
    size_t close = text.rfind("):");
    bool shaped = eq != std::string_view::npos && open != std::string_view::npos && eq < open &&
                  close != std::string_view::npos && close > open;
    require(shaped && parse_number<size_t>(text.substr(0, eq)) == index, ErrorCode::InvalidArgument,
            "expression: expected '", index, "=op(args):type', got '", text, "'");
    ExprInstr i;
    std::string_view word = text.substr(eq + 1, open - eq - 1);
    size_t op = 0;
    while (op < rows.size() && rows[op].text != word) {
        ++op;
    }
    require(op < rows.size(), ErrorCode::InvalidArgument, "expression: unknown function '", word,
            "'");
    i.op = static_cast<ExprOp>(op);
    auto type = parse_dtype(text.substr(close + 2));
    require(type.has_value(), ErrorCode::InvalidArgument, "expression: unknown type in '", text,
            "'");
    i.type = *type;
    auto args = split(text.substr(open + 1, close - open - 1), ',');
    auto count = static_cast<size_t>(arity(i.op)) + (i.op == ExprOp::Cast ? 1 : 0) +
                 (i.op == ExprOp::In || i.op == ExprOp::Const ? 1 : 0);
    bool saturating = i.op == ExprOp::Cast && args.size() == count + 1 && args.back() == "sat";
    require(args.size() == count + (saturating ? 1 : 0), ErrorCode::InvalidArgument,
            "expression: '", text, "' has ", args.size(), " arguments, expected ", count);
    if (i.op == ExprOp::Const) {
        i.imm = is_float(i.type) ? std::bit_cast<int64_t>(parse_number<double>(args[0]))
                                 : parse_number<int64_t>(args[0]);
        return i;
    }
    size_t operands = i.op == ExprOp::Cast ? 1 : count;
    for (size_t k = 0; k < operands; ++k) {
        i.args[k] = parse_number<int32_t>(args[k]);
    }
    if (i.op == ExprOp::Cast) {
        auto to = parse_dtype(args[1]);
        require(to.has_value(), ErrorCode::InvalidArgument, "expression: unknown type '", args[1],
                "'");
        i.to = *to;
        i.imm = saturating ? 1 : 0;
    }
    return i;
}

} // namespace

Expr parse_expr(std::string_view text) {
    Expr e;
    for (std::string_view part : split(text, ';')) {
        e.code.push_back(parse_instr(part, e.code.size()));
    }
    verify(e, {});
    return e;
}

void verify(const Expr& e, std::span<const DType> inputs) {
    require(!e.code.empty() && e.code.size() <= 4096, ErrorCode::InvalidArgument, "expression has ",
            e.code.size(), " instructions, expected 1 to 4096");
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        auto ensure = [&](bool ok, std::string_view what) {
            require(ok, ErrorCode::InvalidArgument, "expression instruction ", n, " (",
                    static_cast<size_t>(c.op) < rows.size() ? name(c.op) : "?", "): ", what);
        };
        ensure(static_cast<size_t>(c.op) < rows.size(), "unknown function");
        ensure(compute_type(c.type) == c.type, "its type is not a compute type");
        for (int k = 0; k < arity(c.op); ++k) {
            int32_t a = c.args[static_cast<size_t>(k)];
            ensure(a >= 0 && static_cast<size_t>(a) < n,
                   "an operand is not an earlier instruction");
        }
        auto type = [&](int k) {
            return e.code[static_cast<size_t>(c.args[static_cast<size_t>(k)])].type;
        };
        if (c.op == ExprOp::In) {
            ensure(c.args[0] >= 0 && c.args[0] < 4096, "its input index is out of range");
            if (!inputs.empty()) {
                ensure(static_cast<size_t>(c.args[0]) < inputs.size(), "it reads a missing input");
                ensure(compute_type(inputs[static_cast<size_t>(c.args[0])]) == c.type,
                       "the input has another type");
            }
        } else if (c.op == ExprOp::Cast) {
            ensure(compute_type(c.to) == c.type, "its type does not hold the target type");
        } else if (c.op == ExprOp::Select) {
            ensure(type(0) == DType::Bool && type(1) == type(2) && type(1) == c.type,
                   "operands must be bool, T, T");
        } else if (c.op != ExprOp::Const) {
            ExprKind k = kind(c.op);
            bool test = k == ExprKind::Compare || k == ExprKind::Classify;
            ensure(arity(c.op) < 2 || type(0) == type(1), "operands have different types");
            ensure(c.type == (test ? DType::Bool : type(0)),
                   "its type does not follow from its operands");
            bool fp = is_float(type(0));
            ensure(!(k == ExprKind::Float || k == ExprKind::Classify) || fp,
                   "it needs a float operand");
            ensure(k != ExprKind::Bits || !fp, "it needs a bool or integer operand");
        }
    }
}

} // namespace ingot
