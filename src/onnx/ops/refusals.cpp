// SPDX-License-Identifier: Apache-2.0
// Unsupported operators, each with the reason. Operators on optional values work on a tensor or on
// an absent value.
#include "onnx/importer.h"

namespace ingot::onnx {

namespace {

Values sequence(NodeContext& c) {
    c.refuse(RefusalKind::Operator,
             "sequences are not supported; a model with a fixed number of tensors needs none");
}

Values optional(NodeContext& c) {
    c.refuse(RefusalKind::Operator, "optional values are not supported");
}

Values has_element(NodeContext& c) {
    return {ops::scalar_i64(c.g, DType::Bool, c.has(0) ? 1 : 0)};
}

Values get_element(NodeContext& c) {
    return {c.in(0)};
}

Values string(NodeContext& c) {
    c.refuse(RefusalKind::DataType, "string tensors are not supported");
}

Values image(NodeContext& c) {
    c.refuse(RefusalKind::Operator,
             "decoding images is not part of a model here; pass the decoded picture as input");
}

Values training(NodeContext& c) {
    c.refuse(RefusalKind::Operator,
             "operators of training are not supported; export the model for inference");
}

Values generation(NodeContext& c) {
    c.refuse(
        RefusalKind::Operator,
        "searches for text are loops around a decoder that a program runs; export the decoder "
        "by itself and run the loop outside (onnxruntime-genai does), or run this node in ONNX "
        "Runtime's CPU provider");
}

Values sparse(NodeContext& c) {
    c.refuse(RefusalKind::DataType,
             "sparse tensors are not supported; make input 0 dense and use MatMul");
}

constexpr ImporterRow refused(std::string_view domain, std::string_view type, int since,
                              ImportFunction reason) {
    return {domain, type, since, reason, no_shapes, newest_opset, true};
}

const ImporterRow rows[] = {
    refused("", "ConcatFromSequence", 1, sequence),
    refused("", "SequenceAt", 1, sequence),
    refused("", "SequenceConstruct", 1, sequence),
    refused("", "SequenceEmpty", 1, sequence),
    refused("", "SequenceErase", 1, sequence),
    refused("", "SequenceInsert", 1, sequence),
    refused("", "SequenceLength", 1, sequence),
    refused("", "SequenceMap", 1, sequence),
    refused("", "SplitToSequence", 1, sequence),
    refused("", "Optional", 15, optional),
    {"", "OptionalGetElement", 15, get_element, no_shapes},
    {"", "OptionalHasElement", 15, has_element, no_shapes},
    refused("", "RegexFullMatch", 1, string),
    refused("", "StringConcat", 1, string),
    refused("", "StringNormalizer", 1, string),
    refused("", "StringSplit", 1, string),
    refused("", "ImageDecoder", 1, image),
    refused("com.microsoft", "Tokenizer", 1, string),
    refused("com.microsoft", "SparseToDenseMatMul", 1, sparse),
    refused("com.microsoft", "BeamSearch", 1, generation),
    refused("com.microsoft", "GreedySearch", 1, generation),
    refused("com.microsoft", "Sampling", 1, generation),
    refused("com.microsoft", "WhisperBeamSearch", 1, generation),
    refused("ai.onnx.preview.training", "Adagrad", 1, training),
    refused("ai.onnx.preview.training", "Adam", 1, training),
    refused("ai.onnx.preview.training", "Gradient", 1, training),
    refused("ai.onnx.preview.training", "Momentum", 1, training),
};

} // namespace

extern const ImporterTable refusals_importers;
const ImporterTable refusals_importers = rows;

} // namespace ingot::onnx
