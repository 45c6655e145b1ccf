// SPDX-License-Identifier: Apache-2.0
// Rules that turn values computed only from constants into initializers.
#include "base/interrupt.h"
#include "slim/fold.h"
#include "slim/rules.h"

#include <optional>

namespace ingot::slim {

namespace {

std::optional<onnx::Tensor> constant_of(const onnx::Node& n) {
    if (const onnx::Attribute* a = find_attribute(n, "value")) {
        return a->t.string_count == 0 ? std::optional(a->t) : std::nullopt;
    }
    if (const onnx::Attribute* a = find_attribute(n, "value_float")) {
        return to_onnx(Tensor::scalar(DType::F32, static_cast<double>(a->f)));
    }
    if (const onnx::Attribute* a = find_attribute(n, "value_floats")) {
        return to_onnx(
            Tensor::of<float>(DType::F32, {static_cast<int64_t>(a->floats.size())}, a->floats));
    }
    if (const onnx::Attribute* a = find_attribute(n, "value_int")) {
        return to_onnx(Tensor::scalar_i64(DType::I64, a->i));
    }
    if (const onnx::Attribute* a = find_attribute(n, "value_ints")) {
        return to_onnx(Tensor::i64(a->ints));
    }
    return std::nullopt;
}

bool constant_to_initializer(Context& c, size_t i) {
    const std::string name = c.edit.node(i).outputs[0];
    const std::optional<onnx::Tensor> t = constant_of(c.edit.node(i));
    return t && c.edit.make_constant(name, *t);
}

std::optional<Tensor> known_value(const Context& c, const std::string& name) {
    const TensorInfo* f = name.empty() ? nullptr : c.info(name);
    if (f == nullptr || f->host == nullptr || is_float(f->type.dtype)) {
        return std::nullopt;
    }
    const std::optional<Dims> dims = f->host->dims();
    const std::optional<Shape> values = dims ? as_const(*dims) : std::nullopt;
    if (!values) {
        return std::nullopt;
    }
    return Tensor::of<int64_t>(f->type.dtype, f->host->shape, *values);
}

bool known_values(Context& c, size_t) {
    bool changed = false;
    for (size_t i = 0; i < c.edit.size(); ++i) {
        if (!c.edit.alive(i) || is_op(c.edit.node(i), "Constant")) {
            continue;
        }
        const std::vector<std::string> outputs = c.edit.node(i).outputs;
        for (const std::string& o : outputs) {
            const std::optional<Tensor> t = c.edit.is_used(o) ? known_value(c, o) : std::nullopt;
            changed = (t && c.edit.make_constant(o, to_onnx(*t))) || changed;
        }
    }
    return changed;
}

bool fold(Context& c, size_t) {
    return fold_constants(c);
}

const Rule rules[] = {
    {"constant-to-initializer",
     "constant_folding",
     "Constant nodes become initializers",
     {"Constant"},
     constant_to_initializer},
    {"known-value", "constant_folding", "known shapes and arithmetic on them", {}, known_values},
    {"fold", "constant_folding", "nodes whose operands are all constants", {}, fold},
};

} // namespace

const RuleTable constant_rules = rules;

} // namespace ingot::slim
