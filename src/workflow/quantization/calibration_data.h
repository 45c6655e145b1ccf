// SPDX-License-Identifier: Apache-2.0
// Sample inputs in a folder, as batches for calibration.
#pragma once

#include "ir/graph.h"
#include "workflow/inputs/image.h"

#include <optional>

namespace ingot {

struct CalibrationDataOptions {
    std::string folder;
    /// Sizes of image inputs that the model does not fix.
    std::vector<std::pair<std::string, Shape>> shapes;
    ImageOptions image;
};

/// A folder of .npy, .png and .jpg files or, for several inputs, of one such folder per input with
/// the input's name. A file holds one sample, or as .npy a whole batch; files of different inputs
/// are matched by their position in name order. If the model fixes a batch size above 1, that many
/// samples make a batch; the last batch is filled up from the beginning.
class CalibrationData {
public:
    /// Errors: Io; InvalidArgument naming folder, got and expected.
    CalibrationData(const Graph& graph, const CalibrationDataOptions& options);
    int64_t batches() const { return batches_; }
    /// The inputs of batch i, in graph order. Errors: as above, naming the file.
    std::vector<Tensor> batch(int64_t i) const;

private:
    struct Input {
        std::string name;
        Type type;
        std::vector<std::string> files;
    };
    Tensor sample(const Input& in, const std::string& file) const;
    Shape picture_shape(const Input& in, const std::string& file) const;
    Tensor stacked(const Input& in, int64_t first) const;

    CalibrationDataOptions options_;
    std::vector<Input> inputs_;
    int64_t batch_size_ = 1;
    int64_t batches_ = 0;
};

} // namespace ingot
