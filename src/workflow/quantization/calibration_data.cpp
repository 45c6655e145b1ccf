// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/calibration_data.h"

#include "base/error.h"
#include "workflow/inputs/npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace ingot {

namespace {

namespace fs = std::filesystem;

bool is_sample(const fs::path& p) {
    return p.extension() == ".npy" || is_image_path(p.string());
}

std::vector<std::string> sample_files(const std::string& folder) {
    std::error_code problem;
    std::vector<std::string> out;
    for (const auto& f : fs::directory_iterator(folder, problem)) {
        if (is_sample(f.path()) && f.is_regular_file(problem)) {
            out.push_back(f.path().string());
        }
    }
    require(!problem, ErrorCode::Io, folder, ": cannot list the folder: ", problem.message());
    std::sort(out.begin(), out.end());
    return out;
}

const Shape* find_shape(const CalibrationDataOptions& o, const std::string& name) {
    for (const auto& [input, shape] : o.shapes) {
        if (input == name) {
            return &shape;
        }
    }
    return nullptr;
}

/// The batch size that an input fixes; 1 when it is free.
int64_t fixed_batch(const Type& t) {
    return t.rank() > 0 && t.dims[0].is_const() ? t.dims[0].value() : 1;
}

} // namespace

CalibrationData::CalibrationData(const Graph& graph, const CalibrationDataOptions& options)
    : options_(options) {
    std::vector<std::string> names;
    for (Value v : graph.inputs()) {
        names.push_back(graph.value_name(v));
    }
    for (const auto& given : options.shapes) {
        require(std::find(names.begin(), names.end(), given.first) != names.end(),
                ErrorCode::InvalidArgument, "there is no input '", given.first,
                "'; inputs: ", join(names, ", "));
    }
    require(fs::is_directory(options.folder), ErrorCode::Io, options.folder,
            ": expected a folder of samples (.npy, .png, .jpg), there is none");
    for (Value v : graph.inputs()) {
        std::string folder = options.folder;
        if (graph.inputs().size() > 1) {
            folder += "/" + graph.value_name(v);
            require(fs::is_directory(folder), ErrorCode::Io, folder, ": the model has inputs ",
                    join(names, ", "),
                    ": expected a folder of samples for each, with the input's name");
        }
        inputs_.push_back({graph.value_name(v), graph.type(v), sample_files(folder)});
        const Input& in = inputs_.back();
        require(!in.files.empty(), ErrorCode::InvalidArgument, folder,
                ": no .npy, .png or .jpg file for input '", in.name, "'");
        require(in.files.size() == inputs_[0].files.size(), ErrorCode::InvalidArgument, folder,
                " has ", in.files.size(), " samples, ", inputs_[0].name, " has ",
                inputs_[0].files.size(), ": expected the same number for each input");
    }
    require(!inputs_.empty(), ErrorCode::InvalidArgument, "the model has no inputs to calibrate");
    // An array that already is a whole batch is used unchanged.
    Tensor first = sample(inputs_[0], inputs_[0].files[0]);
    batch_size_ = std::max<int64_t>(fixed_batch(inputs_[0].type), 1);
    batch_size_ = first.rank() > 0 && first.shape()[0] == batch_size_ ? 1 : batch_size_;
    auto files = static_cast<int64_t>(inputs_[0].files.size());
    batches_ = (files + batch_size_ - 1) / batch_size_;
}

Shape CalibrationData::picture_shape(const Input& in, const std::string& file) const {
    const Shape* given = find_shape(options_, in.name);
    if (given != nullptr) {
        Shape shape = *given;
        if (!shape.empty()) {
            shape[0] = shape.size() == 4 ? 1 : shape[0];
        }
        return shape;
    }
    Shape shape;
    for (size_t i = 0; i < in.type.dims.size(); ++i) {
        const Dim& d = in.type.dims[i];
        bool batch = i == 0 && in.type.rank() == 4;
        require(batch || d.is_const(), ErrorCode::InvalidArgument, file, ": input '", in.name, "' ",
                in.type, " does not fix the size of pictures: give --shapes ", in.name,
                ":1x3x224x224 or the like");
        shape.push_back(batch ? 1 : d.value());
    }
    return shape;
}

/// The sample with a leading batch axis.
Tensor CalibrationData::sample(const Input& in, const std::string& file) const {
    if (is_image_path(file)) {
        return read_image(file, in.type.dtype, picture_shape(in, file), options_.image);
    }
    Tensor t = read_npy(file);
    require(t.dtype() == in.type.dtype, ErrorCode::InvalidArgument, file, " holds ", t.dtype(),
            ", input '", in.name, "' is ", in.type.dtype,
            "; convert it, for example np.save(path, x.astype(...))");
    if (t.rank() + 1 == in.type.rank()) {
        Shape shape = t.shape();
        shape.insert(shape.begin(), 1);
        t = t.reshaped(shape);
    }
    bool fits = t.rank() == in.type.rank();
    for (size_t i = 1; fits && i < t.shape().size(); ++i) {
        const Dim& d = in.type.dims[i];
        fits = !d.is_const() || d.value() == t.shape()[i];
    }
    require(fits, ErrorCode::InvalidArgument, file, " has shape ", t.shape(), ", input '", in.name,
            "' is ", in.type, ": expected that shape, or that of one sample");
    return t;
}

Tensor CalibrationData::stacked(const Input& in, int64_t first) const {
    auto files = static_cast<int64_t>(in.files.size());
    Tensor out;
    std::span<std::byte> to;
    for (int64_t i = 0; i < batch_size_; ++i) {
        const std::string& file = in.files[static_cast<size_t>((first + i) % files)];
        Tensor t = sample(in, file);
        Shape shape = t.shape();
        require(!shape.empty() && shape[0] == 1, ErrorCode::InvalidArgument, file, " has shape ",
                shape, ": expected one sample, since batches of ", batch_size_,
                " are made from the files");
        shape[0] = batch_size_;
        if (i == 0) {
            out = Tensor::empty(t.dtype(), shape);
            to = out.mutable_bytes();
        }
        require(shape == out.shape(), ErrorCode::InvalidArgument, file, " has shape ", t.shape(),
                ", those before it ", out.shape(), " as a batch: expected equal sizes");
        std::copy(t.bytes().begin(), t.bytes().end(),
                  to.begin() + i * static_cast<std::ptrdiff_t>(t.bytes().size()));
    }
    return out;
}

std::vector<Tensor> CalibrationData::batch(int64_t i) const {
    std::vector<Tensor> out;
    for (const Input& in : inputs_) {
        int64_t first = i * batch_size_;
        out.push_back(batch_size_ == 1 ? sample(in, in.files[static_cast<size_t>(first)])
                                       : stacked(in, first));
    }
    return out;
}

} // namespace ingot
