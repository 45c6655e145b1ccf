// SPDX-License-Identifier: Apache-2.0
#include "backends_cuda/fake_driver.h"

#include "backends_cuda/fake_state.h"
#include "base/allocation_count.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace ingot::test::fake {

using namespace cuda;

namespace {

constexpr CUresult bad_value = 1;

constexpr int device_count = 3;

/// Stand for the primary contexts of the devices.
int* contexts() {
    static int all[device_count];
    return all;
}

CUcontext& current_context() {
    thread_local CUcontext current = nullptr;
    return current;
}

/// Counts a call that asks for work or memory, and says how it ends.
CUresult asked() {
    const Locked s = state();
    ++s->calls;
    bool fails = s->failing != 0 && (s->forever ? s->calls >= s->failing : s->calls == s->failing);
    return fails ? s->error : 0;
}

template <class T>
CUresult make(T* out, const char* kind, int64_t bytes = 1) {
    AllocationsSucceed own;
    if (CUresult r = asked(); r != 0) {
        return r;
    }
    const Locked s = state();
    bool counts = std::string_view(kind) == "buffer";
    if (counts && bytes > s->memory - s->used) {
        return out_of_memory;
    }
    constexpr size_t alignment = 256;
    size_t size = (static_cast<size_t>(bytes) + alignment) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, size);
    if (counts) {
        std::memset(p, 0, size);
    }
    s->used += counts ? bytes : 0;
    s->living[p] = {kind, counts ? bytes : 0};
    std::memcpy(out, &p, sizeof p);
    return 0;
}

template <class T>
CUresult end(T thing) {
    void* p = nullptr;
    std::memcpy(&p, &thing, sizeof p);
    const Locked s = state();
    auto it = s->living.find(p);
    if (it == s->living.end()) {
        return bad_value;
    }
    s->used -= it->second.second;
    s->living.erase(it);
    std::free(p);
    return 0;
}

CUresult run_queued() {
    auto start = std::chrono::steady_clock::now();
    for (auto [f, data] : std::exchange(state()->queued, {})) {
        f(data);
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    state()->waited += took.count();
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
    if (r == 0 && !state()->capturing) {
        std::memcpy(to, from, bytes);
    }
    return r;
}

bool is_joined(CUstream s) {
    const Locked all = state();
    return s != nullptr && (s == all->captured || std::find(all->joined.begin(), all->joined.end(),
                                                            s) != all->joined.end());
}

const char* mark_of(CUstream s) {
    return is_joined(s) ? " (captured)" : "";
}

/// Notes what a stream was asked, with whether it is captured.
template <class... Text>
CUresult noted(CUstream s, const Text&... text) {
    AllocationsSucceed own;
    CUresult r = asked();
    if (r == 0 && state()->keeps_log) {
        state()->log.push_back(str(text..., mark_of(s)));
    }
    return r;
}

int priority_of(CUstream s) {
    const Locked all = state();
    auto it = all->priorities.find(s);
    return it == all->priorities.end() ? 0 : it->second;
}

void note_work(CUstream s, const char* what) {
    AllocationsSucceed own;
    const Locked all = state();
    if (all->keeps_work) {
        const char* recorded = all->capturing ? "recorded " : "";
        all->work.push_back(str(recorded, what, " at ", priority_of(s)));
    }
}

/// By the order in which streams first occur in the log.
size_t number_of(CUstream s) {
    const Locked locked = state();
    std::vector<CUstream>& all = locked->numbered;
    auto it = std::find(all.begin(), all.end(), s);
    if (it == all.end()) {
        it = all.insert(it, s);
    }
    return static_cast<size_t>(it - all.begin()) + 1;
}

/// A launch that succeeded; those of captures are not ordered.
void order_launch(CUstream s) {
    AllocationsSucceed own;
    const Locked all = state();
    if (all->keeps_log && !all->capturing && !is_joined(s)) {
        all->order.launch(s);
    }
}

void set_up_contexts(Driver& d) {
    d.device_count = [](int* n) {
        *n = device_count;
        return 0;
    };
    d.device_get = [](CUdevice* device, int i) {
        *device = first_handle + i;
        return 0;
    };
    d.primary_retain = [](CUcontext* c, CUdevice device) {
        *c = reinterpret_cast<CUcontext>(contexts() + device - first_handle);
        return 0;
    };
    d.set_current = [](CUcontext c) {
        current_context() = c;
        return 0;
    };
    d.get_current = [](CUcontext* c) {
        *c = current_context();
        return 0;
    };
    d.current_device = [](CUdevice* device) {
        if (current_context() == nullptr) {
            return bad_value;
        }
        *device =
            first_handle + static_cast<int>(reinterpret_cast<int*>(current_context()) - contexts());
        return 0;
    };
    d.set_limit = [](int limit, size_t bytes) {
        if (limit != limit_persisting_l2 || current_context() == nullptr) {
            return bad_value;
        }
        state()->set_aside = bytes;
        return 0;
    };
}

void set_up_memory(Driver& d) {
    d.mem_info = [](size_t* free, size_t* total) {
        *free = static_cast<size_t>(state()->memory - state()->used);
        *total = static_cast<size_t>(state()->memory);
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
    d.copy_to_device = [](CUdeviceptr to, const void* from, size_t n, CUstream s) {
        AllocationsSucceed own;
        CUresult r = moved(at(to), from, n);
        note_work(s, "upload");
        if (r == 0 && state()->keeps_log) {
            state()->log.push_back(str("upload on stream ", number_of(s), mark_of(s)));
        }
        return r;
    };
    d.copy_to_host = [](void* to, CUdeviceptr from, size_t n, CUstream) {
        return moved(to, at(from), n);
    };
    d.copy_on_device = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) {
        return moved(at(to), at(from), n);
    };
    d.fill = [](CUdeviceptr to, unsigned char byte, size_t n, CUstream) {
        AllocationsSucceed own;
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
    d.launch = [](const CUlaunchConfig* c, CUfunction, void**, void**) {
        AllocationsSucceed own;
        constexpr CUresult bad_context = 201;
        auto owner = state()->owners.find(c->stream); // a caller's stream has none
        if (owner != state()->owners.end() && owner->second != current_context()) {
            return bad_context;
        }
        note_work(c->stream, "launch");
        CUresult r = noted(c->stream, "launch");
        if (r == 0) {
            order_launch(c->stream);
        }
        return r;
    };
    d.launch_host = [](CUstream, void (*f)(void*), void* data) {
        AllocationsSucceed own;
        CUresult r = asked();
        if (r == 0) {
            state()->queued.emplace_back(f, data);
        }
        return r;
    };
    d.begin_capture = [](CUstream, int) {
        CUresult r = asked();
        state()->capturing = r == 0;
        return r;
    };
    d.end_capture = [](CUstream, CUgraph* g) {
        state()->capturing = false;
        return make(g, "graph");
    };
    d.graph_instantiate = [](CUgraphExec* e, CUgraph, unsigned long long flags) {
        state()->graph_flags |= flags;
        return make(e, "executable graph");
    };
    d.graph_launch = [](CUgraphExec, CUstream s) {
        note_work(s, "launch a graph");
        CUresult r = noted(s, "launch a graph");
        if (r == 0) {
            order_launch(s);
        }
        return r;
    };
    d.graph_destroy = [](CUgraph g) { return g == nullptr ? 0 : end(g); };
    d.graph_exec_destroy = [](CUgraphExec e) { return end(e); };
}

void set_up_streams(Driver& d) {
    d.stream_create = [](CUstream* s, unsigned int flags, int priority) {
        AllocationsSucceed own;
        CUresult r = flags == stream_non_blocking ? make(s, "stream") : bad_value;
        if (r == 0) {
            state()->owners[*s] = current_context();
            state()->priorities[*s] = std::clamp(priority, state()->greatest, state()->least);
        }
        return r;
    };
    d.stream_priorities = [](int* least, int* greatest) {
        *least = state()->least;
        *greatest = state()->greatest;
        return current_context() == nullptr ? bad_value : 0;
    };
    d.stream_priority = [](CUstream s, int* priority) {
        *priority = priority_of(s);
        return current_context() == nullptr ? bad_value : 0;
    };
    d.stream_destroy = [](CUstream s) {
        state()->priorities.erase(s);
        state()->owners.erase(s);
        state()->order.end_stream(s);
        return end(s);
    };
    d.stream_synchronize = [](CUstream s) {
        run_queued();
        CUresult r = is_joined(s) ? bad_value : asked(); // a capture forbids it
        if (r == 0 && state()->keeps_log) {
            AllocationsSucceed own;
            const Locked all = state();
            all->order.host_waits_for_stream(s);
        }
        return r;
    };
    d.stream_set_attribute = [](CUstream s, int attribute, const CUaccessPolicyWindow* w) {
        return attribute == stream_access_policy_window
                   ? noted(s, "keep ", w->bytes, " bytes, hits ", w->hit_ratio)
                   : bad_value;
    };
    d.stream_capturing = [](CUstream s, int* status) {
        *status = is_joined(s) ? 1 : 0;
        return 0;
    };
    d.exchange_capture_mode = [](int* mode) {
        thread_local int own = 0;
        std::swap(own, *mode);
        return 0;
    };
}

void set_up_events(Driver& d) {
    d.event_create = [](CUevent* e, unsigned int) { return make(e, "event"); };
    d.event_destroy = [](CUevent e) { return end(e); };
    d.stream_wait_event = [](CUstream s, CUevent e, unsigned int) {
        AllocationsSucceed own;
        const Locked all = state();
        if (all->keeps_log && is_joined(all->events[e])) {
            all->joined.push_back(s);
        }
        CUresult r = noted(s, "wait");
        if (r == 0 && all->keeps_log) {
            all->order.wait(s, e);
        }
        return r;
    };
    d.event_record = [](CUevent e, CUstream s) {
        AllocationsSucceed own;
        if (state()->keeps_log) {
            state()->events[e] = is_joined(s) ? s : nullptr;
        }
        CUresult r = noted(s, state()->living.count(e) != 0 ? "record" : "record the caller's");
        if (r == 0 && state()->keeps_log) {
            state()->order.record(e, s);
        }
        return r;
    };
    d.event_record_with_flags = [](CUevent, CUstream s, unsigned int flags) {
        return noted(s, flags == event_record_external ? "mark in a graph" : "mark");
    };
    d.event_synchronize = [](CUevent e) {
        CUresult r = asked();
        if (r == 0 && state()->keeps_log) {
            AllocationsSucceed own;
            const Locked all = state();
            all->order.host_waits_for_event(e);
        }
        return r;
    };
    d.event_elapsed = [](float* ms, CUevent, CUevent) {
        *ms = 0.25F;
        return asked();
    };
}

} // namespace

const Driver& fake_driver() {
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
        set_up_contexts(d);
        set_up_memory(d);
        set_up_work(d);
        set_up_streams(d);
        set_up_events(d);
        return d;
    }();
    return fake;
}

void reset(int64_t memory) {
    const Locked s = state();
    for (const auto& [p, what] : s->living) {
        std::free(const_cast<void*>(p));
    }
    *s = {};
    s->memory = memory;
}

void fail_call(int64_t n, CUresult error, bool forever) {
    const Locked s = state();
    s->failing = n == 0 ? 0 : s->calls + n;
    s->error = error;
    s->forever = forever;
}

int64_t calls() {
    return state()->calls;
}

std::string alive() {
    std::map<std::string, int> counts;
    const Locked s = state();
    for (const auto& [p, what] : s->living) {
        ++counts[what.first];
    }
    std::string text;
    for (const auto& [kind, n] : counts) {
        text += str(text.empty() ? "" : ", ", n, ' ', kind, n > 1 ? "s" : "");
    }
    return text;
}

int64_t unordered() {
    return state()->order.unordered();
}

void replace_stream(void* stream) {
    state()->order.end_stream(stream);
}

double waited() {
    return state()->waited;
}

std::vector<std::string> take_log() {
    state()->keeps_log = true;
    return std::exchange(state()->log, {});
}

std::vector<std::string> take_work() {
    state()->keeps_work = true;
    return std::exchange(state()->work, {});
}

void set_priorities(int least, int greatest) {
    state()->least = least;
    state()->greatest = greatest;
}

void set_priority_of(void* stream, int priority) {
    state()->priorities[stream] = priority;
}

unsigned long long graph_flags() {
    return state()->graph_flags;
}

void capture(void* stream) {
    state()->captured = stream;
    state()->joined.clear();
}

size_t set_aside() {
    return state()->set_aside;
}

void set_current(int device) {
    current_context() = device < 0 ? nullptr : reinterpret_cast<CUcontext>(contexts() + device);
}

} // namespace ingot::test::fake
