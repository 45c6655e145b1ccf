// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/quantize.h"

#include "base/error.h"
#include "slim/opset.h"
#include "slim/prepare.h"
#include "slim/rules.h"
#include "slim/slim.h"
#include "workflow/quantization/constant_operand.h"
#include "workflow/quantization/quantized_weight.h"
#include "workflow/quantization/quantizer_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace ingot {

namespace {

using slim::Context;
using slim::is_op;

constexpr int64_t first_channel_opset = 13; // QuantizeLinear with an axis
constexpr int64_t first_f8_opset = 19;
constexpr std::string_view contrib = "com.microsoft";
/// Convolutions of fewer channels a group, and sums of fewer products, run as fast in 16-bit floats
/// as in f8e4m3.
constexpr int64_t least_f8_channels = 16;
constexpr int64_t least_f8_depth = 64;
constexpr float least_scale = std::numeric_limits<float>::min();

template <size_t N>
bool is_one_of(const onnx::Node& n, const std::array<std::string_view, N>& types) {
    return n.domain.empty() && std::find(types.begin(), types.end(), n.op_type) != types.end();
}

constexpr std::array<std::string_view, 22> pointwise = {
    "Relu", "LeakyRelu", "Clip",     "HardSwish", "HardSigmoid", "Sigmoid",        "Tanh", "Gelu",
    "Elu",  "Selu",      "Celu",     "Softplus",  "Softsign",    "Mish",           "Neg",  "Abs",
    "Erf",  "PRelu",     "Identity", "Dropout",   "Swish",       "ThresholdedRelu"};
constexpr std::array<std::string_view, 7> joins = {"Add", "Mul", "Sum", "Max", "Min", "Sub", "Div"};
constexpr std::array<std::string_view, 5> views = {"Reshape", "Transpose", "Flatten", "Squeeze",
                                                   "Unsqueeze"};
constexpr std::array<std::string_view, 2> maxima = {"MaxPool", "GlobalMaxPool"};
constexpr std::array<std::string_view, 7> windows = {
    "AveragePool",  "GlobalAveragePool", "Resize", "Upsample",
    "DepthToSpace", "SpaceToDepth",      "Pad"};

/// The constant operand of a product, and the axis of its channels as the product reads it.
struct Weight {
    std::string name;
    int64_t axis = 0;
    bool transposed = false;
    auto operator<=>(const Weight&) const = default; // NOLINT(modernize-use-nullptr)
};

std::optional<Weight> operand_of(const Context& c, const onnx::Node& n) {
    if (is_op(n, "Conv")) {
        return Weight{slim::input(n, 1), 0};
    }
    if (is_op(n, "Gemm") && slim::get_int(n, "transA", 0) == 0) {
        return Weight{slim::input(n, 1), slim::get_int(n, "transB", 0) == 0 ? 1 : 0};
    }
    std::optional<ConstantOperand> o =
        is_op(n, "MatMul") ? constant_operand(c, slim::input(n, 1)) : std::nullopt;
    return o ? std::optional(Weight{o->name, 1, o->transposed}) : std::nullopt;
}

std::optional<Weight> weight_of(const Context& c, const onnx::Node& n) {
    std::optional<Weight> w = operand_of(c, n);
    const onnx::Tensor* t = w ? c.edit.constant(w->name) : nullptr;
    size_t rank = t == nullptr ? 0 : t->dims.size();
    bool fits = is_op(n, "Conv") ? rank >= 3 : rank == 2;
    bool floats = fits && c.dtype(w->name) == DType::F32 && c.dtype(n.inputs[0]) == DType::F32;
    bool variable = floats && c.edit.constant(n.inputs[0]) == nullptr;
    return variable ? w : std::nullopt;
}

/// Whether products of f8e4m3 with this weight are faster than those of 16-bit floats.
bool gains_from_f8(const Context& c, const onnx::Node& n, const Weight& w) {
    const onnx::Tensor& t = *c.edit.constant(w.name);
    int64_t depth = 1;
    for (size_t i = 0; i < t.dims.size(); ++i) {
        depth *= static_cast<int64_t>(i) == (w.transposed ? 1 - w.axis : w.axis) ? 1 : t.dims[i];
    }
    return depth >= least_f8_depth && (!is_op(n, "Conv") || t.dims[1] >= least_f8_channels);
}

/// Whether it averages over the last two axes of pictures, as global pooling does.
bool averages_pictures(const Context& c, const onnx::Node& n) {
    if (!is_op(n, "ReduceMean") || c.rank(n.inputs[0]) != 4) {
        return false;
    }
    Context::Parameter axes = c.parameter(n, "axes", 1);
    std::vector<int64_t> list = axes.known.value_or(std::vector<int64_t>());
    for (int64_t& a : list) {
        a = a < 0 ? a + 4 : a;
    }
    std::sort(list.begin(), list.end());
    return list == std::vector<int64_t>{2, 3};
}

PlacementRole role_of(const Context& c, const onnx::Node& n, size_t variable_inputs,
                      ProductFormat format) {
    bool f8 = format == ProductFormat::Fp8;
    if (std::optional<Weight> w = weight_of(c, n)) {
        return !f8 || gains_from_f8(c, n, *w) ? PlacementRole::Product : PlacementRole::Other;
    }
    if (slim::has_body(n) || n.outputs.size() != 1 || variable_inputs == 0 ||
        c.dtype(n.outputs[0]) != DType::F32) {
        return PlacementRole::Other;
    }
    if (f8) { // what lies between products stays as it is
        return is_one_of(n, views) && variable_inputs == 1 ? PlacementRole::View
                                                           : PlacementRole::Other;
    }
    if (is_one_of(n, joins) && variable_inputs > 1) {
        bool plain = n.op_type != "Sub" && n.op_type != "Div"; // those belong to norms
        return plain ? PlacementRole::Join : PlacementRole::Other;
    }
    if (is_op(n, "Concat")) {
        return PlacementRole::Concat;
    }
    if (variable_inputs > 1) {
        return PlacementRole::Other;
    }
    if (is_one_of(n, pointwise) || is_one_of(n, joins) || is_op(n, "BatchNormalization")) {
        return PlacementRole::Pointwise;
    }
    return is_one_of(n, views)                                ? PlacementRole::View
           : is_one_of(n, maxima)                             ? PlacementRole::Maximum
           : is_one_of(n, windows) || averages_pictures(c, n) ? PlacementRole::Window
                                                              : PlacementRole::Other;
}

/// Quantises one model, in its main graph.
class Quantizer {
public:
    Quantizer(onnx::Model& model, const CalibrationCache& cache, ProductFormat format,
              QuantizeReport& report)
        : model_(model), cache_(cache), format_(format),
          type_(format == ProductFormat::Fp8 ? DType::F8E4M3 : DType::I8), report_(report),
          analysis_(model), names_(model),
          edit_(model.graph, nullptr, names_), context_{edit_, analysis_, model_, options_,
                                                        opset()} {}

    void run() {
        sketch();
        leads_ = lead_to_products();
        std::vector<float> scales = assign_scales(sketch_);
        size_t nodes = edit_.size();
        for (size_t t = 0; t < scales.size(); ++t) {
            if (scales[t] > 0) {
                quantise_tensor(tensors_[t], in_type(scales[t]), nodes);
            }
        }
        for (size_t i = 0; i < nodes; ++i) {
            quantise_product(i);
        }
        for (const auto& [weight, dq] : weights_) {
            if (!dq.empty() && !edit_.is_used(weight.name) &&
                edit_.constant(weight.name) != nullptr) {
                edit_.drop_constant(weight.name);
            }
        }
        edit_.finish();
        if (opset() < first_channel_opset) {
            model_.opset_imports.emplace(contrib, 1);
        }
    }

private:
    int64_t opset() const {
        auto at = model_.opset_imports.find("");
        return at == model_.opset_imports.end() ? 1 : at->second;
    }

    /// The scale of the type from that of int8.
    float in_type(float scale) const {
        constexpr double int8_steps = 127;
        constexpr double largest_f8 = 448;
        auto narrow = static_cast<float>(static_cast<double>(scale) * int8_steps / largest_f8);
        return format_ == ProductFormat::Int8 ? scale : std::max(narrow, least_scale);
    }

    size_t number(const std::string& tensor) {
        auto [it, fresh] = numbers_.try_emplace(tensor, tensors_.size());
        if (fresh) {
            tensors_.push_back(tensor);
            auto scale = by_name_.find(tensor);
            bool floats = context_.dtype(tensor) == DType::F32;
            sketch_.scales.push_back(scale == by_name_.end() || !floats ? 0 : scale->second);
        }
        return it->second;
    }

    void sketch() {
        by_name_.insert(cache_.scales.begin(), cache_.scales.end());
        for (const onnx::ValueInfo& v : edit_.graph().inputs) {
            number(v.name);
        }
        for (size_t i = 0; i < edit_.size(); ++i) {
            const onnx::Node& n = edit_.node(i);
            PlacementOp op;
            for (const std::string& in : n.inputs) {
                if (!in.empty() && edit_.constant(in) == nullptr) {
                    op.inputs.push_back(number(in));
                }
            }
            op.role = role_of(context_, n, op.inputs.size(), format_);
            if (op.role != PlacementRole::Product && weight_of(context_, n)) {
                report_.small.push_back(n.outputs[0]);
            }
            if (op.role == PlacementRole::Product) {
                op.inputs.resize(1);
            }
            for (const std::string& out : n.outputs) {
                if (!out.empty()) {
                    op.outputs.push_back(number(out));
                }
            }
            sketch_.ops.push_back(std::move(op));
        }
        for (const auto& [name, scale] : cache_.scales) {
            if (!numbers_.contains(name)) {
                report_.unknown.push_back(name);
            }
        }
        require(report_.unknown.size() < cache_.scales.size(), ErrorCode::InvalidArgument,
                "none of the ", cache_.scales.size(),
                " tensors of the calibration cache is in the model",
                cache_.scales.empty() ? "" : str(" (the first is '", cache_.scales[0].first, "')"),
                ": it belongs to another model");
    }

    onnx::Node node(std::string_view type, std::vector<std::string> inputs, std::string output) {
        std::string name = edit_.fresh_name(output + "_node");
        onnx::Node n = slim::make_node(type, std::move(inputs), std::move(output), std::move(name));
        n.domain = opset() < first_channel_opset ? contrib : "";
        return n;
    }

    /// By node: whether it is a product or a view of one's input.
    std::vector<bool> lead_to_products() const {
        std::vector<bool> wanted(tensors_.size(), false);
        std::vector<bool> out(sketch_.ops.size(), false);
        for (size_t i = sketch_.ops.size(); i-- > 0;) {
            const PlacementOp& op = sketch_.ops[i];
            bool view =
                op.role == PlacementRole::View && !op.outputs.empty() && wanted[op.outputs[0]];
            out[i] = op.role == PlacementRole::Product || view;
            if (out[i]) {
                wanted[op.inputs[0]] = true;
            }
        }
        return out;
    }

    bool is_conv(size_t i) const {
        return sketch_.ops[i].role == PlacementRole::Product && is_op(edit_.node(i), "Conv");
    }

    /// Inserts Q and DQ after a tensor. All nodes read the result, but not through bodies; of
    /// f8e4m3 (ProductFormat), if no convolution reads it, products alone.
    void quantise_tensor(const std::string& tensor, float scale, size_t nodes) {
        std::vector<size_t> readers = edit_.readers(tensor);
        std::string s = context_.add(Tensor::scalar(DType::F32, scale), tensor + "_scale");
        std::string zero = context_.add(Tensor::zeros(type_, {}), tensor + "_zero_point");
        std::string q = edit_.fresh_name(str(tensor, quantised_suffix));
        std::string dq = edit_.fresh_name(str(tensor, dequantised_suffix));
        edit_.append(node("QuantizeLinear", {tensor, s, zero}, q));
        edit_.append(node("DequantizeLinear", {q, s, zero}, dq));
        bool by_all = format_ == ProductFormat::Int8 ||
                      std::any_of(readers.begin(), readers.end(),
                                  [&](size_t i) { return i < nodes && is_conv(i); });
        for (size_t i : readers) {
            onnx::Node n = edit_.node(i);
            if (i >= nodes || slim::has_body(n)) {
                continue;
            }
            if (by_all) {
                std::replace(n.inputs.begin(), n.inputs.end(), tensor, dq);
                edit_.update(i, std::move(n));
            } else if (n.inputs[0] == tensor && leads_[i]) {
                n.inputs[0] = dq;
                edit_.update(i, std::move(n));
            }
        }
        dequantised_.insert(dq);
        report_.tensors.push_back(tensor);
    }

    /// Whether a product reads the narrow type here, or a view of it.
    bool reads_narrow(const std::string& tensor) const {
        if (dequantised_.contains(tensor)) {
            return true;
        }
        std::optional<size_t> p = edit_.producer(tensor);
        return p && is_one_of(edit_.node(*p), views) && reads_narrow(edit_.node(*p).inputs[0]);
    }

    void quantise_product(size_t i) {
        // The input is a new tensor by now; the sketch still holds the old weight.
        if (sketch_.ops[i].role != PlacementRole::Product) {
            return;
        }
        onnx::Node n = edit_.node(i);
        if (!reads_narrow(n.inputs[0])) {
            report_.missing.push_back(tensors_[sketch_.ops[i].inputs[0]]);
            return;
        }
        std::string w = quantised_constant(operand_of(context_, n).value());
        if (!w.empty()) {
            std::string read = std::exchange(n.inputs[1], w);
            report_.products.push_back(n.outputs[0]);
            edit_.update(i, std::move(n));
            drop_transpose(edit_, read);
        }
    }

    /// The name of the dequantised weight; "" when it contains NaN or infinity.
    std::string quantised_constant(const Weight& weight) {
        const auto& [name, axis, transposed] = weight;
        auto [it, fresh] = weights_.try_emplace(weight, "");
        if (fresh) {
            QuantizedWeight w =
                quantized_weight(value_of(context_, {name, transposed}), type_, axis);
            if (std::isfinite(w.error)) {
                std::string q = context_.add(w.q, name + "_quantized");
                std::string s = context_.add(w.scale, name + "_scale");
                Shape channels{w.scale.count()};
                std::string zero =
                    context_.add(Tensor::zeros(type_, channels), name + "_zero_point");
                std::string dq = edit_.fresh_name(str(name, dequantised_suffix));
                onnx::Node n = node("DequantizeLinear", {q, s, zero}, dq);
                slim::set_int(n, "axis", axis);
                edit_.append(std::move(n));
                it->second = dq;
            }
        }
        return it->second;
    }

    onnx::Model& model_;
    const CalibrationCache& cache_;
    ProductFormat format_;
    DType type_;
    QuantizeReport& report_;
    SlimOptions options_;
    slim::Analysis analysis_;
    slim::Names names_;
    slim::GraphEdit edit_;
    Context context_;
    std::unordered_map<std::string, float> by_name_;
    std::vector<std::string> tensors_; // by number
    std::unordered_map<std::string, size_t> numbers_;
    PlacementSketch sketch_;  // its ops are the nodes
    std::vector<bool> leads_; // by node: to products
    std::unordered_set<std::string> dequantised_;
    std::map<Weight, std::string> weights_;
};

bool quantises(const onnx::Graph& g) {
    auto one = [](const onnx::Node& n) {
        bool found = n.op_type == "QuantizeLinear" || n.op_type == "DequantizeLinear";
        slim::each_body(n, [&](const onnx::Graph& b) { found = found || quantises(b); });
        return found;
    };
    return std::any_of(g.nodes.begin(), g.nodes.end(), one);
}

} // namespace

bool is_quantised(const onnx::Model& model) {
    return quantises(model.graph) ||
           std::any_of(model.functions.begin(), model.functions.end(), [](const auto& f) {
               return std::any_of(
                   f.second.nodes.begin(), f.second.nodes.end(), [](const onnx::Node& n) {
                       return n.op_type == "QuantizeLinear" || n.op_type == "DequantizeLinear";
                   });
           });
}

onnx::Model quantisable(const onnx::Model& model) {
    return slim_model(model);
}

onnx::Model quantised(const onnx::Model& model, const CalibrationCache& cache,
                      QuantizeReport* report, ProductFormat format) {
    require(!is_quantised(model), ErrorCode::InvalidArgument,
            "the model contains quantisation: it already has its scales and takes no "
            "calibration cache");
    onnx::Model out = quantisable(model);
    if (format == ProductFormat::Fp8) {
        out = slim::deep_copy(raised_opset(out, first_f8_opset));
    }
    QuantizeReport own;
    Quantizer(out, cache, format, report == nullptr ? own : *report).run();
    return out;
}

} // namespace ingot
