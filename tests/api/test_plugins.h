// SPDX-License-Identifier: Apache-2.0
// Plugins for tests, with their creators.
#pragma once

#include "NvInfer.h"
#include "base/text.h"

#include <atomic>
#include <numeric>

namespace ingot::test {

namespace nv = nvinfer1;

inline int64_t volume(const nv::Dims& d) {
    int64_t n = 1;
    for (int32_t i = 0; i < d.nbDims; ++i) {
        n *= d.d[i];
    }
    return n;
}

/// The calls of plugins.
struct PluginLog {
    std::atomic<int> live{0};
    std::atomic<int> attached{0};
    std::atomic<int> shape_changes{0};
    std::atomic<int> runs{0};
    std::vector<std::vector<int64_t>> configured; // min and max of input 0
    std::string created;                          // names and lengths of the fields of the last
};
inline PluginLog& plugin_log() {
    static PluginLog log;
    return log;
}

/// A plugin of one input and one output of the same type and shape, unless overridden.
class TestPlugin : public nv::IPluginV3,
                   public nv::IPluginV3OneCore,
                   public nv::IPluginV3OneBuildV2,
                   public nv::IPluginV3OneRuntime {
public:
    TestPlugin() { ++plugin_log().live; }
    TestPlugin(const TestPlugin& o)
        : nv::IPluginV3(o), nv::IPluginV3OneCore(o), nv::IPluginV3OneBuildV2(o),
          nv::IPluginV3OneRuntime(o) {
        ++plugin_log().live;
    }
    TestPlugin& operator=(const TestPlugin&) = delete;
    TestPlugin(TestPlugin&&) = delete;
    TestPlugin& operator=(TestPlugin&&) = delete;
    ~TestPlugin() override { --plugin_log().live; }

    nv::IPluginCapability* getCapabilityInterface(nv::PluginCapabilityType type) noexcept override {
        switch (type) {
        case nv::PluginCapabilityType::kCORE:
            return static_cast<nv::IPluginV3OneCore*>(this);
        case nv::PluginCapabilityType::kBUILD:
            return static_cast<nv::IPluginV3OneBuild*>(this);
        case nv::PluginCapabilityType::kRUNTIME:
            return static_cast<nv::IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t configurePlugin(const nv::DynamicPluginTensorDesc* in, int32_t count,
                            const nv::DynamicPluginTensorDesc*, int32_t) noexcept override {
        if (count > 0) {
            plugin_log().configured.push_back(sizes(in[0].min));
            plugin_log().configured.push_back(sizes(in[0].max));
        }
        return 0;
    }
    int32_t getOutputDataTypes(nv::DataType* out, int32_t count, const nv::DataType* in,
                               int32_t) const noexcept override {
        std::fill(out, out + count, in[0]);
        return 0;
    }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t, const nv::DimsExprs*, int32_t,
                            nv::DimsExprs* out, int32_t, nv::IExprBuilder&) noexcept override {
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, const nv::DynamicPluginTensorDesc* all, int32_t,
                                   int32_t) noexcept override {
        return all[pos].desc.format == nv::TensorFormat::kLINEAR &&
               all[pos].desc.type == nv::DataType::kFLOAT;
    }
    int32_t onShapeChange(const nv::PluginTensorDesc*, int32_t, const nv::PluginTensorDesc*,
                          int32_t) noexcept override {
        ++plugin_log().shape_changes;
        return 0;
    }
    int32_t enqueue(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out,
                    const void* const* inputs, void* const* outputs, void* workspace,
                    cudaStream_t) noexcept override {
        ++plugin_log().runs;
        synchronize();
        return work(in, out, inputs, outputs, workspace);
    }
    virtual int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out,
                         const void* const* inputs, void* const* outputs,
                         void* workspace) noexcept = 0;
    nv::IPluginV3* attachToContext(nv::IPluginResourceContext*) noexcept override {
        ++plugin_log().attached;
        return clone();
    }
    const nv::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        fields_.clear();
        list_fields(fields_);
        all_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
        return &all_;
    }
    virtual void list_fields(std::vector<nv::PluginField>&) {}

private:
    std::vector<nv::PluginField> fields_;
    nv::PluginFieldCollection all_;
};

/// y = x * factor + offset, of floats and of 32-bit integers.
class Scale : public TestPlugin {
public:
    static constexpr const char* name = "Scale";
    static std::vector<nv::PluginField> attributes() {
        return {{"factor", nullptr, nv::PluginFieldType::kFLOAT32, 1},
                {"offset", nullptr, nv::PluginFieldType::kINT32, 1}};
    }
    bool set(const nv::PluginField& f) {
        std::string field = f.name;
        if (field == "factor" && f.type == nv::PluginFieldType::kFLOAT32 && f.length == 1) {
            factor = *static_cast<const float*>(f.data);
        } else if (field == "offset" && f.type == nv::PluginFieldType::kINT32 && f.length == 1) {
            offset = *static_cast<const int32_t*>(f.data);
        } else {
            return false;
        }
        return true;
    }
    nv::IPluginV3* clone() noexcept override { return new Scale(*this); }
    const char* getPluginName() const noexcept override { return name; }
    bool supportsFormatCombination(int32_t pos, const nv::DynamicPluginTensorDesc* all, int32_t,
                                   int32_t) noexcept override {
        nv::DataType t = all[pos].desc.type;
        return all[pos].desc.format == nv::TensorFormat::kLINEAR && t == all[0].desc.type &&
               (t == nv::DataType::kFLOAT || t == nv::DataType::kINT32);
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        int64_t n = volume(in[0].dims);
        if (in[0].type == nv::DataType::kFLOAT) {
            scale(static_cast<const float*>(inputs[0]), static_cast<float*>(outputs[0]), n);
        } else {
            scale(static_cast<const int32_t*>(inputs[0]), static_cast<int32_t*>(outputs[0]), n);
        }
        return 0;
    }
    void list_fields(std::vector<nv::PluginField>& all) override {
        all.emplace_back("factor", &factor, nv::PluginFieldType::kFLOAT32, 1);
        all.emplace_back("offset", &offset, nv::PluginFieldType::kINT32, 1);
    }

    float factor = 1;
    int32_t offset = 0;

private:
    template <class T>
    void scale(const T* x, T* y, int64_t n) const {
        for (int64_t i = 0; i < n; ++i) {
            y[i] = static_cast<T>(static_cast<float>(x[i]) * factor) + static_cast<T>(offset);
        }
    }
};

/// x[n,m] -> y[n] = sum over m of x * weights, through a workspace of the products.
class WeightedRows : public TestPlugin {
public:
    static constexpr const char* name = "WeightedRows";
    static std::vector<nv::PluginField> attributes() {
        return {{"weights", nullptr, nv::PluginFieldType::kFLOAT32, 0}};
    }
    bool set(const nv::PluginField& f) {
        const auto* data = static_cast<const float*>(f.data);
        if (std::string(f.name) == "shape") {
            return f.type == nv::PluginFieldType::kDIMS &&
                   static_cast<const nv::Dims*>(f.data)->nbDims == 1;
        }
        weights.assign(data, data + f.length);
        return f.type == nv::PluginFieldType::kFLOAT32;
    }
    nv::IPluginV3* clone() noexcept override { return new WeightedRows(*this); }
    const char* getPluginName() const noexcept override { return name; }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t, const nv::DimsExprs*, int32_t,
                            nv::DimsExprs* out, int32_t, nv::IExprBuilder&) noexcept override {
        out[0].nbDims = 1;
        out[0].d[0] = in[0].d[0];
        return 0;
    }
    size_t getWorkspaceSize(const nv::DynamicPluginTensorDesc* in, int32_t,
                            const nv::DynamicPluginTensorDesc*, int32_t) const noexcept override {
        return static_cast<size_t>(volume(in[0].max)) * sizeof(float);
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                 const void* const* inputs, void* const* outputs,
                 void* workspace) noexcept override {
        const auto* x = static_cast<const float*>(inputs[0]);
        auto* products = static_cast<float*>(workspace);
        int64_t n = in[0].dims.d[0];
        int64_t m = in[0].dims.d[1];
        for (int64_t i = 0; i < n * m; ++i) {
            products[i] = x[i] * weights[static_cast<size_t>(i % m)];
        }
        for (int64_t i = 0; i < n; ++i) {
            static_cast<float*>(outputs[0])[i] =
                std::accumulate(products + i * m, products + (i + 1) * m, 0.0F);
        }
        return 0;
    }
    void list_fields(std::vector<nv::PluginField>& all) override {
        shape_ = dims({static_cast<int64_t>(weights.size())});
        all.emplace_back("weights", weights.data(), nv::PluginFieldType::kFLOAT32,
                         static_cast<int32_t>(weights.size()));
        all.emplace_back("shape", &shape_, nv::PluginFieldType::kDIMS, 1);
    }

    std::vector<float> weights;

private:
    nv::Dims shape_{};
};

/// The positive elements of a list, and their number.
class Positive : public TestPlugin {
public:
    static constexpr const char* name = "Positive";
    static std::vector<nv::PluginField> attributes() { return {}; }
    static bool set(const nv::PluginField&) { return true; }
    nv::IPluginV3* clone() noexcept override { return new Positive(*this); }
    const char* getPluginName() const noexcept override { return name; }
    int32_t getNbOutputs() const noexcept override { return 2; }
    int32_t getOutputDataTypes(nv::DataType* out, int32_t, const nv::DataType* in,
                               int32_t) const noexcept override {
        out[0] = in[0];
        out[1] = nv::DataType::kINT64;
        return 0;
    }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t, const nv::DimsExprs*, int32_t,
                            nv::DimsExprs* out, int32_t, nv::IExprBuilder& b) noexcept override {
        const nv::IDimensionExpr* half =
            b.operation(nv::DimensionOperation::kFLOOR_DIV, *in[0].d[0], *b.constant(2));
        out[0].nbDims = 1;
        out[0].d[0] = b.declareSizeTensor(1, *half, *in[0].d[0]);
        out[1].nbDims = 0;
        return out[0].d[0]->isSizeTensor() && !half->isSizeTensor() ? 0 : 1;
    }
    bool supportsFormatCombination(int32_t pos, const nv::DynamicPluginTensorDesc* all, int32_t,
                                   int32_t) noexcept override {
        return all[pos].desc.type == (pos == 2 ? nv::DataType::kINT64 : nv::DataType::kFLOAT);
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        if (out[0].dims.d[0] != -1) {
            return 1;
        }
        const auto* x = static_cast<const float*>(inputs[0]);
        int64_t count = 0;
        for (int64_t i = 0; i < in[0].dims.d[0]; ++i) {
            if (x[i] > 0) {
                static_cast<float*>(outputs[0])[count++] = x[i];
            }
        }
        *static_cast<int64_t*>(outputs[1]) = count + lie;
        return 0;
    }
    static inline int64_t lie = 0;
};

/// x padded with zeros: shape input 0 has the numbers before and after.
class PadList : public TestPlugin {
public:
    static constexpr const char* name = "PadList";
    static std::vector<nv::PluginField> attributes() { return {}; }
    static bool set(const nv::PluginField&) { return true; }
    nv::IPluginV3* clone() noexcept override { return new PadList(*this); }
    const char* getPluginName() const noexcept override { return name; }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t count, const nv::DimsExprs* shapes,
                            int32_t shape_count, nv::DimsExprs* out, int32_t,
                            nv::IExprBuilder& b) noexcept override {
        if (count != 1 || shape_count != 1 || shapes[0].nbDims != 1) {
            return 1;
        }
        out[0].nbDims = 1;
        out[0].d[0] = b.operation(nv::DimensionOperation::kSUM, *in[0].d[0], *shapes[0].d[0]);
        return 0;
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc* out,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        auto* y = static_cast<float*>(outputs[0]);
        std::fill(y, y + out[0].dims.d[0], 0.0F);
        const auto* x = static_cast<const float*>(inputs[0]);
        std::copy(x, x + in[0].dims.d[0], y);
        return 0;
    }
};

/// Adds 1 to its input in place.
class InPlace : public TestPlugin {
public:
    static constexpr const char* name = "InPlace";
    static std::vector<nv::PluginField> attributes() { return {}; }
    static bool set(const nv::PluginField&) { return true; }
    nv::IPluginV3* clone() noexcept override { return new InPlace(*this); }
    const char* getPluginName() const noexcept override { return name; }
    int32_t getAliasedInput(int32_t) noexcept override { return 0; }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        auto* y = static_cast<float*>(outputs[0]);
        for (int64_t i = 0; i < volume(in[0].dims); ++i) {
            y[i] += 1;
        }
        return inputs[0] == outputs[0] ? 0 : 1;
    }
};

/// Fails in the chosen method.
class Failing : public TestPlugin {
public:
    static constexpr const char* name = "Failing";
    static std::vector<nv::PluginField> attributes() { return {}; }
    static bool set(const nv::PluginField&) { return true; }
    static inline std::string where;
    nv::IPluginV3* clone() noexcept override {
        return where == "clone" ? nullptr : new Failing(*this);
    }
    nv::IPluginCapability* getCapabilityInterface(nv::PluginCapabilityType type) noexcept override {
        bool gone = (where == "core" && type == nv::PluginCapabilityType::kCORE) ||
                    (where == "build" && type == nv::PluginCapabilityType::kBUILD);
        return gone ? nullptr : TestPlugin::getCapabilityInterface(type);
    }
    const char* getPluginName() const noexcept override { return where == "name" ? "" : name; }
    int32_t getNbOutputs() const noexcept override { return where == "outputs" ? 0 : 1; }
    int32_t getOutputDataTypes(nv::DataType* out, int32_t, const nv::DataType* in,
                               int32_t) const noexcept override {
        out[0] = where == "type" ? static_cast<nv::DataType>(99) : in[0];
        return where == "types" ? 2 : 0;
    }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t, const nv::DimsExprs*, int32_t,
                            nv::DimsExprs* out, int32_t, nv::IExprBuilder& b) noexcept override {
        out[0] = in[0];
        if (where == "rank") {
            out[0].nbDims = 9;
        } else if (where == "null") {
            out[0].d[0] =
                b.operation(nv::DimensionOperation::kFLOOR_DIV, *in[0].d[0], *b.constant(0));
        } else if (where == "size") {
            out[0].d[0] = b.declareSizeTensor(0, *in[0].d[0], *in[0].d[0]);
        }
        return where == "shapes" ? 3 : 0;
    }
    int32_t configurePlugin(const nv::DynamicPluginTensorDesc*, int32_t,
                            const nv::DynamicPluginTensorDesc*, int32_t) noexcept override {
        return where == "configure" ? 4 : 0;
    }
    bool supportsFormatCombination(int32_t, const nv::DynamicPluginTensorDesc*, int32_t,
                                   int32_t) noexcept override {
        return where != "format";
    }
    int32_t onShapeChange(const nv::PluginTensorDesc*, int32_t, const nv::PluginTensorDesc*,
                          int32_t) noexcept override {
        return where == "onShapeChange" ? 6 : 0;
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        std::memcpy(outputs[0], inputs[0], static_cast<size_t>(volume(in[0].dims)) * 4);
        return where == "enqueue" ? 7 : 0;
    }
    nv::IPluginV3* attachToContext(nv::IPluginResourceContext*) noexcept override {
        return where == "attach" ? nullptr : clone();
    }
    void list_fields(std::vector<nv::PluginField>& all) override {
        if (where == "fields") {
            all.emplace_back("weights", nullptr, nv::PluginFieldType::kFLOAT32, 3);
        } else if (where == "field type") {
            all.emplace_back("weights", &where, static_cast<nv::PluginFieldType>(40), 1);
        }
    }
    size_t getWorkspaceSize(const nv::DynamicPluginTensorDesc*, int32_t,
                            const nv::DynamicPluginTensorDesc*, int32_t) const noexcept override {
        return where == "workspace" ? SIZE_MAX : 0;
    }
};

template <class P>
class TestCreator : public nv::IPluginCreatorV3One {
public:
    nv::IPluginV3* createPlugin(const char*, const nv::PluginFieldCollection* fc,
                                nv::TensorRTPhase) noexcept override {
        auto plugin = std::make_unique<P>();
        plugin_log().created.clear();
        for (int32_t i = 0; i < fc->nbFields; ++i) {
            plugin_log().created += str(fc->fields[i].name, ':', fc->fields[i].length, ' ');
            if (!plugin->set(fc->fields[i])) {
                return nullptr;
            }
        }
        return plugin.release();
    }
    const nv::PluginFieldCollection* getFieldNames() noexcept override { return &names_; }
    const char* getPluginName() const noexcept override { return P::name; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

private:
    std::vector<nv::PluginField> fields_ = P::attributes();
    nv::PluginFieldCollection names_{static_cast<int32_t>(fields_.size()), fields_.data()};
};

/// Registers a creator for as long as it lives.
template <class P>
class Registered {
public:
    explicit Registered(const char* space = "") {
        EXPECT_TRUE(getPluginRegistry()->registerCreator(creator, space));
    }
    ~Registered() { EXPECT_TRUE(getPluginRegistry()->deregisterCreator(creator)); }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;
    TestCreator<P> creator;
};

} // namespace ingot::test
