// SPDX-License-Identifier: Apache-2.0
// Enumerations of layers.
#include "bind.h"

namespace ingot::python {

namespace {

void part_0(nb::module_& m) {
    nb::enum_<trt::LayerType>(m, "LayerType", nb::is_arithmetic(), "What a layer does.")
        .value("CONVOLUTION", trt::LayerType::kCONVOLUTION)
        .value("CAST", trt::LayerType::kCAST)
        .value("ACTIVATION", trt::LayerType::kACTIVATION)
        .value("POOLING", trt::LayerType::kPOOLING)
        .value("LRN", trt::LayerType::kLRN)
        .value("SCALE", trt::LayerType::kSCALE)
        .value("SOFTMAX", trt::LayerType::kSOFTMAX)
        .value("DECONVOLUTION", trt::LayerType::kDECONVOLUTION)
        .value("CONCATENATION", trt::LayerType::kCONCATENATION)
        .value("ELEMENTWISE", trt::LayerType::kELEMENTWISE)
        .value("PLUGIN", trt::LayerType::kPLUGIN)
        .value("UNARY", trt::LayerType::kUNARY)
        .value("PADDING", trt::LayerType::kPADDING)
        .value("SHUFFLE", trt::LayerType::kSHUFFLE)
        .value("REDUCE", trt::LayerType::kREDUCE)
        .value("TOPK", trt::LayerType::kTOPK)
        .value("GATHER", trt::LayerType::kGATHER)
        .value("MATRIX_MULTIPLY", trt::LayerType::kMATRIX_MULTIPLY)
        .value("RAGGED_SOFTMAX", trt::LayerType::kRAGGED_SOFTMAX)
        .value("CONSTANT", trt::LayerType::kCONSTANT)
        .value("IDENTITY", trt::LayerType::kIDENTITY)
        .value("PLUGIN_V2", trt::LayerType::kPLUGIN_V2)
        .value("SLICE", trt::LayerType::kSLICE)
        .value("SHAPE", trt::LayerType::kSHAPE)
        .value("PARAMETRIC_RELU", trt::LayerType::kPARAMETRIC_RELU)
        .value("RESIZE", trt::LayerType::kRESIZE)
        .value("TRIP_LIMIT", trt::LayerType::kTRIP_LIMIT)
        .value("RECURRENCE", trt::LayerType::kRECURRENCE)
        .value("ITERATOR", trt::LayerType::kITERATOR)
        .value("LOOP_OUTPUT", trt::LayerType::kLOOP_OUTPUT)
        .value("SELECT", trt::LayerType::kSELECT)
        .value("FILL", trt::LayerType::kFILL)
        .value("QUANTIZE", trt::LayerType::kQUANTIZE)
        .value("DEQUANTIZE", trt::LayerType::kDEQUANTIZE)
        .value("CONDITION", trt::LayerType::kCONDITION)
        .value("CONDITIONAL_INPUT", trt::LayerType::kCONDITIONAL_INPUT)
        .value("CONDITIONAL_OUTPUT", trt::LayerType::kCONDITIONAL_OUTPUT)
        .value("SCATTER", trt::LayerType::kSCATTER)
        .value("EINSUM", trt::LayerType::kEINSUM)
        .value("ASSERTION", trt::LayerType::kASSERTION)
        .value("ONE_HOT", trt::LayerType::kONE_HOT)
        .value("NON_ZERO", trt::LayerType::kNON_ZERO)
        .value("GRID_SAMPLE", trt::LayerType::kGRID_SAMPLE)
        .value("NMS", trt::LayerType::kNMS)
        .value("REVERSE_SEQUENCE", trt::LayerType::kREVERSE_SEQUENCE)
        .value("NORMALIZATION", trt::LayerType::kNORMALIZATION)
        .value("PLUGIN_V3", trt::LayerType::kPLUGIN_V3)
        .value("SQUEEZE", trt::LayerType::kSQUEEZE)
        .value("UNSQUEEZE", trt::LayerType::kUNSQUEEZE)
        .value("CUMULATIVE", trt::LayerType::kCUMULATIVE)
        .value("DYNAMIC_QUANTIZE", trt::LayerType::kDYNAMIC_QUANTIZE)
        .value("ATTENTION_INPUT", trt::LayerType::kATTENTION_INPUT)
        .value("ATTENTION_OUTPUT", trt::LayerType::kATTENTION_OUTPUT)
        .value("ROTARY_EMBEDDING", trt::LayerType::kROTARY_EMBEDDING)
        .value("KVCACHE_UPDATE", trt::LayerType::kKVCACHE_UPDATE)
        .value("MOE", trt::LayerType::kMOE)
        .value("DIST_COLLECTIVE", trt::LayerType::kDIST_COLLECTIVE);
}

void part_1(nb::module_& m) {
    nb::enum_<trt::ActivationType>(m, "ActivationType", nb::is_arithmetic(),
                                   "Functions of IActivationLayer; a is alpha, b is beta.")
        .value("RELU", trt::ActivationType::kRELU)
        .value("SIGMOID", trt::ActivationType::kSIGMOID)
        .value("TANH", trt::ActivationType::kTANH)
        .value("LEAKY_RELU", trt::ActivationType::kLEAKY_RELU, "x >= 0 ? x : a x")
        .value("ELU", trt::ActivationType::kELU, "x >= 0 ? x : a (exp(x) - 1)")
        .value("SELU", trt::ActivationType::kSELU, "b (x > 0 ? x : a exp(x) - a)")
        .value("SOFTSIGN", trt::ActivationType::kSOFTSIGN, "x / (1 + |x|)")
        .value("SOFTPLUS", trt::ActivationType::kSOFTPLUS, "a log(exp(b x) + 1)")
        .value("CLIP", trt::ActivationType::kCLIP, "max(a, min(b, x))")
        .value("HARD_SIGMOID", trt::ActivationType::kHARD_SIGMOID)
        .value("SCALED_TANH", trt::ActivationType::kSCALED_TANH, "a tanh(b x)")
        .value("THRESHOLDED_RELU", trt::ActivationType::kTHRESHOLDED_RELU, "x > a ? x : 0")
        .value("GELU_ERF", trt::ActivationType::kGELU_ERF, "x / 2 (1 + erf(x / sqrt(2)))")
        .value("GELU_TANH", trt::ActivationType::kGELU_TANH, "Its approximation with tanh");
    nb::enum_<trt::ElementWiseOperation>(
        m, "ElementWiseOperation", nb::is_arithmetic(),
        "Functions of IElementWiseLayer. Integers are divided towards zero; AND, OR and XOR take "
        "BOOL; EQUAL, GREATER and LESS give BOOL.")
        .value("SUM", trt::ElementWiseOperation::kSUM)
        .value("PROD", trt::ElementWiseOperation::kPROD)
        .value("MAX", trt::ElementWiseOperation::kMAX)
        .value("MIN", trt::ElementWiseOperation::kMIN)
        .value("SUB", trt::ElementWiseOperation::kSUB)
        .value("DIV", trt::ElementWiseOperation::kDIV, "Integers: towards zero")
        .value("POW", trt::ElementWiseOperation::kPOW)
        .value("FLOOR_DIV", trt::ElementWiseOperation::kFLOOR_DIV, "Towards minus infinity")
        .value("AND", trt::ElementWiseOperation::kAND, "kAND to kXOR take and give BOOL")
        .value("OR", trt::ElementWiseOperation::kOR)
        .value("XOR", trt::ElementWiseOperation::kXOR)
        .value("EQUAL", trt::ElementWiseOperation::kEQUAL, "kEQUAL to kLESS give BOOL")
        .value("GREATER", trt::ElementWiseOperation::kGREATER)
        .value("LESS", trt::ElementWiseOperation::kLESS);
}

void part_2(nb::module_& m) {
    nb::enum_<trt::UnaryOperation>(m, "UnaryOperation", nb::is_arithmetic(),
                                   "Functions of IUnaryLayer. ROUND takes halves to even; NOT "
                                   "takes BOOL; ISINF and ISNAN give BOOL.")
        .value("EXP", trt::UnaryOperation::kEXP)
        .value("LOG", trt::UnaryOperation::kLOG)
        .value("SQRT", trt::UnaryOperation::kSQRT)
        .value("RECIP", trt::UnaryOperation::kRECIP)
        .value("ABS", trt::UnaryOperation::kABS)
        .value("NEG", trt::UnaryOperation::kNEG)
        .value("SIN", trt::UnaryOperation::kSIN)
        .value("COS", trt::UnaryOperation::kCOS)
        .value("TAN", trt::UnaryOperation::kTAN)
        .value("SINH", trt::UnaryOperation::kSINH)
        .value("COSH", trt::UnaryOperation::kCOSH)
        .value("ASIN", trt::UnaryOperation::kASIN)
        .value("ACOS", trt::UnaryOperation::kACOS)
        .value("ATAN", trt::UnaryOperation::kATAN)
        .value("ASINH", trt::UnaryOperation::kASINH)
        .value("ACOSH", trt::UnaryOperation::kACOSH)
        .value("ATANH", trt::UnaryOperation::kATANH)
        .value("CEIL", trt::UnaryOperation::kCEIL)
        .value("FLOOR", trt::UnaryOperation::kFLOOR)
        .value("ERF", trt::UnaryOperation::kERF)
        .value("NOT", trt::UnaryOperation::kNOT, "Of BOOL")
        .value("SIGN", trt::UnaryOperation::kSIGN)
        .value("ROUND", trt::UnaryOperation::kROUND, "Halves to even")
        .value("ISINF", trt::UnaryOperation::kISINF, "Gives BOOL")
        .value("ISNAN", trt::UnaryOperation::kISNAN, "Gives BOOL");
    nb::enum_<trt::ReduceOperation>(m, "ReduceOperation", nb::is_arithmetic(),
                                    "Functions of IReduceLayer; NONE is for IDistCollectiveLayer.")
        .value("SUM", trt::ReduceOperation::kSUM)
        .value("PROD", trt::ReduceOperation::kPROD)
        .value("MAX", trt::ReduceOperation::kMAX)
        .value("MIN", trt::ReduceOperation::kMIN)
        .value("AVG", trt::ReduceOperation::kAVG)
        .value("NONE", trt::ReduceOperation::kNONE, "For IDistCollectiveLayer only");
    nb::enum_<trt::TopKOperation>(m, "TopKOperation", nb::is_arithmetic(),
                                  "Which elements ITopKLayer takes.")
        .value("MAX", trt::TopKOperation::kMAX)
        .value("MIN", trt::TopKOperation::kMIN);
    nb::enum_<trt::MatrixOperation>(m, "MatrixOperation", nb::is_arithmetic(),
                                    "How an input of IMatrixMultiplyLayer is read.")
        .value("NONE", trt::MatrixOperation::kNONE)
        .value("TRANSPOSE", trt::MatrixOperation::kTRANSPOSE)
        .value("VECTOR", trt::MatrixOperation::kVECTOR,
               "The last dimension is a vector; it has no second one");
    nb::enum_<trt::CumulativeOperation>(m, "CumulativeOperation", nb::is_arithmetic(),
                                        "Functions of ICumulativeLayer.")
        .value("SUM", trt::CumulativeOperation::kSUM);
    nb::enum_<trt::PaddingMode>(
        m, "PaddingMode", nb::is_arithmetic(),
        "How output sizes of windows are rounded, and who chooses the padding.")
        .value("EXPLICIT_ROUND_DOWN", trt::PaddingMode::kEXPLICIT_ROUND_DOWN,
               "floor((in + pre + post - window) / stride) + 1")
        .value("EXPLICIT_ROUND_UP", trt::PaddingMode::kEXPLICIT_ROUND_UP, "The same with ceil")
        .value("SAME_UPPER", trt::PaddingMode::kSAME_UPPER,
               "ceil(in / stride); the odd one is padded after")
        .value("SAME_LOWER", trt::PaddingMode::kSAME_LOWER,
               "ceil(in / stride); the odd one is padded before");
}

void part_3(nb::module_& m) {
    nb::enum_<trt::PoolingType>(m, "PoolingType", nb::is_arithmetic(),
                                "Functions of IPoolingLayer.")
        .value("MAX", trt::PoolingType::kMAX)
        .value("AVERAGE", trt::PoolingType::kAVERAGE)
        .value("MAX_AVERAGE_BLEND", trt::PoolingType::kMAX_AVERAGE_BLEND,
               "(1 - blend) * max + blend * average");
    nb::enum_<trt::ScaleMode>(m, "ScaleMode", nb::is_arithmetic(),
                              "How many numbers the weights of IScaleLayer have.")
        .value("UNIFORM", trt::ScaleMode::kUNIFORM, "One number")
        .value("CHANNEL", trt::ScaleMode::kCHANNEL, "One per channel")
        .value("ELEMENTWISE", trt::ScaleMode::kELEMENTWISE,
               "One per element of the channel axis and what follows it");
    nb::enum_<trt::InterpolationMode>(m, "InterpolationMode", nb::is_arithmetic(),
                                      "How values between elements are found.")
        .value("NEAREST", trt::InterpolationMode::kNEAREST)
        .value("LINEAR", trt::InterpolationMode::kLINEAR)
        .value("CUBIC", trt::InterpolationMode::kCUBIC);
    nb::enum_<trt::ResizeCoordinateTransformation>(
        m, "ResizeCoordinateTransformation", nb::is_arithmetic(),
        "Which place of the input an index of the output stands for.")
        .value("ALIGN_CORNERS", trt::ResizeCoordinateTransformation::kALIGN_CORNERS,
               "x * (in - 1) / (out - 1)")
        .value("ASYMMETRIC", trt::ResizeCoordinateTransformation::kASYMMETRIC, "x * in / out")
        .value("HALF_PIXEL", trt::ResizeCoordinateTransformation::kHALF_PIXEL,
               "(x + 0.5) * in / out - 0.5");
    nb::enum_<trt::ResizeSelector>(m, "ResizeSelector", nb::is_arithmetic(),
                                   "What is taken when an output dimension has size 1.")
        .value("FORMULA", trt::ResizeSelector::kFORMULA, "The coordinate transformation")
        .value("UPPER", trt::ResizeSelector::kUPPER, "Index 0");
    nb::enum_<trt::ResizeRoundMode>(m, "ResizeRoundMode", nb::is_arithmetic(),
                                    "How the nearest neighbour is rounded.")
        .value("HALF_UP", trt::ResizeRoundMode::kHALF_UP)
        .value("HALF_DOWN", trt::ResizeRoundMode::kHALF_DOWN)
        .value("FLOOR", trt::ResizeRoundMode::kFLOOR)
        .value("CEIL", trt::ResizeRoundMode::kCEIL);
    nb::enum_<trt::SampleMode>(m, "SampleMode", nb::is_arithmetic(),
                               "What is read at places outside a tensor.")
        .value("STRICT_BOUNDS", trt::SampleMode::kSTRICT_BOUNDS, "An error")
        .value("WRAP", trt::SampleMode::kWRAP)
        .value("CLAMP", trt::SampleMode::kCLAMP)
        .value("FILL", trt::SampleMode::kFILL, "Zero, or the fill input")
        .value("REFLECT", trt::SampleMode::kREFLECT);
    nb::enum_<trt::GatherMode>(m, "GatherMode", nb::is_arithmetic(),
                               "What the indices of IGatherLayer name.")
        .value("DEFAULT", trt::GatherMode::kDEFAULT, "ONNX Gather")
        .value("ELEMENT", trt::GatherMode::kELEMENT, "ONNX GatherElements")
        .value("ND", trt::GatherMode::kND, "ONNX GatherND");
    nb::enum_<trt::ScatterMode>(m, "ScatterMode", nb::is_arithmetic(),
                                "What the indices of IScatterLayer name.")
        .value("ELEMENT", trt::ScatterMode::kELEMENT, "ONNX ScatterElements")
        .value("ND", trt::ScatterMode::kND, "ONNX ScatterND");
    nb::enum_<trt::FillOperation>(m, "FillOperation", nb::is_arithmetic(), "What IFillLayer makes.")
        .value("LINSPACE", trt::FillOperation::kLINSPACE,
               "alpha + beta * index (beta per dimension)")
        .value("RANDOM_UNIFORM", trt::FillOperation::kRANDOM_UNIFORM, "From alpha to beta")
        .value("RANDOM_NORMAL", trt::FillOperation::kRANDOM_NORMAL,
               "Mean alpha, standard deviation beta");
    nb::enum_<trt::BoundingBoxFormat>(m, "BoundingBoxFormat", nb::is_arithmetic(),
                                      "What the four numbers of a box are.")
        .value("CORNER_PAIRS", trt::BoundingBoxFormat::kCORNER_PAIRS, "x1, y1, x2, y2")
        .value("CENTER_SIZES", trt::BoundingBoxFormat::kCENTER_SIZES,
               "x, y of the centre, width, height");
    nb::enum_<trt::LoopOutput>(m, "LoopOutput", nb::is_arithmetic(),
                               "Which values of iterations ILoopOutputLayer gives.")
        .value("LAST_VALUE", trt::LoopOutput::kLAST_VALUE)
        .value("CONCATENATE", trt::LoopOutput::kCONCATENATE, "Of all iterations along a new axis")
        .value("REVERSE", trt::LoopOutput::kREVERSE, "The same, last one first");
}

void part_4(nb::module_& m) {
    nb::enum_<trt::TripLimit>(m, "TripLimit", nb::is_arithmetic(), "What ends a loop.")
        .value("COUNT", trt::TripLimit::kCOUNT,
               "A scalar INT32 or INT64 from outside: how many iterations")
        .value("WHILE", trt::TripLimit::kWHILE,
               "A scalar BOOL from inside: whether to run the iteration");
    nb::enum_<trt::AttentionNormalizationOp>(m, "AttentionNormalizationOp", nb::is_arithmetic(),
                                             "How scores of IAttention become weights.")
        .value("NONE", trt::AttentionNormalizationOp::kNONE)
        .value("SOFTMAX", trt::AttentionNormalizationOp::kSOFTMAX);
    nb::enum_<trt::CausalMaskKind>(m, "CausalMaskKind", nb::is_arithmetic(),
                                   "Which keys j a query i may see, of T keys and S queries.")
        .value("NONE", trt::CausalMaskKind::kNONE, "All")
        .value("UPPER_LEFT", trt::CausalMaskKind::kUPPER_LEFT, "j <= i")
        .value("LOWER_RIGHT", trt::CausalMaskKind::kLOWER_RIGHT, "j <= i + T - S");
    nb::enum_<trt::AttentionIOForm>(m, "AttentionIOForm", nb::is_arithmetic(),
                                    "How sequences lie in tensors of attention.")
        .value("PADDED_BHND", trt::AttentionIOForm::kPADDED_BHND, "B H S D")
        .value("PACKED_NHD", trt::AttentionIOForm::kPACKED_NHD,
               "The tokens of all sequences one after another, H, D");
    nb::enum_<trt::KVCacheMode>(m, "KVCacheMode", nb::is_arithmetic(),
                                "How IKVCacheUpdateLayer places tokens.")
        .value("LINEAR", trt::KVCacheMode::kLINEAR);
    nb::enum_<trt::MoEActType>(m, "MoEActType", nb::is_arithmetic(),
                               "Activation of the gate of IMoELayer.")
        .value("NONE", trt::MoEActType::kNONE)
        .value("SILU", trt::MoEActType::kSILU);
    nb::enum_<trt::CollectiveOperation>(m, "CollectiveOperation", nb::is_arithmetic(),
                                        "What IDistCollectiveLayer does.")
        .value("ALL_REDUCE", trt::CollectiveOperation::kALL_REDUCE)
        .value("ALL_GATHER", trt::CollectiveOperation::kALL_GATHER)
        .value("BROADCAST", trt::CollectiveOperation::kBROADCAST)
        .value("REDUCE", trt::CollectiveOperation::kREDUCE)
        .value("REDUCE_SCATTER", trt::CollectiveOperation::kREDUCE_SCATTER)
        .value("ALL_TO_ALL", trt::CollectiveOperation::kALL_TO_ALL)
        .value("GATHER", trt::CollectiveOperation::kGATHER)
        .value("SCATTER", trt::CollectiveOperation::kSCATTER);
}

} // namespace

void bind_layer_enums(nb::module_& m) {
    part_0(m);
    part_1(m);
    part_2(m);
    part_3(m);
    part_4(m);
}

} // namespace ingot::python
