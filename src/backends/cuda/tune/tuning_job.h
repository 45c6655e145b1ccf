// SPDX-License-Identifier: Apache-2.0
// TuningJob: one problem with the tactics worth timing, as launches over its own buffers. It refers
// to no part of its plan or graph.
#pragma once

#include "kernels/family.h"

#include <map>
#include <string>
#include <vector>

namespace ingot::cuda {

struct TuningBuffer {
    int64_t bytes = 0;
    DType dtype = DType::F32;
    bool read = false;
    bool constant = false; // read, with equal contents in every run
};

struct TuningJob {
    struct Candidate {
        std::string tactic;
        double cost_us; // by the model
        kernels::Emitted emitted;
    };
    std::string problem; // its key in the timing cache
    std::string layer;   // the layer of the problem
    std::string_view family;
    std::string what;                    // its name in messages
    double cost_us = 0;                  // of the model's choice, by the model
    std::vector<Candidate> candidates;   // the model's choice first
    std::map<int, TuningBuffer> buffers; // by Operand::buffer
};

/// The tactics with costs near the model's best, which is first; at most `most`.
std::vector<kernels::Tactic> candidates_of(const std::vector<kernels::Tactic>& tactics,
                                           size_t most = 6);
/// Everything that determines a problem's time, as one line: family, ops with attributes, and
/// dtype, shape, strides and alignment of each operand.
std::string problem_text(const kernels::Family& family, const kernels::Problem& p);
/// Its parts: the nodes, equal for all shapes, and the operands.
std::string group_text(const kernels::Family& family, const kernels::Group& group);
void add_operands(std::string& text, const kernels::Problem& p);
/// Emits the candidates. Errors: those of the family.
TuningJob make_job(const kernels::Family& family, const kernels::Problem& p,
                   const std::vector<kernels::Tactic>& candidates, std::string problem,
                   std::string layer);
/// A family's layer in messages.
std::string layer_text(std::string_view layer, std::string_view family);

} // namespace ingot::cuda
