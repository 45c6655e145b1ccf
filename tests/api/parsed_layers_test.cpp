// SPDX-License-Identifier: Apache-2.0
// Layers of a parsed network are objects of their types' classes, and their getters describe the
// node: once a setting is set, to its current value, the layer follows its settings, and the
// results stay the same.
#include "api/parsed_layers.h"

#include <map>
#include <set>

namespace ingot::test {

namespace {

using Type = nv::LayerType;
using Values = std::vector<int64_t>;

Tensor i64(const Values& v) {
    return Tensor::i64(v);
}
Tensor scalar_i64(int64_t v) {
    return Tensor::scalar_i64(DType::I64, v);
}
Tensor one(double v) {
    return Tensor::scalar(DType::F32, v);
}
Tensor positive(Shape shape) {
    return numbers(std::move(shape), 0.5, 3);
}
Tensor truths(Shape shape) {
    Tensor t = Tensor::empty(DType::Bool, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_i64(i, i % 3 == 0 ? 1 : 0);
    }
    return t;
}

struct Case {
    const char* name;
    Type type; // of the layer that is called "the ..." as the first node
    Made model;
};

using Cases = std::vector<Case>;

Made simple(const char* type, Tensor x, std::vector<onnx::Attribute> attributes = {}) {
    return {{op(type, {"x"}, {"y"}, std::move(attributes))}, {{"x", std::move(x)}}, {}};
}
/// With two operands, the second one an initializer.
Made with(const char* type, Tensor x, Tensor w, std::vector<onnx::Attribute> attributes = {}) {
    return {{op(type, {"x", "w"}, {"y"}, std::move(attributes))},
            {{"x", std::move(x)}},
            {{"w", std::move(w)}}};
}
Made with2(const char* type, Tensor x, Tensor w, Tensor b,
           std::vector<onnx::Attribute> attributes = {}) {
    Made m = with(type, std::move(x), std::move(w), std::move(attributes));
    m.nodes[0].inputs.emplace_back("b");
    m.initializers.emplace_back("b", std::move(b));
    return m;
}
/// Two operands known only at run time.
Made both(const char* type, Tensor x, Tensor w, std::vector<onnx::Attribute> attributes = {}) {
    Made m = with(type, std::move(x), std::move(w), std::move(attributes));
    m.inputs.push_back(std::move(m.initializers[0]));
    m.initializers.clear();
    return m;
}
Made at(int64_t opset, Made m) {
    m.opset = opset;
    return m;
}
Made open(Made m) {
    m.open = true;
    return m;
}

Cases window_cases() {
    Tensor x = numbers({2, 4, 9, 8});
    Tensor w = numbers({6, 2, 3, 3});
    Tensor b = numbers({6});
    Tensor back = numbers({4, 3, 3, 3});
    return {
        {"conv", Type::kCONVOLUTION,
         with2("Conv", x, w, b,
               {ints("strides", {2, 1}), ints("dilations", {1, 2}), number("group", 2),
                ints("pads", {1, 0, 2, 3})})},
        {"conv same", Type::kCONVOLUTION,
         open(with("Conv", x, w,
                   {ints("strides", {2, 2}), word("auto_pad", "SAME_LOWER"), number("group", 2)}))},
        {"conv of one dimension", Type::kCONVOLUTION,
         with("Conv", numbers({2, 4, 9}), numbers({6, 4, 3}), {ints("pads", {1, 2})})},
        {"conv with a kernel of the run", Type::kCONVOLUTION,
         both("Conv", x, w, {number("group", 2)})},
        {"deconv", Type::kDECONVOLUTION,
         with2("ConvTranspose", x, back, b,
               {ints("strides", {2, 3}), ints("pads", {1, 0, 2, 1}), number("group", 2),
                ints("output_padding", {1, 2})})},
        {"deconv same", Type::kDECONVOLUTION,
         with("ConvTranspose", x, back, {ints("strides", {2, 2}), word("auto_pad", "SAME_UPPER")})},
        {"deconv by shape", Type::kDECONVOLUTION,
         with("ConvTranspose", x, back, {ints("strides", {2, 2}), ints("output_shape", {20, 17})})},
        {"max", Type::kPOOLING,
         simple("MaxPool", x,
                {ints("kernel_shape", {3, 2}), ints("strides", {2, 2}), ints("pads", {1, 0, 1, 0}),
                 number("ceil_mode", 1)})},
        {"average", Type::kPOOLING,
         simple("AveragePool", x,
                {ints("kernel_shape", {3, 2}), ints("pads", {1, 0, 1, 1}),
                 number("count_include_pad", 1)})},
        {"average same", Type::kPOOLING,
         simple("AveragePool", x, {ints("kernel_shape", {3, 2}), word("auto_pad", "SAME_UPPER")})},
        {"global average", Type::kREDUCE, simple("GlobalAveragePool", x)},
        {"global max", Type::kREDUCE, simple("GlobalMaxPool", x)},
        {"resize by scales",
         Type::kRESIZE,
         {{op("Resize", {"x", "", "s"}, {"y"},
              {word("mode", "linear"), word("coordinate_transformation_mode", "align_corners")})},
          {{"x", x}},
          {{"s", Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 1, 2, 1.5F})}}}},
        {"resize by sizes of some axes",
         Type::kRESIZE,
         {{op("Resize", {"x", "", "", "s"}, {"y"},
              {word("mode", "cubic"), word("coordinate_transformation_mode", "pytorch_half_pixel"),
               ints("axes", {2, 3}), real("cubic_coeff_a", -0.5F)})},
          {{"x", x}},
          {{"s", i64({5, 1})}}}},
        {"upsample", Type::kRESIZE,
         at(9, with("Upsample", x,
                    Tensor::of<float>(DType::F32, {4}, std::vector<float>{1, 1, 2, 3})))},
        {"grid sample", Type::kGRID_SAMPLE,
         both(
             "GridSample", x, numbers({2, 3, 5, 2}, -1.2, 1.2),
             {word("mode", "linear"), word("padding_mode", "border"), number("align_corners", 1)})},
    };
}

Cases pointwise_cases() {
    Tensor x = numbers({2, 3, 4});
    Cases out = {
        {"clip", Type::kACTIVATION, with2("Clip", x, one(-0.5), one(1.25))},
        {"clip by attributes", Type::kACTIVATION, at(10, simple("Clip", x, {real("max", 0.5F)}))},
        {"gelu by tanh", Type::kACTIVATION, simple("Gelu", x, {word("approximate", "tanh")})},
        {"prelu", Type::kPARAMETRIC_RELU, with("PRelu", x, numbers({3, 1}))},
        {"numpy ranks", Type::kELEMENTWISE, with("Mul", x, numbers({4}))},
        {"a number first",
         Type::kELEMENTWISE,
         {{op("Sub", {"w", "x"}, {"y"})}, {{"x", x}}, {{"w", one(1)}}}},
        {"one tensor twice", Type::kELEMENTWISE, {{op("Mul", {"x", "x"}, {"y"})}, {{"x", x}}, {}}},
        {"sum of one", Type::kIDENTITY, simple("Sum", x)},
        {"where",
         Type::kSELECT,
         {{op("Where", {"c", "x", "w"}, {"y"})},
          {{"c", truths({3, 1})}, {"x", x}},
          {{"w", one(7)}}}},
        {"cast", Type::kCAST, simple("Cast", x, {number("to", 6)})},
        {"cast like", Type::kCAST, with("CastLike", x, scalar_i64(3))},
        {"identity", Type::kIDENTITY, simple("Identity", x)},
        {"dropout", Type::kIDENTITY, simple("Dropout", x)},
    };
    for (const char* name : {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "Softsign",
                             "Softplus", "HardSigmoid", "ThresholdedRelu", "Gelu"}) {
        out.push_back({name, Type::kACTIVATION, simple(name, x)});
    }
    for (const char* name : {"Exp", "Abs", "Neg", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan",
                             "Asinh", "Ceil", "Floor", "Erf", "Sign", "Round"}) {
        out.push_back({name, Type::kUNARY, simple(name, x)});
    }
    for (const char* name : {"Log", "Sqrt", "Reciprocal"}) {
        out.push_back({name, Type::kUNARY, simple(name, positive({2, 3}))});
    }
    for (const char* name : {"Asin", "Acos", "Atanh"}) {
        out.push_back({name, Type::kUNARY, simple(name, numbers({2, 3}, -0.9, 0.9))});
    }
    out.push_back({"Acosh", Type::kUNARY, simple("Acosh", numbers({2, 3}, 1, 4))});
    out.push_back({"Not", Type::kUNARY, simple("Not", truths({2, 3}))});
    for (const char* name : {"IsInf", "IsNaN"}) {
        out.push_back({name, Type::kUNARY, simple(name, x)});
    }
    for (const char* name :
         {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Equal", "Less", "Greater"}) {
        out.push_back({name, Type::kELEMENTWISE, both(name, x, numbers({2, 1, 4}, 1, 5))});
    }
    out.push_back({"Pow", Type::kELEMENTWISE, both("Pow", positive({2, 3}), numbers({2, 3}))});
    for (const char* name : {"And", "Or", "Xor"}) {
        out.push_back({name, Type::kELEMENTWISE, both(name, truths({2, 3}), truths({1, 3}))});
    }
    return out;
}

Cases math_cases() {
    Tensor x = numbers({2, 3, 4});
    return {
        {"softmax", Type::kSOFTMAX, simple("Softmax", x, {number("axis", 1)})},
        {"softmax of old", Type::kSOFTMAX,
         at(11, simple("Softmax", numbers({2, 5}), {number("axis", -1)}))},
        {"sum", Type::kREDUCE, with("ReduceSum", x, i64({-1, 0}))},
        {"all", Type::kREDUCE, simple("ReduceMax", x, {number("keepdims", 0)})},
        {"mean by attribute", Type::kREDUCE,
         at(13, simple("ReduceMean", x, {ints("axes", {1}), number("keepdims", 0)}))},
        {"product", Type::kREDUCE, with("ReduceProd", x, i64({1}))},
        {"least", Type::kREDUCE, with("ReduceMin", x, i64({1}), {number("keepdims", 0)})},
        {"top k",
         Type::kTOPK,
         {{op("TopK", {"x", "k"}, {"y", "y2"}, {number("axis", 1), number("largest", 0)})},
          {{"x", x}},
          {{"k", i64({2})}}}},
        {"top k, one result",
         Type::kTOPK,
         {{op("TopK", {"x", "k"}, {"", "y2"})}, {{"x", x}}, {{"k", i64({2})}}}},
        {"product of matrices", Type::kMATRIX_MULTIPLY, with("MatMul", x, numbers({4, 5}))},
        {"matrix and vector", Type::kMATRIX_MULTIPLY, with("MatMul", x, numbers({4}))},
        {"vector and matrix", Type::kMATRIX_MULTIPLY, both("MatMul", numbers({3}), x)},
        {"two vectors", Type::kMATRIX_MULTIPLY, both("MatMul", numbers({3}), numbers({3}, 0, 1))},
        {"gemm", Type::kMATRIX_MULTIPLY,
         with2("Gemm", numbers({4, 3}), numbers({5, 4}), numbers({5}),
               {number("transA", 1), number("transB", 1)})},
        {"einsum", Type::kEINSUM,
         both("Einsum", x, numbers({4, 3}), {word("equation", "bij,jk->bki")})},
        {"running sum", Type::kCUMULATIVE,
         with("CumSum", x, scalar_i64(1), {number("exclusive", 1), number("reverse", 1)})},
    };
}

Cases norm_cases() {
    Tensor x = numbers({2, 4, 3, 5});
    Tensor c = positive({4});
    return {
        {"response", Type::kLRN,
         simple("LRN", x, {number("size", 3), real("alpha", 0.5F), real("bias", 2)})},
        {"batch",
         Type::kSCALE,
         {{op("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {real("epsilon", 0.01F)})},
          {{"x", x}},
          {{"s", numbers({4})}, {"b", numbers({4}, 0, 1)}, {"m", numbers({4}, 3, 4)}, {"v", c}}}},
        {"instance", Type::kNORMALIZATION,
         with2("InstanceNormalization", x, c, numbers({4}), {real("epsilon", 0.1F)})},
        {"instance of one", Type::kNORMALIZATION,
         with2("InstanceNormalization", numbers({2, 1, 5}), numbers({1}), numbers({1}, 2, 3))},
        {"group", Type::kNORMALIZATION,
         with2("GroupNormalization", x, c, numbers({4}), {number("num_groups", 2)})},
        {"group of old", Type::kNORMALIZATION,
         at(18, with2("GroupNormalization", x, positive({2}), numbers({2}),
                      {number("num_groups", 2)}))},
        {"layer", Type::kNORMALIZATION,
         open(with2("LayerNormalization", numbers({2, 3, 4}), positive({4}), numbers({4})))},
        {"layer of two axes", Type::kNORMALIZATION,
         with2("LayerNormalization", x, positive({3, 5}), numbers({3, 5}), {number("axis", -2)})},
        {"layer without bias", Type::kNORMALIZATION, with("LayerNormalization", x, positive({5}))},
    };
}

Cases shape_cases() {
    Tensor x = numbers({2, 3, 4});
    return {
        {"concat", Type::kCONCATENATION,
         both("Concat", x, numbers({2, 5, 4}), {number("axis", -2)})},
        {"reshape", Type::kSHUFFLE, open(with("Reshape", x, i64({0, -1, 2})))},
        {"reshape to a shape of the run", Type::kSHUFFLE, both("Reshape", x, i64({4, 6}))},
        {"reshape of nothing", Type::kSHUFFLE,
         with("Reshape", numbers({0, 3}), i64({3, 0}), {number("allowzero", 1)})},
        {"flatten", Type::kSHUFFLE, open(simple("Flatten", x))},
        {"flatten all", Type::kSHUFFLE, open(simple("Flatten", x, {number("axis", 0)}))},
        {"flatten two", Type::kSHUFFLE, open(simple("Flatten", x, {number("axis", 2)}))},
        {"transpose", Type::kSHUFFLE, simple("Transpose", x, {ints("perm", {2, 0, 1})})},
        {"turn round", Type::kSHUFFLE, simple("Transpose", x)},
        {"squeeze", Type::kSQUEEZE, with("Squeeze", numbers({2, 1, 3, 1}), i64({-1}))},
        {"squeeze all", Type::kSQUEEZE, simple("Squeeze", numbers({2, 1, 3, 1}))},
        {"squeeze of old", Type::kSQUEEZE,
         at(11, simple("Squeeze", numbers({2, 1, 3}), {ints("axes", {1})}))},
        {"unsqueeze", Type::kUNSQUEEZE, with("Unsqueeze", x, i64({0, -1}))},
        {"shape", Type::kSHAPE, simple("Shape", x)},
        {"numbers of a shape",
         Type::kFILL,
         {{op("ConstantOfShape", {"s"}, {"a"}, {contents("value", Tensor::i64({7}))}),
           op("Identity", {"a"}, {"y"})},
          {},
          {{"s", i64({2, 3})}}}},
        {"numbers of a shape of the run", Type::kFILL, simple("ConstantOfShape", i64({2, 3}))},
        {"range",
         Type::kFILL,
         {{op("Range", {"a", "b", "c"}, {"y"})},
          {},
          {{"a", scalar_i64(10)}, {"b", scalar_i64(3)}, {"c", scalar_i64(-2)}}}},
        {"slice",
         Type::kSLICE,
         {{op("Slice", {"x", "a", "b", "c", "d"}, {"y"})},
          {{"x", x}},
          {{"a", i64({-1, 1})},
           {"b", i64({INT64_MIN, 9})},
           {"c", i64({2, 1})},
           {"d", i64({-2, 1})}}}},
        {"slice of old", Type::kSLICE,
         at(9, simple("Slice", x,
                      {ints("starts", {1, 0}), ints("ends", {3, -1}), ints("axes", {2, 1})}))},
        {"parts", Type::kSLICE,
         open({{op("Split", {"x"}, {"y", "", "y3"}, {number("axis", 1), number("num_outputs", 3)})},
               {{"x", numbers({2, 8, 2})}},
               {}})},
        {"parts of sizes",
         Type::kSLICE,
         {{op("Split", {"x", "s"}, {"y", "y2"}, {number("axis", -1)})},
          {{"x", x}},
          {{"s", i64({3, 1})}}}},
        {"pad", Type::kSLICE, with2("Pad", x, i64({0, 1, -1, 0, 2, 3}), one(1.5))},
        {"reflect", Type::kSLICE,
         with("Pad", x, i64({0, 1, 2, 0, 2, 3}), {word("mode", "reflect")})},
        {"edge", Type::kSLICE, with("Pad", x, i64({0, 1, 2, 0, 2, 3}), {word("mode", "edge")})},
        {"pad what only the run knows", Type::kPADDING,
         open(with("Pad", numbers({4, 3}), i64({1, 0, 2, 1})))},
        {"expand", Type::kSLICE, with("Expand", numbers({2, 1, 4}), i64({3, 1}))},
        {"tile", Type::kSLICE, with("Tile", x, i64({1, 2, 3}))},
    };
}

Cases index_cases() {
    Tensor x = numbers({2, 3, 4});
    Tensor q = numbers({2, 3, 4}, -100, 100, DType::I8);
    return {
        {"gather", Type::kGATHER, with("Gather", x, i64({2, -1, 0}), {number("axis", -2)})},
        {"rows of a table",
         Type::kGATHER,
         {{op("Gather", {"w", "x"}, {"y"})}, {{"x", i64({4, 1})}}, {{"w", numbers({5, 3})}}}},
        {"elements", Type::kGATHER,
         both("GatherElements", x, numbers({2, 1, 4}, 0, 3, DType::I64), {number("axis", 1)})},
        {"nd", Type::kGATHER,
         both("GatherND", x, numbers({2, 5, 1}, 0, 3, DType::I64), {number("batch_dims", 1)})},
        {"scatter",
         Type::kSCATTER,
         {{op("ScatterElements", {"x", "i", "u"}, {"y"}, {number("axis", -1)})},
          {{"x", x}, {"u", numbers({2, 3, 1})}},
          {{"i", numbers({2, 3, 1}, 0, 4, DType::I64)}}}},
        {"scatter nd",
         Type::kSCATTER,
         {{op("ScatterND", {"x", "i", "u"}, {"y"})},
          {{"x", x}, {"u", numbers({1, 3, 4})}},
          {{"i", i64({1})}}}},
        {"one hot",
         Type::kONE_HOT,
         {{op("OneHot", {"x", "d", "v"}, {"y"}, {number("axis", 0)})},
          {{"x", i64({1, 0, 3})}},
          {{"d", scalar_i64(4)},
           {"v", Tensor::of<float>(DType::F32, {2}, std::vector<float>{-1, 2})}}}},
        {"non zero", Type::kNON_ZERO, simple("NonZero", x)},
        {"reverse", Type::kREVERSE_SEQUENCE,
         with("ReverseSequence", x, i64({2, 1, 2}),
              {number("batch_axis", 1), number("time_axis", 0)})},
        {"cache", Type::kKVCACHE_UPDATE,
         at(24, {{op("TensorScatter", {"x", "u", "i"}, {"y"})},
                 {{"x", numbers({2, 1, 5, 4})}, {"u", numbers({2, 1, 2, 4})}, {"i", i64({0, 3})}},
                 {}})},
        {"rotary",
         Type::kROTARY_EMBEDDING,
         {{op("RotaryEmbedding", {"x", "c", "s"}, {"y"}, {number("interleaved", 1)})},
          {{"x", numbers({2, 3, 5, 4})},
           {"c", numbers({2, 5, 2})},
           {"s", numbers({2, 5, 2}, 0, 1)}},
          {}}},
        {"quantize", Type::kQUANTIZE,
         with2("QuantizeLinear", x, positive({3}), Tensor::zeros(DType::I8, {3}))},
        {"quantize to bytes", Type::kQUANTIZE, with("QuantizeLinear", x, one(0.02))},
        {"dequantize", Type::kDEQUANTIZE, with("DequantizeLinear", q, one(0.5))},
        {"dequantize blocks", Type::kDEQUANTIZE,
         with("DequantizeLinear", q, positive({2, 3, 2}),
              {number("axis", 2), number("block_size", 2)})},
    };
}

Cases all_cases() {
    Cases out;
    for (const Cases& some : {window_cases(), pointwise_cases(), math_cases(), norm_cases(),
                              shape_cases(), index_cases()}) {
        out.insert(out.end(), some.begin(), some.end());
    }
    return out;
}

class ParsedLayersTest : public ParsedTest {
protected:
    void set_profile(const Made& m) {
        config.reset(builder->createBuilderConfig());
        if (!m.open) {
            return;
        }
        nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
        for (const auto& [name, t] : m.inputs) {
            nv::Dims d{static_cast<int32_t>(t.rank()), {}};
            std::copy(t.shape().begin(), t.shape().end(), d.d);
            for (auto s : {nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT,
                           nv::OptProfileSelector::kMAX}) {
                EXPECT_TRUE(profile->setDimensions(name.c_str(), s, d));
            }
        }
        config->addOptimizationProfile(profile);
    }
    /// Sets a setting of each layer that has one; how many did.
    int touch_all() {
        int done = 0;
        for (int32_t i = 0; i < network->getNbLayers(); ++i) {
            size_t errors = logger.errors.size();
            nv::ILayer& l = *network->getLayer(i);
            bool touched = touch_layer(l) && logger.errors.size() == errors;
            EXPECT_EQ(follows_node(l), !touched) << l.getName();
            done += touched ? 1 : 0;
        }
        return done;
    }
};

TEST_F(ParsedLayersTest, types_name_classes_and_getters_say_what_nodes_do) {
    static const std::set<Type> without_settings = {Type::kIDENTITY,  Type::kSELECT,
                                                    Type::kSHAPE,     Type::kSQUEEZE,
                                                    Type::kUNSQUEEZE, Type::kPARAMETRIC_RELU};
    for (const Case& c : all_cases()) {
        SCOPED_TRACE(c.name);
        ASSERT_TRUE(parse(c.model));
        set_profile(c.model);
        nv::ILayer& named = layer<nv::ILayer>(c.model.nodes[0].op_type.c_str());
        EXPECT_EQ(static_cast<int>(named.getType()), static_cast<int>(c.type));
        for (int32_t i = 0; i < network->getNbLayers(); ++i) {
            EXPECT_TRUE(read_layer(*network->getLayer(i))) << network->getLayer(i)->getName();
        }
        EXPECT_TRUE(logger.errors.empty()) << logger.errors.back();
        std::vector<Tensor> expected = run(c.model.values());
        ASSERT_TRUE(parse(c.model));
        logger.errors.clear();
        int touched = touch_all();
        EXPECT_TRUE(touched > 0 || without_settings.contains(c.type));
        logger.errors.clear(); // constants that have become settings refuse
        std::vector<Tensor> got = run(c.model.values());
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(got[i].type(), expected[i].type());
            expect_elements(got, i, expected[i].shape(),
                            [&](int64_t k) { return expected[i].get_f64(k); });
        }
        EXPECT_TRUE(logger.errors.empty()) << logger.errors.back();
    }
}

TEST_F(ParsedLayersTest, nodes_that_no_class_describes_claim_none) {
    Tensor x = numbers({2, 4, 6, 6});
    struct NoClass {
        const char* name;
        Made model;
    };
    std::vector<NoClass> cases = {
        {"indices",
         {{op("MaxPool", {"x"}, {"y", "y2"}, {ints("kernel_shape", {2, 2})})}, {{"x", x}}, {}}},
        {"dilated",
         simple("MaxPool", x, {ints("kernel_shape", {2, 2}), ints("dilations", {2, 2})})},
        {"statistics of the run",
         {{op("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y"})},
          {{"x", x}, {"s", positive({4})}},
          {}}},
        {"no mean", with("RMSNormalization", x, positive({6}))},
        {"logarithm", simple("LogSoftmax", x)},
        {"all axes from one on", at(11, simple("Softmax", x))},
        {"or equal", both("LessOrEqual", x, x)},
        {"remainder", both("Mod", x, positive({6}), {number("fmod", 1)})},
        {"three", {{op("Max", {"x", "x", "x"}, {"y"})}, {{"x", x}}, {}}},
        {"bound of the run", both("Clip", x, one(0))},
        {"scaled product", with("Gemm", numbers({2, 3}), numbers({3, 4}), {real("alpha", 0.5F)})},
        {"blocks", simple("DepthToSpace", x, {number("blocksize", 2)})},
        {"index alone", simple("ArgMax", x)},
        {"norm", simple("ReduceL2", x)},
        {"axes of the run", both("ReduceSum", x, i64({1}))},
        {"parts of the run",
         {{op("Split", {"x", "s"}, {"y", "y2"}, {number("axis", 1)})},
          {{"x", x}, {"s", i64({1, 3})}},
          {}}},
        {"sums",
         {{op("ScatterND", {"x", "i", "u"}, {"y"}, {word("reduction", "add")})},
          {{"x", x}, {"u", numbers({1, 4, 6, 6})}},
          {{"i", i64({1})}}}},
        {"part of a shape", simple("Shape", x, {number("start", 1)})},
        {"recurrent",
         {{op("LSTM", {"x", "w", "r"}, {"", "y"}, {number("hidden_size", 3)})},
          {{"x", numbers({4, 1, 2})}},
          {{"w", numbers({1, 12, 2})}, {"r", numbers({1, 12, 3})}}}},
        {"other coordinates",
         {{op("Resize", {"x", "", "", "s"}, {"y"},
              {word("coordinate_transformation_mode", "half_pixel_symmetric")})},
          {{"x", x}},
          {{"s", i64({2, 4, 3, 3})}}}},
    };
    for (const NoClass& c : cases) {
        SCOPED_TRACE(c.name);
        ASSERT_TRUE(parse(c.model));
        ASSERT_EQ(network->getNbLayers(), 1);
        nv::ILayer& l = *network->getLayer(0);
        EXPECT_EQ(static_cast<int>(l.getType()), static_cast<int>(Type::kPLUGIN));
        EXPECT_TRUE(read_layer(l));
        EXPECT_EQ(run(c.model.values()).size(), static_cast<size_t>(network->getNbOutputs()));
    }
    EXPECT_TRUE(logger.errors.empty()) << logger.errors.back();
}

} // namespace

} // namespace ingot::test
