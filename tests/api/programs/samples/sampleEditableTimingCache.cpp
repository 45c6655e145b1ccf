// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleEditableTimingCache: the verbose log of a build lists each layer's
// tactics; the next build takes another one. Exit code 3 where the device has one tactic a layer.
#include "common.h"

#include <cstring>
#include <map>

using namespace nvinfer1;
using namespace samples;

struct Record {
    std::string key;
    std::string selected;
    std::map<std::string, std::string> tactics; // hash -> kernel
};

/// Reads the timings out of the log, as the sample does.
class TimingReader : public Logger {
public:
    void log(Severity severity, const char* text) noexcept override {
        Logger::log(severity, text);
        char a[129] = {};
        char b[129] = {};
        const char* at = std::strstr(text, "Autotuning op ");
        if (at != nullptr && std::sscanf(at + 14, "%128[^(](key: %128[^)])", a, b) == 2) {
            op_ = a;
            record_ = {b, {}, {}};
            in_table_ = false;
        } else if (std::strstr(text, "tactic_id, cost(in ms), cost/fastest_cost") != nullptr) {
            in_table_ = true;
        } else if ((at = std::strstr(text, "(tactic hash, cost(in ms)):")) != nullptr) {
            NEED(std::sscanf(at + 27, "%128[^,]", a) == 1);
            record_.selected = a;
            table[op_] = record_;
            in_table_ = false;
        } else if (in_table_ && (at = std::strpbrk(text, "0123456789")) != nullptr &&
                   std::sscanf(at, "%*d, %*f, %*f, %*f, %128[^,], %128[^,]", a, b) == 2) {
            record_.tactics[b] = a;
        }
    }
    std::map<std::string, Record> table;

private:
    std::string op_;
    Record record_;
    bool in_table_ = false;
};

static std::unique_ptr<INetworkDefinition> make_network(IBuilder& builder) {
    std::unique_ptr<INetworkDefinition> n(builder.createNetworkV2(0));
    ITensor* input = n->addInput("input", DataType::kFLOAT, Dims2{128, 128});
    ITensor* weight1 = n->addInput("weight1", DataType::kFLOAT, Dims2{128, 128});
    ITensor* weight2 = n->addInput("weight2", DataType::kFLOAT, Dims2{128, 128});
    auto none = MatrixOperation::kNONE;
    ILayer* first = n->addMatrixMultiply(*input, none, *weight1, none);
    ILayer* softmax = n->addSoftMax(*first->getOutput(0));
    ILayer* second = n->addMatrixMultiply(*softmax->getOutput(0), none, *weight2, none);
    n->markOutput(*second->getOutput(0));
    first->setName("matMul1");
    softmax->setName("softmax");
    second->setName("matMul2");
    return n;
}

/// The kernel of the layer whose name begins so.
static std::string kernel_of(const ICudaEngine& engine, const std::string& op) {
    std::unique_ptr<IEngineInspector> inspector(engine.createEngineInspector());
    for (int32_t i = 0; i < engine.getNbLayers(); ++i) {
        std::string line = inspector->getLayerInformation(i, LayerInformationFormat::kONELINE);
        char layer[129] = {};
        char kernel[129] = {};
        size_t name = line.find("Name: ");
        size_t tactic = line.find("TacticName: ");
        if (name != std::string::npos && tactic != std::string::npos &&
            std::sscanf(line.c_str() + name + 6, "%128[^,]", layer) == 1 &&
            std::sscanf(line.c_str() + tactic + 12, "%128[^,]", kernel) == 1 &&
            std::string(layer).rfind(op, 0) == 0) {
            return kernel;
        }
    }
    return "";
}

static void choose(ITimingCache& cache, const std::string& key_text, const std::string& tactic) {
    TimingCacheKey key{};
    NEED(key_text.size() == 2 + 2 * sizeof key.data);
    for (size_t i = 0; i < sizeof key.data; ++i) {
        key.data[i] = static_cast<uint8_t>(std::stoul(key_text.substr(2 + 2 * i, 2), nullptr, 16));
    }
    TimingCacheValue value{std::stoull(tactic.substr(2), nullptr, 16), 1.0F};
    NEED(cache.update(key, value));
}

int main() {
    TimingReader logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    auto network = make_network(*builder);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    config->setFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
    NEED(cache);
    NEED(config->setTimingCache(*cache, true));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    auto build = [&] {
        std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        NEED(plan);
        return std::unique_ptr<ICudaEngine>(
            runtime->deserializeCudaEngine(plan->data(), plan->size()));
    };
    auto engine = build();
    NEED(engine);
    std::printf("kernel: %s\n", kernel_of(*engine, "matMul1").c_str());
    const Record& record = logger.table["matMul1"];
    for (const auto& [hash, kernel] : record.tactics) {
        if (hash != record.selected) {
            choose(*cache, record.key, hash);
            auto second = build();
            NEED(second && kernel_of(*second, "matMul1") == kernel);
            std::printf("now: %s\n", kernel.c_str());
            return 0;
        }
    }
    std::printf("one tactic\n");
    return 3;
}
