// SPDX-License-Identifier: Apache-2.0
// ISerializationConfig: a set of flags.
#pragma once

#include "api/tensorrt/convert.h"
#include "api/tensorrt/unused.h"
#include "engine/engine.h"

namespace ingot::api {

class SerializationConfig final : public nvinfer1::ISerializationConfig {
public:
    SerializationConfig(const Report& report, const Engine& engine) : report_(report) {
        if (engine.source() != nullptr) {
            flags_ |= bit(nvinfer1::SerializationFlag::kINCLUDE_REFIT);
        }
        if (engine.weights_missing()) {
            flags_ |= bit(nvinfer1::SerializationFlag::kEXCLUDE_WEIGHTS);
        }
    }

    bool setFlags(nvinfer1::SerializationFlags flags) noexcept override {
        return report_.guard("ISerializationConfig::setFlags", false, [&] {
            constexpr uint32_t all = (1U << nvinfer1::EnumMax<nvinfer1::SerializationFlag>()) - 1;
            require((flags & ~all) == 0, ErrorCode::InvalidArgument, "flags are ", flags,
                    ", expected bits of ", all);
            flags_ = flags;
            note_lean();
            return true;
        });
    }
    nvinfer1::SerializationFlags getFlags() const noexcept override { return flags_; }
    bool clearFlag(nvinfer1::SerializationFlag flag) noexcept override {
        return report_.guard("ISerializationConfig::clearFlag", false, [&] {
            flags_ &= ~bit(flag);
            return true;
        });
    }
    bool setFlag(nvinfer1::SerializationFlag flag) noexcept override {
        return report_.guard("ISerializationConfig::setFlag", false, [&] {
            flags_ |= bit(flag);
            note_lean();
            return true;
        });
    }
    bool getFlag(nvinfer1::SerializationFlag flag) const noexcept override {
        return report_.guard("ISerializationConfig::getFlag", false,
                             [&] { return (flags_ & bit(flag)) != 0; });
    }

private:
    static uint32_t bit(nvinfer1::SerializationFlag flag) {
        return 1U << static_cast<uint32_t>(checked(flag, "the flag"));
    }

    void note_lean() const {
        if ((flags_ & bit(nvinfer1::SerializationFlag::kEXCLUDE_LEAN_RUNTIME)) != 0) {
            log_unused(report_, "kEXCLUDE_LEAN_RUNTIME", true, "an engine holds no host code");
        }
    }

    Report report_;
    nvinfer1::SerializationFlags flags_ = 0;
};

} // namespace ingot::api
