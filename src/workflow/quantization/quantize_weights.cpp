// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/quantize_weights.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "slim/opset.h"
#include "slim/rules.h"
#include "workflow/quantization/constant_operand.h"
#include "workflow/quantization/quantized_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace ingot {

namespace {

constexpr int64_t block_size = 32;
constexpr std::string_view contrib = "com.microsoft";

struct TypeRule {
    DType type;
    double most_error; // limit of squared error over squared weights
    int64_t opset;
};
constexpr TypeRule int8_rule{DType::I8, 1e-3, 13};
constexpr TypeRule fp8_rule{DType::F8E4M3, 3e-3, 19};
constexpr TypeRule int4_rule{DType::I4, 2e-2, 21};

const TypeRule& rule_of(WeightFormat f) {
    return f == WeightFormat::Int8 ? int8_rule : f == WeightFormat::Fp8 ? fp8_rule : int4_rule;
}

/// A constant operand of a product: its channel axis and, for matrices, the summed axis, as the
/// product reads it.
struct Use {
    std::string name;
    int64_t channels = 0;
    int64_t sums = -1;
    bool transposed = false;
    auto operator<=>(const Use&) const = default; // NOLINT(modernize-use-nullptr)
};

std::optional<Use> use_of(const slim::Context& c, const onnx::Node& n) {
    if (slim::is_op(n, "Conv")) {
        return Use{slim::input(n, 1), 0, -1};
    }
    if (slim::is_op(n, "ConvTranspose") && slim::get_int(n, "group", 1) == 1) {
        return Use{slim::input(n, 1), 1, -1};
    }
    if (slim::is_op(n, "Gemm")) {
        bool transposed = slim::get_int(n, "transB", 0) != 0;
        return Use{slim::input(n, 1), transposed ? 0 : 1, transposed ? 1 : 0};
    }
    std::optional<ConstantOperand> o =
        slim::is_op(n, "MatMul") ? constant_operand(c, slim::input(n, 1)) : std::nullopt;
    return o && c.rank(o->name) == 2 ? std::optional(Use{o->name, 1, 0, o->transposed})
                                     : std::nullopt;
}

class WeightQuantizer {
public:
    WeightQuantizer(onnx::Model& model, const QuantizeWeightsOptions& options,
                    std::vector<QuantizedTensorReport>& report)
        : model_(model), options_(options), report_(report), analysis_(model), names_(model),
          edit_(model.graph, nullptr, names_), context_{edit_, analysis_, model_, slim_, opset()} {}

    void run() {
        size_t nodes = edit_.size();
        for (size_t i = 0; i < nodes; ++i) {
            check_interrupt();
            std::optional<Use> use = use_of(context_, edit_.node(i));
            const onnx::Tensor* w = use ? edit_.constant(use->name) : nullptr;
            if (w == nullptr || context_.dtype(use->name) != DType::F32) {
                continue;
            }
            const std::string dq = dequantised(*use);
            if (!dq.empty()) {
                onnx::Node n = edit_.node(i);
                std::string read = std::exchange(n.inputs[1], dq);
                edit_.update(i, std::move(n));
                drop_transpose(edit_, read);
            }
        }
        drop_unused();
        edit_.finish();
        if (opset() < int8_rule.opset) {
            model_.opset_imports.emplace(contrib, 1);
        }
    }

private:
    int64_t opset() const {
        auto at = model_.opset_imports.find("");
        return at == model_.opset_imports.end() ? 1 : at->second;
    }

    /// The rules to try, the narrowest first.
    std::vector<TypeRule> rules(const Use& use, const Tensor& w) const {
        if (options_.format != WeightFormat::Int4) {
            return {rule_of(options_.format)};
        }
        bool blocks = use.sums >= 0 && w.rank() == 2 &&
                      w.shape()[static_cast<size_t>(use.sums)] % block_size == 0;
        return blocks ? std::vector<TypeRule>{int4_rule, int8_rule}
                      : std::vector<TypeRule>{int8_rule};
    }

    /// The name of the dequantised weight; "" when it is not quantised.
    const std::string& dequantised(const Use& use) {
        auto [it, fresh] = done_.try_emplace(use, "");
        if (!fresh) {
            return it->second;
        }
        Tensor w = value_of(context_, {use.name, use.transposed});
        QuantizedTensorReport r{use.name, "", "", w.count(), 0};
        if (w.count() < options_.min_elements) {
            r.kept = str("fewer than ", options_.min_elements, " elements");
        }
        for (const TypeRule& rule : r.kept.empty() ? rules(use, w) : std::vector<TypeRule>()) {
            bool blocks = rule.type == DType::I4;
            QuantizedWeight q = quantized_weight(w, rule.type, blocks ? use.sums : use.channels,
                                                 blocks ? block_size : 0);
            r.error = q.error;
            if (q.error <= rule.most_error) {
                r.kept.clear();
                r.type = name(rule.type);
                it->second = add(use.name, q);
                break;
            }
            r.kept = std::isfinite(q.error)
                         ? str("sensitive: ", name(rule.type), " would change it by ",
                               static_cast<float>(q.error * 100), " %")
                         : "it holds NaN or infinity";
        }
        report_.push_back(std::move(r));
        return it->second;
    }

    std::string add(const std::string& weight, const QuantizedWeight& w) {
        std::string q = context_.add(w.q, weight + "_quantized");
        std::string s = context_.add(w.scale, weight + "_scale");
        std::string dq = edit_.fresh_name(weight + "_DequantizeLinear");
        onnx::Node n =
            slim::make_node("DequantizeLinear", {q, s}, dq, edit_.fresh_name(dq + "_node"));
        n.domain = opset() < int8_rule.opset ? contrib : "";
        if (!n.domain.empty()) { // has no form without a zero point
            Shape channels{w.scale.count()};
            n.inputs.push_back(
                context_.add(Tensor::zeros(DType::I8, channels), weight + "_zero_point"));
        }
        slim::set_int(n, "axis", w.axis);
        if (w.block > 0) {
            slim::set_int(n, "block_size", w.block);
        }
        edit_.append(std::move(n));
        return dq;
    }

    void drop_unused() {
        for (const auto& [use, dq] : done_) {
            if (!dq.empty() && !edit_.is_used(use.name)) {
                std::optional<size_t> node = edit_.producer(use.name);
                if (node) {
                    edit_.erase(*node); // a Constant
                } else {
                    edit_.drop_constant(use.name);
                }
            }
        }
    }

    onnx::Model& model_;
    const QuantizeWeightsOptions& options_;
    std::vector<QuantizedTensorReport>& report_;
    SlimOptions slim_;
    slim::Analysis analysis_;
    slim::Names names_;
    slim::GraphEdit edit_;
    slim::Context context_;
    std::map<Use, std::string> done_;
};

} // namespace

onnx::Model quantised_weights(const onnx::Model& model, const QuantizeWeightsOptions& options,
                              std::vector<QuantizedTensorReport>* report) {
    const TypeRule& rule = rule_of(options.format);
    onnx::Model out = slim::deep_copy(
        options.format == WeightFormat::Int8 ? model : raised_opset(model, rule.opset));
    std::vector<QuantizedTensorReport> own;
    std::vector<QuantizedTensorReport>& list = report == nullptr ? own : *report;
    WeightQuantizer(out, options, list).run();
    bool any = std::any_of(list.begin(), list.end(),
                           [](const QuantizedTensorReport& r) { return r.kept.empty(); });
    require(any, ErrorCode::InvalidArgument, "there is no weight to quantise among ", list.size(),
            " f32 constants that products read",
            list.empty() ? "" : str("; '", list[0].name, "': ", list[0].kept));
    return out;
}

} // namespace ingot
