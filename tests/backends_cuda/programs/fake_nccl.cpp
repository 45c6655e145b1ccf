// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 whose ranks are threads of one process and whose memory is the host's: each call
// waits until every rank of its communicator calls, and the last one does the work of all. Streams
// are ignored. It checks that the calls of the ranks match.
#include "ir/tensor.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using ingot::DType;
using ingot::Tensor;

enum Result {
    Success = 0,
    SystemError = 2,
    InvalidArgument = 4,
    InvalidUsage = 5,
    InProgress = 7,
};

struct Transfer {
    int peer;
    std::byte* memory;
    size_t bytes;
};

struct Comm;

/// The call of one rank.
struct Call {
    std::string what; // the same of all ranks
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    size_t count = 0;
    int type = 0;
    int reduction = 0;
    int root = 0;
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
    int color = 0;
    int key = 0;
    Comm* made = nullptr;

    bool belongs_to(const Call& o) const {
        return what == o.what && count == o.count && type == o.type && reduction == o.reduction &&
               root == o.root;
    }
};

/// The ranks of a communicator.
struct Clique {
    explicit Clique(size_t n) : calls(n) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Call*> calls;
    std::vector<int> devices;
    uint64_t round = 0;
    Result result = Success;
};

struct Comm {
    std::shared_ptr<Clique> clique;
    int rank = 0;
};

struct State {
    std::mutex mutex;
    int live = 0;
    int fail_next = 0;
};

State& state() {
    static State s;
    return s;
}

Comm* make(std::shared_ptr<Clique> clique, int rank) {
    std::scoped_lock lock(state().mutex);
    ++state().live;
    return new Comm{std::move(clique), rank};
}

DType dtype_of(int type) {
    constexpr DType types[] = {DType::I8,  DType::U8,  DType::I32, DType::U32, DType::I64,
                               DType::U64, DType::F16, DType::F32, DType::F64, DType::BF16};
    return types[type];
}

size_t bytes_of(const Call& c) {
    return c.count * static_cast<size_t>(ingot::bit_width(dtype_of(c.type))) / 8;
}

Tensor tensor_at(const std::byte* p, size_t count, DType t) {
    Tensor out = Tensor::empty(t, {static_cast<int64_t>(count)});
    std::memcpy(out.mutable_bytes().data(), p, out.bytes().size());
    return out;
}

double combined(int reduction, double a, double b) {
    switch (reduction) {
    case 1:
        return a * b;
    case 2:
        return std::max(a, b);
    case 3:
        return std::min(a, b);
    default:
        return a + b;
    }
}

Tensor reduced(const std::vector<Call*>& calls, size_t count) {
    const Call& first = *calls[0];
    DType t = dtype_of(first.type);
    Tensor sum = Tensor::empty(t, {static_cast<int64_t>(count)});
    std::vector<double> wide(count);
    for (size_t r = 0; r < calls.size(); ++r) {
        Tensor x = tensor_at(calls[r]->in, count, t);
        for (size_t i = 0; i < count; ++i) {
            double v = x.get_f64(static_cast<int64_t>(i));
            wide[i] = r == 0 ? v : combined(first.reduction, wide[i], v);
        }
    }
    for (size_t i = 0; i < count; ++i) {
        constexpr int average = 4;
        double n = first.reduction == average ? static_cast<double>(calls.size()) : 1;
        sum.set_f64(static_cast<int64_t>(i), wide[i] / n);
    }
    return sum;
}

Result transfer(const std::vector<Call*>& calls) {
    for (size_t to = 0; to < calls.size(); ++to) {
        std::map<int, size_t> seen; // receives from each peer, in order
        for (const Transfer& r : calls[to]->receives) {
            size_t skip = seen[r.peer]++;
            const Transfer* found = nullptr;
            for (const Transfer& s : calls[static_cast<size_t>(r.peer)]->sends) {
                if (s.peer == static_cast<int>(to) && skip-- == 0) {
                    found = &s;
                    break;
                }
            }
            if (found == nullptr || found->bytes != r.bytes) {
                return InvalidUsage;
            }
            std::memcpy(r.memory, found->memory, r.bytes);
        }
    }
    return Success;
}

void split(const Clique& all, const std::vector<Call*>& calls) {
    std::map<int, std::vector<std::pair<int, size_t>>> groups;
    for (size_t r = 0; r < calls.size(); ++r) {
        groups[calls[r]->color].emplace_back(calls[r]->key, r);
    }
    for (auto& [color, members] : groups) {
        std::sort(members.begin(), members.end());
        auto clique = std::make_shared<Clique>(members.size());
        for (size_t i = 0; i < members.size(); ++i) {
            size_t r = members[i].second;
            clique->devices.push_back(all.devices[r]);
            calls[r]->made = make(clique, static_cast<int>(i));
        }
    }
}

/// The work of all ranks.
Result together(const Clique& clique) {
    const std::vector<Call*>& calls = clique.calls;
    const Call& first = *calls[0];
    for (const Call* c : calls) {
        if (!c->belongs_to(first)) {
            return InvalidUsage;
        }
    }
    auto root = static_cast<size_t>(first.root);
    if (first.what == "transfer") {
        return transfer(calls);
    }
    if (first.what == "split") {
        split(clique, calls);
    } else if (first.what == "all_gather") {
        for (Call* to : calls) {
            for (size_t r = 0; r < calls.size(); ++r) {
                std::memcpy(to->out + r * bytes_of(first), calls[r]->in, bytes_of(first));
            }
        }
    } else if (first.what == "broadcast") {
        for (Call* to : calls) {
            std::memcpy(to->out, calls[root]->in, bytes_of(first));
        }
    } else {
        bool scatters = first.what == "reduce_scatter";
        Tensor sum = reduced(calls, first.count * (scatters ? calls.size() : 1));
        for (size_t r = 0; r < calls.size(); ++r) {
            if (first.what != "reduce" || r == root) {
                std::memcpy(calls[r]->out,
                            sum.bytes().data() + (scatters ? r : 0) * bytes_of(first),
                            bytes_of(first));
            }
        }
    }
    return Success;
}

Result run(void* comm, Call call) {
    auto& c = *static_cast<Comm*>(comm);
    int asked = 0;
    {
        std::scoped_lock lock(state().mutex);
        asked = std::exchange(state().fail_next, 0);
    }
    if (asked != 0 && asked != InProgress) {
        return static_cast<Result>(asked);
    }
    Clique& q = *c.clique;
    std::unique_lock lock(q.mutex);
    q.calls[static_cast<size_t>(c.rank)] = &call;
    if (std::count(q.calls.begin(), q.calls.end(), nullptr) == 0) {
        q.result = together(q);
        std::fill(q.calls.begin(), q.calls.end(), nullptr);
        ++q.round;
        q.changed.notify_all();
    } else {
        uint64_t round = q.round;
        bool done =
            q.changed.wait_for(lock, std::chrono::seconds(60), [&] { return q.round != round; });
        if (!done) {
            q.calls[static_cast<size_t>(c.rank)] = nullptr;
            return SystemError;
        }
    }
    if (call.made != nullptr) {
        *reinterpret_cast<Comm**>(call.out) = call.made;
    }
    return asked == InProgress && q.result == Success ? InProgress : q.result;
}

/// Between ncclGroupStart and ncclGroupEnd, of this thread.
struct Group {
    bool open = false;
    void* comm = nullptr;
    Call call;
};

Group& group() {
    thread_local Group g;
    return g;
}

Call exchange(const char* what, const void* in, void* out, size_t count, int type) {
    Call c;
    c.what = what;
    c.in = static_cast<const std::byte*>(in);
    c.out = static_cast<std::byte*>(out);
    c.count = count;
    c.type = type;
    return c;
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
extern "C" {

// For tests: the number of communicators, and a result for the next call of any rank; after
// InProgress, the result of a nonblocking communicator, it still does the work.
int fake_nccl_live() {
    std::scoped_lock lock(state().mutex);
    return state().live;
}
void fake_nccl_fail(int result) {
    std::scoped_lock lock(state().mutex);
    state().fail_next = result;
}

int ncclGetVersion(int* version) {
    *version = 22703;
    return Success;
}
const char* ncclGetErrorString(int r) {
    return r == SystemError    ? "unhandled system error"
           : r == InvalidUsage ? "invalid usage"
                               : "invalid argument";
}
const char* ncclGetLastError(void*) {
    return "what the fake says";
}
int ncclCommGetAsyncError(void*, int* r) {
    *r = Success;
    return Success;
}
int ncclCommInitAll(void** comms, int n, const int* devices) {
    auto clique = std::make_shared<Clique>(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
        clique->devices.push_back(devices == nullptr ? i : devices[i]);
        comms[i] = make(clique, i);
    }
    return Success;
}
int ncclCommDestroy(void* comm) {
    delete static_cast<Comm*>(comm);
    std::scoped_lock lock(state().mutex);
    --state().live;
    return Success;
}
int ncclCommCount(void* comm, int* n) {
    *n = static_cast<int>(static_cast<Comm*>(comm)->clique->calls.size());
    return Success;
}
int ncclCommUserRank(void* comm, int* rank) {
    *rank = static_cast<Comm*>(comm)->rank;
    return Success;
}
int ncclCommCuDevice(void* comm, int* device) {
    auto& c = *static_cast<Comm*>(comm);
    *device = c.clique->devices[static_cast<size_t>(c.rank)];
    return Success;
}
int ncclCommSplit(void* comm, int color, int key, void** made, void*) {
    Call c;
    c.what = "split";
    c.color = color;
    c.key = key;
    c.out = reinterpret_cast<std::byte*>(made);
    return run(comm, std::move(c));
}
int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, void* comm, void*) {
    Call c = exchange("all_reduce", in, out, count, type);
    c.reduction = op;
    return run(comm, std::move(c));
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, void* comm,
               void*) {
    Call c = exchange("reduce", in, out, count, type);
    c.reduction = op;
    c.root = root;
    return run(comm, std::move(c));
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, void* comm,
                      void*) {
    Call c = exchange("reduce_scatter", in, out, count, type);
    c.reduction = op;
    return run(comm, std::move(c));
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, void* comm, void*) {
    Call c = exchange("broadcast", in, out, count, type);
    c.root = root;
    return run(comm, std::move(c));
}
int ncclAllGather(const void* in, void* out, size_t count, int type, void* comm, void*) {
    return run(comm, exchange("all_gather", in, out, count, type));
}
int ncclGroupStart() {
    group() = {true, nullptr, {}};
    group().call.what = "transfer";
    return Success;
}
int ncclSend(const void* in, size_t count, int type, int peer, void* comm, void*) {
    if (!group().open || type > 1) { // bytes are what these tests send
        return InvalidArgument;
    }
    group().comm = comm;
    group().call.sends.push_back({peer, static_cast<std::byte*>(const_cast<void*>(in)), count});
    return Success;
}
int ncclRecv(void* out, size_t count, int type, int peer, void* comm, void*) {
    if (!group().open || type > 1) {
        return InvalidArgument;
    }
    group().comm = comm;
    group().call.receives.push_back({peer, static_cast<std::byte*>(out), count});
    return Success;
}
int ncclGroupEnd() {
    Group g = std::exchange(group(), {});
    return g.comm == nullptr ? Success : run(g.comm, std::move(g.call));
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
