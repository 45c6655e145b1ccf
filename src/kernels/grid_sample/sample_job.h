// SPDX-License-Identifier: Apache-2.0
// A group of the family grid_sample: its nodes, and how its operands lie.
#pragma once

#include "kernels/family.h"
#include "ops/grid_sample.h"

namespace ingot::kernels {

constexpr int channel_axis = 1;

/// The nodes of a group: samples, and for a sum also their concatenation where there are more than
/// one, the product with weights, and the reduction. A map may follow.
struct Parts {
    std::vector<const Node*> samples;
    const Node* product = nullptr;
    const Node* sum = nullptr;
    const Node* map = nullptr;

    bool is_sum() const { return sum != nullptr; }
    Value made() const { return is_sum() ? sum->outputs[0] : samples[0]->outputs[0]; }
    Value weights() const { return product->inputs[product->inputs[0] == joined ? 1 : 0]; }
    Value joined;
};

/// The parts of a group that has this form.
std::optional<Parts> parts_of(const Group& group);
std::optional<std::string> refuse_samples(const Group& group);

/// An operand of the map, as the result is indexed.
struct Reading {
    const Operand* operand = nullptr; // null: the sample
    View view;
    int64_t stride = 0;  // between channels
    bool packed = false; // read in vectors
};

/// An image, and its positions of a result: those of a sum from `first` on.
struct Image {
    const Operand* x = nullptr;
    const Operand* grid = nullptr;
    int64_t first = 0;
    int64_t positions = 1;
};

struct SampleJob {
    Parts parts;
    ops::GridSample attrs;
    std::vector<Image> images;
    View weights;                  // of a sum, as the samples are indexed
    std::vector<Reading> readings; // of the map's inputs
    DType from = DType::F32;       // of the images
    DType to = DType::F32;
    bool wide = false;
    int vector = 1;
    int64_t vectors = 1; // of channels

    size_t axes() const { return images[0].x->view.shape.size() - 2; }
    int64_t positions() const { return images.back().first + images.back().positions; }
    int taps() const { return attrs.mode == "nearest" ? 1 : attrs.mode == "linear" ? 2 : 4; }
    int reads() const { // of an element of a sample
        int n = 1;
        for (size_t i = 0; i < axes(); ++i) {
            n *= taps();
        }
        return n;
    }
};

SampleJob sample_job(const Problem& p);

} // namespace ingot::kernels
