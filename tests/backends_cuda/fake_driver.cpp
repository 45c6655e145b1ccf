// SPDX-License-Identifier: Apache-2.0
#include "backends_cuda/fake_driver.h"

#include "backends/cuda/nvidia_gpu.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace ingot::test::fake {

using namespace cuda;

namespace {

constexpr CUresult bad_value = 1;

struct State {
    int64_t memory = 0;
    int64_t used = 0;
    int64_t calls = 0;
    int64_t failing = 0; // the call, counted as `calls`
    CUresult error = 0;
    bool forever = false;
    double waited = 0;
    std::map<const void*, std::pair<std::string, int64_t>> living; // kind, bytes
    std::vector<std::pair<void (*)(void*), void*>> queued;         // host functions
    bool capturing = false;
};

State& state() {
    static State s;
    return s;
}

/// Counts a call that asks for work or memory, and says how it ends.
CUresult asked() {
    State& s = state();
    ++s.calls;
    bool fails = s.failing != 0 && (s.forever ? s.calls >= s.failing : s.calls == s.failing);
    return fails ? s.error : 0;
}

template <class T>
CUresult make(T* out, const char* kind, int64_t bytes = 1) {
    if (CUresult r = asked(); r != 0) {
        return r;
    }
    State& s = state();
    bool counts = std::string_view(kind) == "buffer";
    if (counts && bytes > s.memory - s.used) {
        return out_of_memory;
    }
    constexpr size_t alignment = 256;
    size_t size = (static_cast<size_t>(bytes) + alignment) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, size);
    if (counts) {
        std::memset(p, 0, size);
    }
    s.used += counts ? bytes : 0;
    s.living[p] = {kind, counts ? bytes : 0};
    std::memcpy(out, &p, sizeof p);
    return 0;
}

template <class T>
CUresult end(T thing) {
    void* p = nullptr;
    std::memcpy(&p, &thing, sizeof p);
    State& s = state();
    auto it = s.living.find(p);
    if (it == s.living.end()) {
        return bad_value;
    }
    s.used -= it->second.second;
    s.living.erase(it);
    std::free(p);
    return 0;
}

CUresult run_queued() {
    State& s = state();
    auto start = std::chrono::steady_clock::now();
    for (auto [f, data] : std::exchange(s.queued, {})) {
        f(data);
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    s.waited += took.count();
    return 0;
}

CUresult attribute(int* value, int which, CUdevice) {
    switch (static_cast<DeviceAttribute>(which)) {
    case DeviceAttribute::ComputeCapabilityMajor:
        *value = 9;
        break;
    case DeviceAttribute::ComputeCapabilityMinor:
        *value = 0;
        break;
    case DeviceAttribute::MaxThreadsPerMultiprocessor:
        *value = 2048;
        break;
    case DeviceAttribute::MultiprocessorCount:
        *value = 132;
        break;
    case DeviceAttribute::MaxSharedPerBlockOptin:
    case DeviceAttribute::MaxSharedPerMultiprocessor:
        *value = 227 << 10;
        break;
    default:
        *value = 50 << 20;
    }
    return 0;
}

void* at(CUdeviceptr p) {
    return reinterpret_cast<void*>(p);
}

CUresult moved(void* to, const void* from, size_t bytes) {
    CUresult r = asked();
    if (r == 0 && !state().capturing) {
        std::memcpy(to, from, bytes);
    }
    return r;
}

void set_up_memory(Driver& d) {
    d.mem_info = [](size_t* free, size_t* total) {
        *free = static_cast<size_t>(state().memory - state().used);
        *total = static_cast<size_t>(state().memory);
        return 0;
    };
    d.mem_alloc = [](CUdeviceptr* p, size_t bytes) {
        return make(p, "buffer", static_cast<int64_t>(bytes));
    };
    d.mem_free = [](CUdeviceptr p) { return end(p); };
    d.mem_alloc_host = [](void** p, size_t bytes) {
        return make(p, "host buffer", static_cast<int64_t>(bytes));
    };
    d.mem_free_host = [](void* p) { return end(p); };
    d.copy_to_device = [](CUdeviceptr to, const void* from, size_t n, CUstream) {
        return moved(at(to), from, n);
    };
    d.copy_to_host = [](void* to, CUdeviceptr from, size_t n, CUstream) {
        return moved(to, at(from), n);
    };
    d.copy_on_device = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) {
        return moved(at(to), at(from), n);
    };
    d.fill = [](CUdeviceptr to, unsigned char byte, size_t n, CUstream) {
        std::vector<unsigned char> bytes(n, byte);
        return moved(at(to), bytes.data(), n);
    };
}

void set_up_work(Driver& d) {
    d.module_load = [](CUmodule* m, const void*) { return make(m, "module"); };
    d.module_unload = [](CUmodule m) { return end(m); };
    d.module_function = [](CUfunction* f, CUmodule, const char*) {
        *f = nullptr;
        return asked();
    };
    d.function_set = [](CUfunction, int, int) { return asked(); };
    d.launch = [](const CUlaunchConfig*, CUfunction, void**, void**) { return asked(); };
    d.launch_host = [](CUstream, void (*f)(void*), void* data) {
        CUresult r = asked();
        if (r == 0) {
            state().queued.emplace_back(f, data);
        }
        return r;
    };
    d.stream_create = [](CUstream* s, unsigned int) { return make(s, "stream"); };
    d.stream_destroy = [](CUstream s) { return end(s); };
    d.stream_synchronize = [](CUstream) {
        run_queued();
        return asked();
    };
    d.begin_capture = [](CUstream, int) {
        CUresult r = asked();
        state().capturing = r == 0;
        return r;
    };
    d.end_capture = [](CUstream, CUgraph* g) {
        state().capturing = false;
        return make(g, "graph");
    };
    d.graph_instantiate = [](CUgraphExec* e, CUgraph, unsigned long long) {
        return make(e, "executable graph");
    };
    d.graph_launch = [](CUgraphExec, CUstream) { return asked(); };
    d.graph_destroy = [](CUgraph g) { return g == nullptr ? 0 : end(g); };
    d.graph_exec_destroy = [](CUgraphExec e) { return end(e); };
    d.event_create = [](CUevent* e, unsigned int) { return make(e, "event"); };
    d.event_destroy = [](CUevent e) { return end(e); };
    d.stream_wait_event = [](CUstream, CUevent, unsigned int) { return asked(); };
    d.event_record = [](CUevent, CUstream) { return asked(); };
    d.event_synchronize = [](CUevent) { return asked(); };
    d.event_elapsed = [](float* ms, CUevent, CUevent) {
        *ms = 0.25F;
        return asked();
    };
}

const Driver& driver() {
    static const Driver fake = [] {
        Driver d{};
        d.driver_version = [](int* v) {
            *v = 13000;
            return 0;
        };
        d.device_name = [](char* text, int size, CUdevice) {
            std::strncpy(text, "Fake GPU", static_cast<size_t>(size));
            return 0;
        };
        d.device_attribute = attribute;
        d.primary_retain = [](CUcontext* c, CUdevice) {
            static int context;
            *c = reinterpret_cast<CUcontext>(&context);
            return 0;
        };
        d.set_current = [](CUcontext) { return 0; };
        d.error_name = [](CUresult r, const char** text) {
            *text = r == out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
            return 0;
        };
        d.error_string = [](CUresult r, const char** text) {
            *text = r == out_of_memory ? "out of memory" : "a made-up failure";
            return 0;
        };
        d.encode_tiled = [](CUtensorMap*, int, unsigned int, void*, const uint64_t*,
                            const uint64_t*, const uint32_t*, const uint32_t*, int, int, int,
                            int) { return asked(); };
        set_up_memory(d);
        set_up_work(d);
        return d;
    }();
    return fake;
}

/// Leaves the text of kernels as it is.
class TextGpu : public Gpu {
public:
    TextGpu() : gpu_(make_nvidia_gpu(driver(), 0)) {}
    const kernels::Arch& arch() const override { return gpu_->arch(); }
    std::string description() const override { return gpu_->description(); }
    std::string compiler() const override { return "none"; }
    std::string compile(const std::string& text) const override { return text; }
    std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                         int64_t shared) override {
        return gpu_->load(binary, entry, shared);
    }
    std::unique_ptr<Stream> create_stream() override { return gpu_->create_stream(); }
    std::byte* allocate(int64_t bytes) override { return gpu_->allocate(bytes); }
    void release(std::byte* memory) noexcept override { gpu_->release(memory); }
    int64_t free_bytes() const override { return gpu_->free_bytes(); }
    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override {
        gpu_->encode(map, base, encoded);
    }

private:
    std::unique_ptr<Gpu> gpu_;
};

} // namespace

void reset(int64_t memory) {
    State& s = state();
    for (const auto& [p, what] : s.living) {
        std::free(const_cast<void*>(p));
    }
    s = {};
    s.memory = memory;
}

void fail_call(int64_t n, CUresult error, bool forever) {
    State& s = state();
    s.failing = n == 0 ? 0 : s.calls + n;
    s.error = error;
    s.forever = forever;
}

int64_t calls() {
    return state().calls;
}

std::string alive() {
    std::map<std::string, int> counts;
    for (const auto& [p, what] : state().living) {
        ++counts[what.first];
    }
    std::string text;
    for (const auto& [kind, n] : counts) {
        text += str(text.empty() ? "" : ", ", n, ' ', kind, n > 1 ? "s" : "");
    }
    return text;
}

double waited() {
    return state().waited;
}

std::unique_ptr<Gpu> make_gpu() {
    return std::make_unique<TextGpu>();
}

} // namespace ingot::test::fake
