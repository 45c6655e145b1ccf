// SPDX-License-Identifier: Apache-2.0
// TuningJob: one problem with the tactics worth timing, as launches over buffers of their own. It
// refers to nothing of the plan or graph that it came from.
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
    bool constant = false; // read, and the same in every run
};

struct TuningJob {
    struct Candidate {
        std::string tactic;
        double cost_us; // by the model
        kernels::Emitted emitted;
    };
    std::string problem; // its key in the timing cache
    std::string layer;   // that has it
    std::string_view family;
    std::string what;                    // names it in messages
    double cost_us = 0;                  // of the model's choice, by the model
    std::vector<Candidate> candidates;   // the model's choice first
    std::map<int, TuningBuffer> buffers; // by Operand::buffer
};

/// The tactics that the model puts near its best one, that one first; at most `most`.
std::vector<kernels::Tactic> candidates_of(const std::vector<kernels::Tactic>& tactics,
                                           size_t most = 6);
/// What decides how long a problem takes, as one line: family, ops with attributes, and dtype,
/// shape, strides and alignment of each operand.
std::string problem_text(const kernels::Family& family, const kernels::Problem& p);
/// Emits the candidates. Errors: what the family throws.
TuningJob make_job(const kernels::Family& family, const kernels::Problem& p,
                   const std::vector<kernels::Tactic>& candidates, std::string problem,
                   std::string layer);
/// A layer of a family, as messages name it.
std::string layer_text(std::string_view layer, std::string_view family);

} // namespace ingot::cuda
