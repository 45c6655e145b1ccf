// SPDX-License-Identifier: Apache-2.0
// Instances on a GPU whose memory the host cannot access: a copy on the wrong side ends the test.
#include "plugins/triton/model.h"
#include "tests/triton/scene.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <future>
#include <thread>

namespace ingot::triton {
namespace {

struct TritonOnAGpu : testing::Test {
    /// The scene's GPU; the model must be loaded.
    static std::shared_ptr<DeviceMemory> memory(const Scene& scene) {
        return static_cast<Model*>(scene.model.state)->gpus().open(0);
    }
    static std::string start(Scene& scene, int instances = 1) {
        scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
        return scene.start(instances);
    }
    SimulatedGpu simulated;
};

/// Moves a request's input to the GPU, in the same pieces. The memory is the GPU's to free.
void move_input(TRITONBACKEND_Request& request, DeviceMemory& gpu) {
    TRITONBACKEND_Input& in = request.inputs[0];
    for (const std::vector<char>& b : in.buffers) {
        void* there = gpu.allocate(b.size());
        gpu.copy(there, b.data(), b.size(), nullptr);
        in.gpu_buffers.emplace_back(there, b.size());
    }
    in.memory = TRITONSERVER_MEMORY_GPU;
}

/// Brings results in the GPU's memory, and the input, back to where expect_right() reads them.
void bring_back(TRITONBACKEND_Request& request, DeviceMemory& gpu) {
    for (auto& [name, output] : request.results) {
        ASSERT_EQ(output.memory, TRITONSERVER_MEMORY_GPU) << name;
        size_t count = 1;
        for (int64_t d : output.shape) {
            count *= static_cast<size_t>(d);
        }
        output.bytes.resize(count * sizeof(float));
        gpu.copy(output.bytes.data(), output.gpu_buffer, output.bytes.size(), nullptr);
    }
}

TEST_F(TritonOnAGpu, RequestsOfTheHostAreOneRun) {
    Scene scene(row_engine(8));
    ASSERT_EQ(start(scene, 2), "");
    for (size_t instance : {0U, 1U}) {
        auto a = row_request(1, 1);
        auto b = row_request(4, 2);
        ASSERT_EQ(scene.execute({a.get(), b.get()}, instance), "");
        expect_right(*a);
        expect_right(*b);
        EXPECT_EQ(scene.instances[instance]->batches, 1U);
    }
    EXPECT_EQ(FakeHost::get().values.at("ingot_padded_rows{model=model,version=1}"), 6);
}

TEST_F(TritonOnAGpu, InputsAndOutputsStayInItsMemory) {
    Scene scene(row_engine(8));
    ASSERT_EQ(start(scene), "");
    std::shared_ptr<DeviceMemory> gpu = memory(scene);
    FakeHost::get().gpu_allocate = [&](size_t bytes) { return gpu->allocate(bytes); };
    auto there = row_request(3, 3);
    move_input(*there, *gpu);
    there->output_memory = TRITONSERVER_MEMORY_GPU;
    auto here = row_request(2, 4);
    auto half = row_request(1, 5);
    half->output_memory = TRITONSERVER_MEMORY_GPU;
    ASSERT_EQ(scene.execute({here.get(), there.get(), half.get()}), "");
    for (auto* r : {there.get(), half.get()}) {
        ASSERT_FALSE(r->answered_error) << r->text;
        bring_back(*r, *gpu);
    }
    expect_right(*here);
    expect_right(*there);
    expect_right(*half);
    EXPECT_EQ(scene.instances[0]->batches, 1U);
    FakeHost::get().gpu_allocate = nullptr;
}

TEST_F(TritonOnAGpu, CopiesOfOneBatchOverlapTheRunOfAnother) {
    constexpr float slow = 77;
    std::promise<void> begun;
    std::promise<void> other_is_answered;
    auto wait = [&] {
        begun.set_value();
        return other_is_answered.get_future().wait_for(std::chrono::minutes(1)) ==
               std::future_status::ready;
    };
    Scene scene(function_engine([&](const float* x, float* y, int64_t) {
        y[0] = 2 * x[0];
        return x[0] != slow || wait() ? 0 : 1;
    }));
    ASSERT_EQ(start(scene, 2), "");
    auto run = [&](float value, size_t instance) {
        TRITONBACKEND_Request request;
        request.inputs.push_back(float_input("x", {1, 1}, {value}));
        request.outputs = {"y"};
        EXPECT_EQ(scene.execute({&request}, instance), "");
        EXPECT_FALSE(request.answered_error) << request.text;
        EXPECT_EQ(floats(request.results["y"]), std::vector<float>{2 * value});
    };
    std::thread first([&] { run(slow, 0); });
    EXPECT_EQ(begun.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
    run(5, 1); // its input goes there, and its output comes back
    other_is_answered.set_value();
    first.join();
}

// The simulated GPU takes stream-ordered copies from and to pinned memory, and no others.
TEST_F(TritonOnAGpu, InputsAndOutputsMayBeInPinnedMemory) {
    Scene scene(row_engine(8));
    ASSERT_EQ(start(scene), "");
    std::shared_ptr<DeviceMemory> gpu = memory(scene);
    std::vector<void*> pinned;
    auto allocate = [&](size_t bytes) {
        pinned.push_back(gpu->allocate_pinned(bytes));
        return pinned.back();
    };
    FakeHost::get().gpu_allocate = allocate;
    auto there = row_request(3, 3);
    for (const std::vector<char>& b : there->inputs[0].buffers) {
        void* copy = allocate(b.size());
        std::memcpy(copy, b.data(), b.size());
        there->inputs[0].gpu_buffers.emplace_back(copy, b.size());
    }
    there->inputs[0].memory = TRITONSERVER_MEMORY_CPU_PINNED;
    there->output_memory = TRITONSERVER_MEMORY_CPU_PINNED;
    auto here = row_request(2, 4);
    ASSERT_EQ(scene.execute({here.get(), there.get()}), "");
    ASSERT_FALSE(there->answered_error) << there->text;
    for (auto& [name, output] : there->results) {
        ASSERT_EQ(output.memory, TRITONSERVER_MEMORY_CPU_PINNED) << name;
        const char* data = static_cast<const char*>(output.gpu_buffer);
        size_t columns = static_cast<size_t>(output.shape.at(1));
        output.bytes.assign(data, data + 3 * columns * sizeof(float));
    }
    expect_right(*here);
    expect_right(*there);
    EXPECT_EQ(scene.instances[0]->batches, 1U);
    FakeHost::get().gpu_allocate = nullptr;
    for (void* memory : pinned) {
        gpu->release_pinned(memory);
    }
}

/// Cuts a request's input into pieces of odd sizes, as large bodies come.
void cut_input(TRITONBACKEND_Request& request) {
    std::vector<char> all;
    for (const std::vector<char>& b : request.inputs[0].buffers) {
        all.insert(all.end(), b.begin(), b.end());
    }
    request.inputs[0].buffers.clear();
    size_t size = 1;
    for (size_t at = 0; at < all.size();) {
        size_t end = std::min(at + size, all.size());
        request.inputs[0].buffers.emplace_back(all.begin() + static_cast<ptrdiff_t>(at),
                                               all.begin() + static_cast<ptrdiff_t>(end));
        at = end;
        size = size * 7 % 8191 + 1;
    }
}

TEST_F(TritonOnAGpu, LargeBodiesInManyPiecesArriveWhole) {
    Scene scene(row_engine(1 << 18), R"({"parameters":{"buckets":{"string_value":"none"}}})");
    ASSERT_EQ(start(scene), "");
    std::shared_ptr<DeviceMemory> gpu = memory(scene);
    for (int64_t rows : {1, 5461, 5462, 100'003}) { // 64 KiB are 5461.33 rows
        SCOPED_TRACE(rows);
        auto a = row_request(rows, 1);
        auto there = row_request(3, 2); // its input is on the GPU already, between the others
        auto b = row_request(rows, 3);
        cut_input(*a);
        cut_input(*b);
        move_input(*there, *gpu);
        ASSERT_EQ(scene.execute({a.get(), there.get(), b.get()}), "");
        expect_right(*a);
        expect_right(*there);
        expect_right(*b);
    }
}

// The simulated GPU refuses stream-ordered copies into pageable memory. Requests that leave an
// output out, or want it on the GPU, leave gaps between those that are fetched together.
TEST_F(TritonOnAGpu, OutputsForPageableMemoryComeThroughPinnedMemory) {
    Scene scene(row_engine(1 << 16), R"({"parameters":{"buckets":{"string_value":"none"}}})");
    ASSERT_EQ(start(scene), "");
    std::shared_ptr<DeviceMemory> gpu = memory(scene);
    FakeHost::get().gpu_allocate = [&](size_t bytes) { return gpu->allocate(bytes); };
    for (int64_t rows : {1, 7, 5462, 12'001}) { // 64 KiB are 5461.33 rows of 'twice'
        SCOPED_TRACE(rows);
        auto a = row_request(rows, 1);
        auto b = row_request(rows, 2);
        auto without = row_request(3, 3);
        without->outputs = {"sum"};
        auto there = row_request(2, 4);
        there->output_memory = TRITONSERVER_MEMORY_GPU;
        auto c = row_request(rows, 5);
        ASSERT_EQ(scene.execute({a.get(), b.get(), without.get(), there.get(), c.get()}), "");
        bring_back(*there, *gpu);
        for (const auto& r : {&a, &b, &without, &there, &c}) {
            expect_right(**r);
        }
    }
    FakeHost::get().gpu_allocate = nullptr;
}

/// Bytes of the simulated GPU while it lives.
class Room {
public:
    explicit Room(size_t bytes) {
        setenv("INGOT_SIMULATED_GPU_MEMORY", str(bytes).c_str(),
               1); // NOLINT(concurrency-mt-unsafe)
    }
    ~Room() { unsetenv("INGOT_SIMULATED_GPU_MEMORY"); } // NOLINT(concurrency-mt-unsafe)
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
};

int64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    int64_t all = 0;
    int64_t pages = 0;
    file >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

/// Bytes of GPU memory that the model's metric shows.
double device_bytes() {
    return FakeHost::get().values.at("ingot_device_bytes{model=model,version=1}");
}

TEST_F(TritonOnAGpu, ItsMemoryIsCountedAndReported) {
    Scene scene(row_engine(64));
    ASSERT_EQ(start(scene, 2), "");
    for (const auto& instance : scene.instances) {
        ASSERT_EQ(instance->memory.size(), 1U);
        EXPECT_EQ(instance->memory[0].memory, TRITONSERVER_MEMORY_GPU);
        EXPECT_EQ(instance->memory[0].bytes, 768U + 256U + 768U); // x, sum, twice of 64 rows
    }
    EXPECT_EQ(device_bytes(), 2 * 1792);
    scene.stop();
    EXPECT_EQ(device_bytes(), 0);
}

TEST_F(TritonOnAGpu, AnInstanceThatFailsHoldsNoMemory) {
    Scene scene(row_engine(64));
    ASSERT_EQ(start(scene, 1), "");
    FakeHost& host = FakeHost::get();
    host.calls = 0;
    bool reached = true;
    for (int64_t call = 1; reached; ++call) {
        TRITONBACKEND_ModelInstance instance;
        instance.model = &scene.model;
        instance.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
        host.calls = 0;
        host.failing_call = call;
        std::string text = text_of(TRITONBACKEND_ModelInstanceInitialize(&instance));
        reached = host.calls >= call;
        host.failing_call = 0;
        if (instance.state != nullptr) {
            EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(&instance)), "");
        }
        auto again = std::make_unique<TRITONBACKEND_ModelInstance>();
        again->model = &scene.model;
        again->kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
        ASSERT_EQ(text_of(TRITONBACKEND_ModelInstanceInitialize(again.get())), "");
        EXPECT_EQ(device_bytes(), 2 * 1792) << text;
        EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(again.get())), "");
        ASSERT_LT(call, 100);
    }
}

TEST_F(TritonOnAGpu, EveryRowCountGetsItsAnswer) {
    for (const char* config : {"{}", R"({"parameters":{"buckets":{"string_value":"none"}}})"}) {
        Scene scene(row_engine(9), config);
        ASSERT_EQ(start(scene), "");
        for (int64_t rows = 1; rows <= 9; ++rows) {
            auto r = row_request(rows, static_cast<unsigned>(rows));
            ASSERT_EQ(scene.execute({r.get()}), "");
            expect_right(*r);
        }
    }
}

TEST_F(TritonOnAGpu, TooLittleMemoryAtLoadRefusesTheModelAlone) {
    Room room(1024); // an instance needs 1792 bytes
    Scene scene(row_engine(64));
    EXPECT_EQ(start(scene), "4 instance 'model_0': IExecutionContext::enqueueV3: the allocator of "
                            "output 'twice' gave no memory for 768 bytes");
    EXPECT_EQ(device_bytes(), 0);
}

TEST_F(TritonOnAGpu, TooLittleMemoryAtARunRefusesTheRequestAlone) {
    Room room(4096);
    Scene scene(row_engine(1 << 16), R"({"parameters":{"buckets":{"string_value":"1"}}})");
    ASSERT_EQ(start(scene), "");
    for (int round = 0; round < 3; ++round) {
        auto large = row_request(1000, 1);
        ASSERT_EQ(scene.execute({large.get()}), "");
        EXPECT_TRUE(large->answered_error);
        EXPECT_EQ(large->code, TRITONSERVER_ERROR_UNAVAILABLE);
        EXPECT_EQ(large->text, "the simulated GPU has no 12032 bytes left");
        auto small = row_request(4, 2);
        ASSERT_EQ(scene.execute({small.get()}), "");
        expect_right(*small);
    }
}

TEST_F(TritonOnAGpu, AThousandLoadsHalfOfThemFailingGiveTheirBytesBack) {
    Scene scene(row_engine(64));
    ASSERT_EQ(start(scene, 0), "");
    FakeHost& host = FakeHost::get();
    double before = device_bytes();
    int failed = 0;
    int64_t resident = 0;
    for (int load = 0; load < 1000; ++load) {
        TRITONBACKEND_ModelInstance instance;
        instance.model = &scene.model;
        instance.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
        host.calls = 0;
        host.failing_call = load % 2 == 0 ? 0 : 1 + load / 2 % 4; // of the calls that it makes
        std::string text = text_of(TRITONBACKEND_ModelInstanceInitialize(&instance));
        host.failing_call = 0;
        failed += text.empty() ? 0 : 1;
        if (instance.state != nullptr) {
            EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(&instance)), "");
        }
        EXPECT_EQ(device_bytes(), before) << load;
        if (load == 99) {
            resident = resident_bytes();
        }
    }
    EXPECT_EQ(failed, 500);
    EXPECT_LT(resident_bytes() - resident, int64_t{2} << 20);
}

TEST_F(TritonOnAGpu, ARequestThatIsWrongFailsAlone) {
    Scene scene(row_engine(8));
    ASSERT_EQ(start(scene), "");
    auto good = row_request(2, 1);
    auto bad = row_request(9, 2);
    ASSERT_EQ(scene.execute({bad.get(), good.get()}), "");
    EXPECT_EQ(bad->text, "the request has 9 rows, at most 8 are allowed");
    expect_right(*good);
}

TEST(TritonGpus, AreTakenBeforeTheCpu) {
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start_backend(), "");
    TRITONBACKEND_BackendAttribute attributes;
    ASSERT_EQ(text_of(TRITONBACKEND_GetBackendAttribute(&scene.backend, &attributes)), "");
    EXPECT_EQ(attributes.kinds, (std::vector{TRITONSERVER_INSTANCEGROUPKIND_GPU,
                                             TRITONSERVER_INSTANCEGROUPKIND_CPU}));
    EXPECT_TRUE(attributes.loads_in_parallel);
}

TEST(TritonGpus, OneThatIsNotThereIsNamed) {
    std::string problem;
    size_t count = find_gpus(problem).size();
    Scene scene(row_engine(8));
    ASSERT_EQ(scene.start(0), "");
    auto instance = std::make_unique<TRITONBACKEND_ModelInstance>();
    instance->model = &scene.model;
    instance->kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    instance->device = 99;
    std::string text = text_of(TRITONBACKEND_ModelInstanceInitialize(instance.get()));
    EXPECT_EQ(text, problem.empty()
                        ? "1 instance 'model_0': there is no GPU 99: the driver has " +
                              std::to_string(count)
                        : "1 instance 'model_0': GPU 99 cannot be used: " + problem +
                              ". Serve from the CPU by kind: KIND_CPU in instance_group");
}

} // namespace
} // namespace ingot::triton
