// SPDX-License-Identifier: Apache-2.0
// A builder with a recorder of errors and an empty network; runs the built engine on the CPU
// backend.
#pragma once

#include "NvInfer.h"
#include "backends/backends.h"
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::test {

namespace nv = nvinfer1;

class SilentLogger : public nv::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        if (severity <= Severity::kERROR) {
            errors.emplace_back(msg);
        }
    }
    std::vector<std::string> errors;
};

/// Receives truncated descriptions; the logger gets the whole text.
class Recorder : public nv::IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(codes.size()); }
    nv::ErrorCode getErrorCode(int32_t i) const noexcept override {
        return codes[static_cast<size_t>(i)];
    }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override {
        return texts[static_cast<size_t>(i)].c_str();
    }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override {
        codes.clear();
        texts.clear();
    }
    bool reportError(nv::ErrorCode val, ErrorDesc desc) noexcept override {
        codes.push_back(val);
        texts.emplace_back(desc);
        return false;
    }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }

    std::vector<nv::ErrorCode> codes;
    std::vector<std::string> texts;
    int32_t references = 0;
};

inline nv::Dims dims(std::initializer_list<int64_t> sizes) {
    nv::Dims d{static_cast<int32_t>(sizes.size()), {}};
    std::copy(sizes.begin(), sizes.end(), d.d);
    return d;
}

inline std::vector<int64_t> list(const nv::Dims& d) {
    return {d.d, d.d + std::max(d.nbDims, 0)};
}

/// Numbers in [low, high) that differ from element to element.
inline Tensor numbers(Shape shape, double low = -2, double high = 2, DType t = DType::F32) {
    Tensor out = Tensor::empty(t, std::move(shape));
    uint64_t state = 88172645463325252ULL + static_cast<uint64_t>(out.count());
    for (int64_t i = 0; i < out.count(); ++i) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        double unit = static_cast<double>(state % 4096) / 4096;
        out.set_f64(i, is_float(t) ? low + (high - low) * unit
                                   : std::floor(low + (high - low) * unit));
    }
    return out;
}

class NetworkTest : public ::testing::Test {
protected:
    NetworkTest() {
        builder.reset(nv::createInferBuilder(logger));
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
    }
    nv::ITensor& input(const char* name, nv::DataType type, std::initializer_list<int64_t> sizes) {
        nv::ITensor* t = network->addInput(name, type, dims(sizes));
        EXPECT_NE(t, nullptr);
        return *t;
    }
    nv::ITensor& input(const char* name, std::initializer_list<int64_t> sizes) {
        return input(name, nv::DataType::kFLOAT, sizes);
    }
    /// A constant; its memory lives as long as the test.
    nv::Weights weights(const Tensor& t) {
        kept.push_back(t);
        auto type = t.dtype() == DType::F32   ? nv::DataType::kFLOAT
                    : t.dtype() == DType::F16 ? nv::DataType::kHALF
                    : t.dtype() == DType::I32 ? nv::DataType::kINT32
                    : t.dtype() == DType::I64 ? nv::DataType::kINT64
                    : t.dtype() == DType::I8  ? nv::DataType::kINT8
                                              : nv::DataType::kBOOL;
        return {type, kept.back().bytes().data(), t.count()};
    }
    nv::ITensor& constant(const Tensor& t) {
        nv::Dims d{static_cast<int32_t>(t.rank()), {}};
        std::copy(t.shape().begin(), t.shape().end(), d.d);
        nv::IConstantLayer* layer = network->addConstant(d, weights(t));
        EXPECT_NE(layer, nullptr);
        return *layer->getOutput(0);
    }
    nv::ITensor& indices(const std::vector<int64_t>& values) {
        return constant(Tensor::i64(values));
    }
    nv::ITensor& scalar(int64_t value) { return constant(Tensor::scalar_i64(DType::I64, value)); }

    std::shared_ptr<const Engine> build() {
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        EXPECT_NE(bytes, nullptr) << (logger.errors.empty() ? "" : logger.errors.back());
        if (bytes == nullptr) {
            return nullptr;
        }
        std::shared_ptr<nv::IHostMemory> owner(std::move(bytes));
        std::span<const std::byte> view(static_cast<const std::byte*>(owner->data()),
                                        owner->size());
        return Engine::load(view, owner, CheckWeights::First);
    }
    /// The errors since the last call, a line each; "" without any.
    std::string take_error() {
        std::string all;
        for (const std::string& e : logger.errors) {
            all += (all.empty() ? "" : "\n") + e;
        }
        logger.errors.clear();
        return all;
    }
    /// Marks the outputs of the layer, builds, runs.
    std::vector<Tensor> run(nv::ILayer* layer, const std::vector<Tensor>& inputs) {
        EXPECT_NE(layer, nullptr) << (logger.errors.empty() ? "" : logger.errors.back());
        if (layer == nullptr) {
            return {};
        }
        for (int32_t i = 0; i < layer->getNbOutputs(); ++i) {
            network->markOutput(*layer->getOutput(i));
        }
        return run(inputs);
    }
    std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
        std::shared_ptr<const Engine> engine = build();
        return engine == nullptr ? std::vector<Tensor>()
                                 : Context(engine, cpu_backend()).run(inputs);
    }

    SilentLogger logger;
    std::deque<Tensor> kept;
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::INetworkDefinition> network;
};

/// Checks the shape, and that element i is expected(i), within a part of the largest.
inline void expect_elements(const std::vector<Tensor>& results, size_t which, const Shape& shape,
                            const std::function<double(int64_t)>& expected, double limit = 1e-5) {
    ASSERT_LT(which, results.size());
    const Tensor& got = results[which];
    ASSERT_EQ(got.shape(), shape);
    double largest = 1;
    for (int64_t i = 0; i < got.count(); ++i) {
        double e = expected(i);
        largest = std::isfinite(e) ? std::max(largest, std::abs(e)) : largest;
    }
    for (int64_t i = 0; i < got.count(); ++i) {
        double e = expected(i);
        double g = got.get_f64(i);
        bool same = std::isnan(e) ? std::isnan(g) : e == g || std::abs(e - g) <= limit * largest;
        ASSERT_TRUE(same) << "element " << i << ": got " << g << ", expected " << e;
    }
}

} // namespace ingot::test
