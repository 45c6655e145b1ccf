// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of reader and writer: folders, files, and comparing whole models.
#pragma once

#include "base/error.h"
#include "error_of.h"
#include "onnx/model.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot::onnx::test {

/// A fresh folder, removed with all it holds.
class TempFolder {
public:
    TempFolder();
    ~TempFolder();
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    const std::string& path() const { return path_; }
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
    std::string path_;
};

/// The folder of shared models, from INGOT_SHARED or beside the source root; "" when there is none.
std::string shared_folder();
/// Paths of *.onnx in a folder and below, sorted; none when there is no such folder.
std::vector<std::string> onnx_files(const std::string& folder);

/// "" when equal, else the path to the first difference. `folder` and `owner` do not count; of
/// tensors the content counts, not its location.
std::string difference(const Model& a, const Model& b);

using ingot::test::error_of;

} // namespace ingot::onnx::test
