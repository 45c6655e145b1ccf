// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/layers/checks.h"

#include "api/tensorrt/network/network.h"

#include <algorithm>

namespace ingot::api {

namespace {

template <class... Args>
void expect(bool condition, const LayerBase& layer, const InputTypes& in, size_t i,
            const Args&... expected) {
    require(condition, ErrorCode::InvalidArgument, "input ", i, " ", layer.inputs[i]->quoted(),
            " is ", *in[i], ", expected ", expected...);
}

bool known(const InputTypes& in, size_t i) {
    return i < in.size() && in[i].has_value();
}

} // namespace

void expect_float(const LayerBase& layer, const InputTypes& in, size_t i) {
    if (known(in, i)) {
        expect(is_float(in[i]->dtype), layer, in, i, "a floating-point type");
    }
}

void expect_number(const LayerBase& layer, const InputTypes& in, size_t i) {
    if (known(in, i)) {
        expect(in[i]->dtype != DType::Bool, layer, in, i, "numbers");
    }
}

void expect_index(const LayerBase& layer, const InputTypes& in, size_t i) {
    expect_dtype(layer, in, i, {DType::I32, DType::I64});
}

void expect_dtype(const LayerBase& layer, const InputTypes& in, size_t i,
                  std::initializer_list<DType> allowed) {
    if (known(in, i)) {
        std::string names;
        for (DType t : allowed) {
            append(names, str(names.empty() ? "" : " or ", t));
        }
        bool fits = std::find(allowed.begin(), allowed.end(), in[i]->dtype) != allowed.end();
        expect(fits, layer, in, i, names);
    }
}

void expect_same_dtype(const LayerBase& layer, const InputTypes& in, size_t a, size_t b) {
    if (known(in, a) && known(in, b)) {
        expect(in[a]->dtype == in[b]->dtype, layer, in, b, in[a]->dtype, " as input ", a, " ",
               layer.inputs[a]->quoted());
    }
}

void expect_rank(const LayerBase& layer, const InputTypes& in, size_t i, int64_t least,
                 int64_t most) {
    if (known(in, i)) {
        int64_t rank = in[i]->rank();
        std::string range = least == most                ? str(least)
                            : most == nv::Dims::MAX_DIMS ? str("at least ", least)
                                                         : str(least, " to ", most);
        expect(least <= rank && rank <= most, layer, in, i, range,
               least == 1 && most == 1 ? " dimension" : " dimensions");
    }
}

void expect_broadcast(const LayerBase& layer, const InputTypes& in,
                      std::initializer_list<size_t> which) {
    size_t first = *which.begin();
    for (size_t i : which) {
        if (!known(in, first) || !known(in, i)) {
            continue;
        }
        expect(layer.from_model || in[i]->rank() == in[first]->rank(), layer, in, i,
               "as many dimensions as input ", first, " ", layer.inputs[first]->quoted(),
               ", which is ", *in[first]);
        size_t common = std::min(in[i]->dims.size(), in[first]->dims.size());
        for (size_t k = 1; k <= common; ++k) {
            size_t d = in[i]->dims.size() - k;
            const Dim& a = in[first]->dims[in[first]->dims.size() - k];
            const Dim& b = in[i]->dims[d];
            bool fits = !a.is_const() || !b.is_const() || a == b || a.is_const(1) || b.is_const(1);
            expect(fits, layer, in, i, "dimension ", d, " to be ", a, " or 1, as input ", first,
                   " ", layer.inputs[first]->quoted(), " is ", *in[first]);
        }
    }
}

void expect_axis(const LayerBase& layer, const InputTypes& in, size_t i, int64_t axis) {
    if (known(in, i)) {
        require(axis >= 0 && axis < in[i]->rank(), ErrorCode::InvalidArgument, "the axis is ", axis,
                ", but input ", i, " ", layer.inputs[i]->quoted(), " is ", *in[i]);
    }
}

int64_t one_axis(uint32_t mask) {
    require(mask != 0 && (mask & (mask - 1)) == 0, ErrorCode::InvalidArgument, "axes are ", mask,
            ", expected exactly one bit");
    int64_t axis = 0;
    while ((mask >> axis) != 1U) {
        ++axis;
    }
    return axis;
}

Value as_dtype(Graph& g, Value v, DType t) {
    return g.type(v).dtype == t ? v : ops::cast(g, v, t);
}

} // namespace ingot::api
