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

const ImporterRow rows[] = {
    {"", "ConcatFromSequence", 1, sequence},
    {"", "SequenceAt", 1, sequence},
    {"", "SequenceConstruct", 1, sequence},
    {"", "SequenceEmpty", 1, sequence},
    {"", "SequenceErase", 1, sequence},
    {"", "SequenceInsert", 1, sequence},
    {"", "SequenceLength", 1, sequence},
    {"", "SequenceMap", 1, sequence},
    {"", "SplitToSequence", 1, sequence},
    {"", "Optional", 15, optional},
    {"", "OptionalGetElement", 15, get_element},
    {"", "OptionalHasElement", 15, has_element},
    {"", "RegexFullMatch", 1, string},
    {"", "StringConcat", 1, string},
    {"", "StringNormalizer", 1, string},
    {"", "StringSplit", 1, string},
    {"", "ImageDecoder", 1, image},
    {"ai.onnx.preview.training", "Adagrad", 1, training},
    {"ai.onnx.preview.training", "Adam", 1, training},
    {"ai.onnx.preview.training", "Gradient", 1, training},
    {"ai.onnx.preview.training", "Momentum", 1, training},
};

} // namespace

extern const ImporterTable refusals_importers;
const ImporterTable refusals_importers = rows;

} // namespace ingot::onnx
