// SPDX-License-Identifier: Apache-2.0
// NetworkTensor: the methods of ITensor.
#include "api/tensorrt/network/formats.h"
#include "api/tensorrt/network/network.h"
#include "onnx/import_node.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::api {

Type NetworkTensor::input_type() const {
    Type t{exact_type.value_or(dtype_of(declared_type)), {}};
    for (int32_t i = 0; i < declared_dims.nbDims; ++i) {
        auto at = static_cast<size_t>(i);
        std::string param = at < dimension_names.size() ? dimension_names[at] : "";
        t.dims.push_back(declared_dims.d[i] >= 0 ? Dim(declared_dims.d[i])
                                                 : onnx::open_size(param, name_, at));
    }
    return t;
}

void NetworkTensor::setName(const char* name) noexcept {
    network_.report().guard("ITensor::setName", [&] {
        require(name != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        require(*name != '\0' || !isNetworkInput(), ErrorCode::InvalidArgument,
                "the name of an input is empty");
        const NetworkTensor* other = network_.find(name);
        require(other == nullptr || other == this, ErrorCode::InvalidArgument, "the name '", name,
                "' is taken by another input or output");
        name_ = name;
        network_.changed();
    });
}

void NetworkTensor::setDimensions(const nv::Dims& dimensions) noexcept {
    network_.report().guard("ITensor::setDimensions", [&] {
        require(isNetworkInput(), ErrorCode::InvalidArgument, "tensor ", quoted(),
                " is no network input: its dimensions follow from layer '",
                producer_ == nullptr ? "" : producer_->name, "'");
        for (int64_t d : numbers_of(dimensions, str("input ", quoted()))) {
            require(d >= -1, ErrorCode::InvalidArgument, "input ", quoted(), " has dimensions ",
                    text_of(dimensions), ", expected sizes of 0 or more, or -1");
        }
        declared_dims = dimensions;
        network_.changed();
    });
}

nv::Dims NetworkTensor::getDimensions() const noexcept {
    if (isNetworkInput()) {
        return declared_dims;
    }
    return network_.report().guard("ITensor::getDimensions", no_dims(),
                                   [&] { return api_dims(network_.type_of(*this).dims); });
}

nv::DataType NetworkTensor::getType() const noexcept {
    if (isNetworkInput()) {
        return declared_type;
    }
    if (cast_type) {
        return *cast_type;
    }
    return network_.report().guard("ITensor::getType", nv::DataType::kFLOAT,
                                   [&] { return data_type_of(network_.type_of(*this).dtype); });
}

bool NetworkTensor::isNetworkOutput() const noexcept {
    auto has = [&](const std::vector<NetworkTensor*>& list) {
        return std::find(list.begin(), list.end(), this) != list.end();
    };
    return has(network_.outputs()) || has(network_.shape_outputs());
}

void NetworkTensor::setAllowedFormats(nv::TensorFormats formats) noexcept {
    network_.report().guard("ITensor::setAllowedFormats", [&] {
        formats_ = formats; // a mask without meaning fails at build
        static_cast<void>(formats_of(formats, str("tensor ", quoted())));
    });
}

bool NetworkTensor::isShapeTensor() const noexcept {
    return network_.report().guard("ITensor::isShapeTensor", false,
                                   [&] { return network_.is_shape(*this); });
}

bool NetworkTensor::isExecutionTensor() const noexcept {
    return network_.report().guard("ITensor::isExecutionTensor", true,
                                   [&] { return network_.is_data(*this); });
}

nv::TensorLocation NetworkTensor::getLocation() const noexcept {
    bool io = isNetworkInput() || isNetworkOutput();
    return io && isShapeTensor() ? nv::TensorLocation::kHOST : nv::TensorLocation::kDEVICE;
}

void NetworkTensor::setDimensionName(int32_t index, const char* name) noexcept {
    network_.report().guard("ITensor::setDimensionName", [&] {
        require(isNetworkInput(), ErrorCode::InvalidArgument, "tensor ", quoted(),
                " is no network input");
        require(index >= 0 && index < declared_dims.nbDims, ErrorCode::InvalidArgument, "index ",
                index, " is out of range: input ", quoted(), " has ", declared_dims.nbDims,
                " dimensions");
        dimension_names.resize(nv::Dims::MAX_DIMS);
        dimension_names[static_cast<size_t>(index)] = name == nullptr ? "" : name;
        network_.changed();
    });
}

const char* NetworkTensor::getDimensionName(int32_t index) const noexcept {
    auto at = static_cast<size_t>(index);
    bool named = index >= 0 && at < dimension_names.size() && !dimension_names[at].empty();
    return named ? dimension_names[at].c_str() : nullptr;
}

void NetworkTensor::setType(nv::DataType type) noexcept {
    network_.report().guard("ITensor::setType", [&] {
        dtype_of(type);
        require(isNetworkInput() || isNetworkOutput(), ErrorCode::InvalidArgument, "tensor ",
                quoted(), " is neither an input nor an output of the network; add a cast layer");
        if (isNetworkInput()) {
            // Without strong types, layers keep the type they were made for, as in TensorRT.
            nv::DataType inside = cast_type.value_or(declared_type);
            bool kept = inside == nv::DataType::kFLOAT &&
                        !network_.getFlag(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED) &&
                        (type == nv::DataType::kHALF || type == nv::DataType::kBF16 ||
                         type == nv::DataType::kINT8);
            cast_type = kept ? std::optional(inside) : std::nullopt;
            declared_type = type;
            exact_type.reset();
        } else {
            cast_type = type;
        }
        network_.changed();
    });
}

bool NetworkTensor::setDynamicRange(float min, float max) noexcept {
    return network_.report().guard("ITensor::setDynamicRange", false, [&] {
        require(min <= max, ErrorCode::InvalidArgument, "the range of tensor ", quoted(), " is ",
                min, " to ", max, ", expected min <= max");
        range_ = {min, max};
        return true;
    });
}

float NetworkTensor::getDynamicRangeMin() const noexcept {
    return range_ ? range_->first : std::numeric_limits<float>::quiet_NaN();
}

float NetworkTensor::getDynamicRangeMax() const noexcept {
    return range_ ? range_->second : std::numeric_limits<float>::quiet_NaN();
}

} // namespace ingot::api
