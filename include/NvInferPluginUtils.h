// SPDX-License-Identifier: Apache-2.0
// Parameters of plugins that other products bring along. Ingot has no such plugins: programs that
// pass these structures to plugins of their own compile.
#pragma once

#include "NvInferRuntime.h"

namespace nvinfer1 {
namespace plugin {

/// Prior boxes of a detector: pointers are the caller's, sizes in pixels.
struct PriorBoxParameters {
    float* minSize;
    float* maxSize;      ///< May be nullptr
    float* aspectRatios; ///< May be nullptr
    int32_t numMinSize;  ///< At least 1
    int32_t numMaxSize;  ///< 0, or numMinSize
    int32_t numAspectRatios;
    bool flip; ///< For each ratio r, also 1 / r
    bool clip; ///< To [0, 1]
    float variance[4];
    int32_t imgH; ///< 0: height of the image tensor
    int32_t imgW; ///< 0: its width
    float stepH;  ///< 0: imgH divided by the feature map's height
    float stepW;
    float offset; ///< Position of a box's centre in its cell
};

/// Region proposals and pooling of regions of interest.
struct RPROIParams {
    int32_t poolingH;
    int32_t poolingW;
    int32_t featureStride; ///< Pixels of the image for one of the feature map
    int32_t preNmsTop;     ///< Proposals kept before non-maximum suppression
    int32_t nmsMaxOut;     ///< Proposals kept after it
    int32_t anchorsRatioCount;
    int32_t anchorsScaleCount;
    float iouThreshold;
    float minBoxSize;
    float spatialScale; ///< Scale from the feature map to the image
};

/// Anchors on a grid of H x W cells.
struct GridAnchorParameters {
    float minSize; ///< Scale at the finest resolution
    float maxSize; ///< Scale at the coarsest
    float* aspectRatios;
    int32_t numAspectRatios;
    int32_t H;
    int32_t W;
    float variance[4];
};

/// A tree of classes: softmax is taken within each group.
struct softmaxTree { // NOLINT(readability-identifier-naming): the name that programs use
    int32_t* leaf;
    int32_t n;
    int32_t* parent;
    int32_t* child;
    int32_t* group;
    char** name;
    int32_t groups;
    int32_t* groupSize;
    int32_t* groupOffset;
};

/// Boxes that each cell of a grid predicts.
struct RegionParameters {
    int32_t num;         ///< Boxes of a cell
    int32_t coords;      ///< Coordinates of a box
    int32_t classes;     ///< Classes of a box
    softmaxTree* smTree; ///< nullptr: one softmax over all classes
};

} // namespace plugin
} // namespace nvinfer1
