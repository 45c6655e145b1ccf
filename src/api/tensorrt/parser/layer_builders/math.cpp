// SPDX-License-Identifier: Apache-2.0
// Layer builders of softmax, reductions, products, sorting and cumulative sums.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ingot::api {

// Before opset 13, all axes from `axis` on are flattened into one.
nv::ILayer* build_softmax(const NodeView& r) {
    bool one = r.c.opset >= 13;
    if (r.c.rank(0) == 0) {
        return nullptr;
    }
    int32_t axis = r.axis(one ? -1 : 1);
    for (int64_t i = axis + 1; !one && i < r.c.rank(0); ++i) {
        if (!r.c.dim(0, i).is_const(1)) {
            return nullptr;
        }
    }
    nv::ISoftMaxLayer* layer = r.n.addSoftMax(r.tensor(0));
    if (layer != nullptr) {
        layer->setAxes(mask_of({axis}));
    }
    return layer;
}

nv::ILayer* build_reduce(const NodeView& r) {
    using Op = nv::ReduceOperation;
    static const std::map<std::string_view, Op> operations = {{"ReduceSum", Op::kSUM},
                                                              {"ReduceProd", Op::kPROD},
                                                              {"ReduceMax", Op::kMAX},
                                                              {"ReduceMin", Op::kMIN},
                                                              {"ReduceMean", Op::kAVG}};
    std::optional<NodeView::AxisList> list = r.axes("axes", 1);
    if (!list || (list->axes.empty() && r.c.i("noop_with_empty_axes", 0) != 0)) {
        return nullptr;
    }
    std::vector<int64_t> axes = normalize_axes(list->axes, r.c.rank(0));
    if (axes.empty()) {
        axes.resize(static_cast<size_t>(r.c.rank(0)));
        std::iota(axes.begin(), axes.end(), 0);
    }
    return axes.empty() ? nullptr
                        : r.n.addReduce(r.tensor(0), operations.at(r.c.node.op_type), mask_of(axes),
                                        r.c.i("keepdims", 1) != 0);
}

nv::ILayer* build_topk(const NodeView& r) {
    std::optional<int64_t> k;
    if (r.c.opset < 10) {
        k = r.c.i("k");
    } else if (std::optional<std::vector<int64_t>> known = r.constant_ints(1)) {
        k = known->size() == 1 ? std::optional((*known)[0]) : std::nullopt;
    }
    if (k.value_or(0) > INT32_MAX) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ITensor* count = k ? nullptr : &r.tensor(1);
    nv::ITopKLayer* layer = r.n.addTopK(
        x, r.c.i("largest", 1) != 0 ? nv::TopKOperation::kMAX : nv::TopKOperation::kMIN,
        static_cast<int32_t>(k.value_or(0)), mask_of({r.axis(-1)}), nv::DataType::kINT64);
    if (layer != nullptr && count != nullptr) {
        layer->setInput(1, *count);
    }
    return layer;
}

nv::ILayer* build_matmul(const NodeView& r) {
    auto operation = [&](int i) {
        return r.c.rank(i) == 1 ? nv::MatrixOperation::kVECTOR : nv::MatrixOperation::kNONE;
    };
    nv::ITensor& a = r.tensor(0);
    return r.n.addMatrixMultiply(a, operation(0), r.tensor(1), operation(1));
}

// The product alone: alpha and a third operand would be layers of their own.
nv::ILayer* build_gemm(const NodeView& r) {
    bool added = r.c.has(2) && r.c.f("beta", 1) != 0;
    if (r.c.f("alpha", 1) != 1 || added) {
        return nullptr;
    }
    auto operation = [&](std::string_view attribute) {
        return r.c.i(attribute, 0) != 0 ? nv::MatrixOperation::kTRANSPOSE
                                        : nv::MatrixOperation::kNONE;
    };
    nv::ITensor& a = r.tensor(0);
    return r.n.addMatrixMultiply(a, operation("transA"), r.tensor(1), operation("transB"));
}

nv::ILayer* build_einsum(const NodeView& r) {
    std::vector<nv::ITensor*> inputs;
    for (int i = 0; i < r.c.input_count(); ++i) {
        inputs.push_back(&r.tensor(i));
    }
    return r.n.addEinsum(inputs.data(), r.c.input_count(), r.c.s("equation", "").c_str());
}

nv::ILayer* build_cumsum(const NodeView& r) {
    nv::ITensor& x = r.tensor(0);
    return r.n.addCumulative(x, r.tensor(1), nv::CumulativeOperation::kSUM,
                             r.c.i("exclusive", 0) != 0, r.c.i("reverse", 0) != 0);
}

} // namespace ingot::api
