// SPDX-License-Identifier: Apache-2.0
// Layer builders of gather and scatter operators, rotary embedding and quantisation.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"
#include "onnx/ops/support/inputs.h"

namespace ingot::api {

nv::ILayer* build_gather(const NodeView& r) {
    nv::ITensor& data = r.tensor(0);
    return r.n.addGather(data, r.tensor(1), r.axis(0));
}

nv::ILayer* build_gather_elements(const NodeView& r) {
    nv::ITensor& data = r.tensor(0);
    nv::IGatherLayer* layer = r.n.addGatherV2(data, r.tensor(1), nv::GatherMode::kELEMENT);
    if (layer != nullptr) {
        layer->setGatherAxis(r.axis(0));
    }
    return layer;
}

nv::ILayer* build_gather_nd(const NodeView& r) {
    nv::ITensor& data = r.tensor(0);
    nv::IGatherLayer* layer = r.n.addGatherV2(data, r.tensor(1), nv::GatherMode::kND);
    if (layer != nullptr) {
        layer->setNbElementWiseDims(static_cast<int32_t>(r.c.i("batch_dims", 0)));
    }
    return layer;
}

nv::ILayer* build_scatter(const NodeView& r) {
    if (r.c.s("reduction", "none") != "none") {
        return nullptr;
    }
    bool nd = r.c.node.op_type == "ScatterND";
    nv::ITensor& data = r.tensor(0);
    nv::ITensor& indices = r.tensor(1);
    nv::IScatterLayer* layer = r.n.addScatter(
        data, indices, r.tensor(2), nd ? nv::ScatterMode::kND : nv::ScatterMode::kELEMENT);
    if (layer != nullptr && !nd) {
        layer->setAxis(r.axis(0));
    }
    return layer;
}

nv::ILayer* build_one_hot(const NodeView& r) {
    nv::ITensor& indices = r.tensor(0);
    nv::ITensor& depth = r.tensor(1);
    nv::ITensor& values = r.tensor(2);
    auto axis = static_cast<int32_t>(normalize_axis(r.c.i("axis", -1), r.c.rank(0) + 1));
    return r.n.addOneHot(indices, values, depth, axis);
}

nv::ILayer* build_non_zero(const NodeView& r) {
    return r.n.addNonZero(r.tensor(0), nv::DataType::kINT64);
}

nv::ILayer* build_reverse_sequence(const NodeView& r) {
    nv::ITensor& x = r.tensor(0);
    nv::IReverseSequenceLayer* layer = r.n.addReverseSequence(x, r.tensor(1));
    if (layer != nullptr) {
        layer->setBatchAxis(r.axis(1, "batch_axis"));
        layer->setSequenceAxis(r.axis(0, "time_axis"));
    }
    return layer;
}

nv::ILayer* build_tensor_scatter(const NodeView& r) {
    bool fits =
        r.c.rank(0) == 4 && r.axis(-2) == 2 && r.c.s("mode", "linear") == "linear" && r.c.has(2);
    if (!fits) {
        return nullptr;
    }
    nv::ITensor& cache = r.tensor(0);
    nv::ITensor& update = r.tensor(1);
    return r.n.addKVCacheUpdate(cache, update, r.tensor(2), nv::KVCacheMode::kLINEAR);
}

nv::ILayer* build_rotary(const NodeView& r) {
    if (r.c.rank(0) != 4) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ITensor& cosine = r.tensor(1);
    nv::ITensor& sine = r.tensor(2);
    nv::ITensor* positions = r.optional_tensor(3);
    nv::IRotaryEmbeddingLayer* layer =
        r.n.addRotaryEmbedding(x, cosine, sine, r.c.i("interleaved", 0) != 0,
                               static_cast<int32_t>(r.c.i("rotary_embedding_dim", 0)));
    if (layer != nullptr && positions != nullptr) {
        layer->setInput(3, *positions);
    }
    return layer;
}

// --- quantisation --------------------------------------------------------------------------------

namespace {

bool is_zero(const std::optional<Tensor>& t) {
    for (int64_t i = 0; t && i < t->count(); ++i) {
        if (t->get_f64(i) != 0) {
            return false;
        }
    }
    return t.has_value();
}

// Axis, block and zero point; an all-zero zero point is left out.
template <class L>
L* with_scales(const NodeView& r, L* layer, nv::ITensor* zero) {
    if (layer == nullptr) {
        return nullptr;
    }
    int64_t rank = r.c.rank(0);
    int64_t block = r.c.i("block_size", 0);
    bool single = product(r.c.type(1).dims).is_const(1) && block == 0;
    if (!single && rank > 0) {
        auto axis = rank == 1 ? 0 : r.axis(1);
        layer->setAxis(axis);
        if (block > 0) {
            std::vector<int64_t> blocks(static_cast<size_t>(rank), 1);
            blocks[static_cast<size_t>(axis)] = block;
            layer->setBlockShape(dims_of(blocks));
        }
    }
    if (zero != nullptr) {
        layer->setInput(2, *zero);
    }
    return layer;
}

nv::ITensor* zero_point(const NodeView& r) {
    return r.c.has(2) && !is_zero(r.constant(2)) ? &r.tensor(2) : nullptr;
}

DType named_type(const NodeView& r, DType fallback) {
    return r.c.i("output_dtype", 0) != 0 ? onnx::dtype_attribute(r.c, "output_dtype", fallback)
                                         : fallback;
}

} // namespace

nv::ILayer* build_quantize(const NodeView& r) {
    DType to = named_type(r, r.c.has(2) ? r.c.dtype(2) : DType::U8);
    if (!has_name(to) || r.c.i("saturate", 1) == 0) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ITensor& scale = r.tensor(1);
    nv::ITensor* zero = zero_point(r);
    return with_scales(r, r.n.addQuantize(x, scale, data_type_of(to)), zero);
}

nv::ILayer* build_dequantize(const NodeView& r) {
    DType to = named_type(r, r.c.dtype(1));
    if (!has_name(to)) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ITensor& scale = r.tensor(1);
    nv::ITensor* zero = zero_point(r);
    return with_scales(r, r.n.addDequantize(x, scale, data_type_of(to)), zero);
}

} // namespace ingot::api
