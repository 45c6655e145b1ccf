// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleProgressMonitor: a monitor with nested phases, a timing cache in a
// file, a run on a stream. MODEL IMAGE CACHE.
#include "common.h"

#include <mutex>

using namespace nvinfer1;
using namespace samples;

/// Keeps the open phases, and checks that each is what its documentation says.
class Monitor : public IProgressMonitor {
public:
    void phaseStart(const char* name, const char* parent, int32_t steps) noexcept override {
        std::scoped_lock lock(mutex_);
        NEED(steps > 0 && open(name) == nullptr);
        NEED(parent == nullptr || open(parent) != nullptr);
        phases_.push_back({name, parent == nullptr ? 0 : open(parent)->indents + 1, steps});
        deepest = std::max(deepest, phases_.back().indents);
        ++started;
    }
    bool stepComplete(const char* name, int32_t step) noexcept override {
        std::scoped_lock lock(mutex_);
        NEED(open(name) != nullptr && step >= 0 && step < open(name)->steps);
        ++completed;
        return true;
    }
    void phaseFinish(const char* name) noexcept override {
        std::scoped_lock lock(mutex_);
        NEED(open(name) != nullptr);
        phases_.erase(phases_.begin() + (open(name) - phases_.data()));
        ++finished;
    }
    int started = 0;
    int completed = 0;
    int finished = 0;
    int deepest = 0;

private:
    struct Phase {
        std::string name;
        int indents;
        int32_t steps;
    };
    Phase* open(const char* name) {
        auto at = std::find_if(phases_.begin(), phases_.end(),
                               [&](const Phase& p) { return p.name == name; });
        return at == phases_.end() ? nullptr : &*at;
    }
    std::mutex mutex_;
    std::vector<Phase> phases_;
};

static std::unique_ptr<ITimingCache> cache_from(const char* path, IBuilderConfig& config) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::unique_ptr<ITimingCache> cache(config.createTimingCache(bytes.data(), bytes.size()));
    NEED(cache);
    NEED(config.setTimingCache(*cache, true));
    return cache;
}

static void update_file(const char* path, const ITimingCache& cache, IBuilder& builder) {
    std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
    auto whole = cache_from(path, *config);
    NEED(whole->combine(cache, true));
    std::unique_ptr<IHostMemory> blob(whole->serialize());
    NEED(blob);
    std::ofstream out(path, std::ios::binary);
    out.write(static_cast<const char*>(blob->data()), static_cast<std::streamsize>(blob->size()));
    std::printf("timing cache %s\n", out ? "written" : "lost");
}

int main(int argc, char** argv) {
    NEED(argc == 4);
    Logger logger;
    Monitor monitor;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    NEED(parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kWARNING)));
    config->setProgressMonitor(&monitor);
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    Stream stream;
    config->setProfileStream(stream);
    auto cache = cache_from(argv[3], *config);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    NEED(plan);
    update_file(argv[3], *cache, *builder);
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);
    NEED(monitor.started > 1 && monitor.started == monitor.finished);
    NEED(monitor.completed >= monitor.finished && monitor.deepest > 0);

    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    NEED(context);
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (int32_t i = 0; i < engine->getNbIOTensors(); ++i) {
        const char* name = engine->getIOTensorName(i);
        auto count = static_cast<size_t>(volume(engine->getTensorShape(name)));
        buffers.push_back(std::make_unique<Buffer>(count * sizeof(float)));
        NEED(context->setTensorAddress(name, buffers.back()->get()));
    }
    std::vector<float> image = read_floats(argv[2]);
    NEED(cudaMemcpyAsync(buffers[0]->get(), image.data(), image.size() * sizeof(float), to_device,
                         stream) == 0);
    NEED(context->enqueueV3(stream));
    NEED(cudaStreamSynchronize(stream) == 0);
    print_prediction(buffers[1]->read<float>());
    return 0;
}
