// SPDX-License-Identifier: Apache-2.0
#include "slim/rules.h"

#include "onnx/data_type.h"
#include "onnx/import_run.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace ingot::slim {

std::vector<const Rule*> all_rules() {
    std::vector<const Rule*> out;
    for (const RuleTable* table :
         {&constant_rules, &equality_rules, &dead_code_rules, &identity_rules, &shape_rules,
          &view_rules, &piece_rules, &pointwise_rules, &reduce_rules, &conv_rules, &gemm_rules,
          &batched_gemm_rules, &norm_rules, &control_rules}) {
        for (const Rule& r : *table) {
            out.push_back(&r);
        }
    }
    return out;
}

onnx::Tensor to_onnx(const Tensor& t) {
    onnx::Tensor out;
    out.dims = t.shape();
    out.data_type = onnx::data_type_number(t.dtype());
    out.bytes = t.bytes();
    out.owner = std::make_shared<const Tensor>(t);
    return out;
}

std::optional<Type> Context::type(const std::string& name) const {
    if (const onnx::Tensor* t = edit.constant(name)) {
        const std::optional<DType> dtype = onnx::dtype_of(t->data_type);
        return dtype ? std::optional(Type{*dtype, to_dims(t->dims)}) : std::nullopt;
    }
    const TensorInfo* f = info(name);
    return f == nullptr ? std::nullopt : std::optional(f->type);
}

std::optional<DType> Context::dtype(const std::string& name) const {
    const std::optional<Type> t = type(name);
    return t ? std::optional(t->dtype) : std::nullopt;
}

std::optional<int64_t> Context::rank(const std::string& name) const {
    const std::optional<Type> t = type(name);
    return t ? std::optional<int64_t>(t->rank()) : std::nullopt;
}

std::optional<Shape> Context::shape(const std::string& name) const {
    const std::optional<Type> t = type(name);
    return t ? as_const(t->dims) : std::nullopt;
}

bool Context::same_type(const std::string& a, const std::string& b) const {
    const std::optional<Type> left = type(a);
    return left && left == type(b);
}

std::optional<Tensor> Context::constant(const std::string& name) const {
    const onnx::Tensor* t = edit.constant(name);
    if (t == nullptr || !onnx::dtype_of(t->data_type)) {
        return std::nullopt;
    }
    return onnx::tensor_from(*t);
}

std::optional<std::vector<int64_t>> Context::constant_ints(const std::string& name) const {
    const std::optional<Tensor> t = constant(name);
    if (!t || t->rank() > 1 || (t->dtype() != DType::I64 && t->dtype() != DType::I32)) {
        return std::nullopt;
    }
    std::vector<int64_t> out;
    for (int64_t i = 0; i < t->count(); ++i) {
        out.push_back(t->get_i64(i));
    }
    return out;
}

Context::Parameter Context::parameter(const onnx::Node& n, std::string_view attribute,
                                      size_t operand) const {
    if (find_attribute(n, attribute) != nullptr) {
        return {true, get_ints(n, attribute)};
    }
    if (!has_input(n, operand)) {
        return {};
    }
    return {true, constant_ints(input(n, operand))};
}

std::optional<size_t> Context::producer(const std::string& name, std::string_view op) const {
    const std::optional<size_t> i = edit.producer(name);
    return i && is_op(edit.node(*i), op) ? i : std::nullopt;
}

std::optional<size_t> Context::only_producer(const std::string& name, std::string_view op) const {
    return edit.used_once(name) ? producer(name, op) : std::nullopt;
}

std::string Context::add(const Tensor& t, const std::string& stem) {
    return edit.add_constant(to_onnx(t), stem);
}

std::string Context::add_ints(const std::vector<int64_t>& v, const std::string& stem) {
    return add(Tensor::i64(v), stem);
}

namespace {

// Operators that only rearrange the elements of their first operand.
constexpr std::array<std::string_view, 9> rearranging = {"Expand",  "Flatten",   "Identity",
                                                         "Reshape", "Slice",     "Squeeze",
                                                         "Tile",    "Transpose", "Unsqueeze"};

std::optional<double> single_value(const Tensor& t) {
    if (t.count() == 0 || bit_width(t.dtype()) < 8) {
        return std::nullopt;
    }
    const size_t width = t.bytes().size() / static_cast<size_t>(t.count());
    const std::span<const std::byte> b = t.bytes();
    const bool same = std::equal(b.begin(), b.end() - static_cast<std::ptrdiff_t>(width),
                                 b.begin() + static_cast<std::ptrdiff_t>(width));
    return same ? std::optional(t.get_f64(0)) : std::nullopt;
}

} // namespace

std::optional<double> Context::filled_with(const std::string& name) const {
    std::string at = name;
    for (;;) {
        if (const std::optional<Tensor> t = constant(at)) {
            return single_value(*t);
        }
        const std::optional<size_t> i = edit.producer(at);
        if (!i || !edit.node(*i).domain.empty()) {
            return std::nullopt;
        }
        const onnx::Node& n = edit.node(*i);
        if (n.op_type == "ConstantOfShape") {
            const onnx::Attribute* value = find_attribute(n, "value");
            return value == nullptr                     ? std::optional(0.0)
                   : onnx::dtype_of(value->t.data_type) ? single_value(onnx::tensor_from(value->t))
                                                        : std::nullopt;
        }
        if (std::find(rearranging.begin(), rearranging.end(), n.op_type) == rearranging.end()) {
            return std::nullopt;
        }
        at = input(n, 0);
    }
}

} // namespace ingot::slim
