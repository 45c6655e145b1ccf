// SPDX-License-Identifier: Apache-2.0
// Sample inputs in a folder, as batches for calibration.
#pragma once

#include "ir/graph.h"
#include "workflow/inputs/image.h"

#include <optional>

namespace ingot {

struct CalibrationDataOptions {
    std::string folder;
    /// Sizes of inputs whose pictures the model does not fix.
    std::vector<std::pair<std::string, Shape>> shapes;
    ImageOptions image;
};

/// A folder of .npy, .png and .jpg files, or where there are several inputs, of one such folder for
/// each, named like it. A file holds one sample, or as .npy a whole batch; files go together by
/// their place in the order of names. Where the model fixes the size of a batch above 1, so many
/// samples make one; the last is filled up from the beginning.
class CalibrationData {
public:
    /// Errors: Io; InvalidArgument naming folder, got and expected.
    CalibrationData(const Graph& graph, const CalibrationDataOptions& options);
    int64_t batches() const { return batches_; }
    /// The inputs of batch i, in the order of the graph. Errors: as above, by file.
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
