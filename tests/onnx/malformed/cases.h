// SPDX-License-Identifier: Apache-2.0
// Malformed models, each with the exact error it must give. One function per group; all() joins
// them.
#pragma once

#include <string>
#include <vector>

namespace ingot::onnx::test {

struct MalformedCase {
    const char* name; // CamelCase: part of the test's name
    std::string bytes;
    std::string error;
};

std::vector<MalformedCase> malformed_wire();
std::vector<MalformedCase> malformed_model();
std::vector<MalformedCase> malformed_graph();
std::vector<MalformedCase> malformed_tensor();
std::vector<MalformedCase> malformed_sparse();
std::vector<MalformedCase> malformed_external();

inline std::vector<MalformedCase> all_malformed() {
    std::vector<MalformedCase> all;
    for (const auto& group : {malformed_wire(), malformed_model(), malformed_graph(),
                              malformed_tensor(), malformed_sparse(), malformed_external()}) {
        all.insert(all.end(), group.begin(), group.end());
    }
    return all;
}

} // namespace ingot::onnx::test
