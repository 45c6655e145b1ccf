// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/nccl.h"

#include "base/error.h"
#include "base/log.h"
#include "base/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ingot::cuda {

namespace {

using Comm = void*;
using Stream = void*;

struct Nccl {
    SharedLibrary library;
    std::string searched;
    int version = 0; // 22703 for 2.27.3

    int (*get_version)(int*) = nullptr;
    const char* (*error)(int) = nullptr;
    const char* (*last_error)(Comm) = nullptr; // since 2.13
    int (*async_error)(Comm, int*) = nullptr;
    int (*count)(Comm, int*) = nullptr;
    int (*rank)(Comm, int*) = nullptr;
    int (*device)(Comm, int*) = nullptr;
    int (*split)(Comm, int color, int key, Comm*, void* config) = nullptr; // since 2.18
    int (*destroy)(Comm) = nullptr;
    int (*all_reduce)(const void*, void*, size_t, int type, int op, Comm, Stream) = nullptr;
    int (*reduce)(const void*, void*, size_t, int type, int op, int root, Comm, Stream) = nullptr;
    int (*reduce_scatter)(const void*, void*, size_t, int type, int op, Comm, Stream) = nullptr;
    int (*broadcast)(const void*, void*, size_t, int type, int root, Comm, Stream) = nullptr;
    int (*all_gather)(const void*, void*, size_t, int type, Comm, Stream) = nullptr;
    int (*send)(const void*, size_t, int type, int peer, Comm, Stream) = nullptr;
    int (*receive)(void*, size_t, int type, int peer, Comm, Stream) = nullptr;
    int (*group_start)() = nullptr;
    int (*group_end)() = nullptr;

    /// Throws unless r is 0, with NCCL's message.
    void check(int r, std::string_view what, Comm comm) const;
};

constexpr int in_progress = 7; // of a nonblocking communicator

void Nccl::check(int r, std::string_view what, Comm comm) const {
    while (r == in_progress && comm != nullptr) {
        int now = 0;
        int asked = async_error(comm, &now);
        r = asked != 0 ? asked : now;
    }
    if (r != 0) {
        const char* more = last_error != nullptr && comm != nullptr ? last_error(comm) : nullptr;
        fail(ErrorCode::Device, what, ": ", error(r),
             more != nullptr && *more != 0 ? str(" (", more, ")") : std::string());
    }
}

template <class F>
bool get(const SharedLibrary& l, F*& f, const char* name) {
    f = reinterpret_cast<F*>(l.symbol(name));
    return f != nullptr;
}

bool resolve(const SharedLibrary& l, Nccl& n) {
    get(l, n.last_error, "ncclGetLastError");
    get(l, n.split, "ncclCommSplit");
    return get(l, n.get_version, "ncclGetVersion") && get(l, n.error, "ncclGetErrorString") &&
           get(l, n.async_error, "ncclCommGetAsyncError") && get(l, n.count, "ncclCommCount") &&
           get(l, n.rank, "ncclCommUserRank") && get(l, n.device, "ncclCommCuDevice") &&
           get(l, n.destroy, "ncclCommDestroy") && get(l, n.all_reduce, "ncclAllReduce") &&
           get(l, n.reduce, "ncclReduce") && get(l, n.reduce_scatter, "ncclReduceScatter") &&
           get(l, n.broadcast, "ncclBroadcast") && get(l, n.all_gather, "ncclAllGather") &&
           get(l, n.send, "ncclSend") && get(l, n.receive, "ncclRecv") &&
           get(l, n.group_start, "ncclGroupStart") && get(l, n.group_end, "ncclGroupEnd");
}

/// A communicator works only with the library that made it: the bare name gives the one that the
/// process has loaded.
Nccl open_nccl() {
    std::vector<std::string> names;
    if (const char* chosen = std::getenv("INGOT_NCCL"); chosen != nullptr && *chosen != 0) {
        names.emplace_back(chosen);
    } else {
        names = {"libnccl.so.2", own_folder() + "/libnccl.so.2",
                 "/usr/local/cuda/lib64/libnccl.so.2"};
    }
    Nccl n;
    for (const std::string& path : names) {
        std::string problem;
        SharedLibrary library = SharedLibrary::open(path, problem);
        n.searched += (n.searched.empty() ? "" : ", ") + path;
        if (library && resolve(library, n)) {
            n.library = library;
            n.get_version(&n.version);
            return n;
        }
    }
    return n;
}

const Nccl& opened() {
    static const Nccl n = open_nccl();
    return n;
}

const Nccl& nccl() {
    const Nccl& n = opened();
    require(static_cast<bool>(n.library), ErrorCode::Unsupported,
            "data is exchanged between GPUs by NCCL 2, and libnccl.so.2 was not found (tried ",
            n.searched,
            "): install it (package libnccl2, or nvidia-nccl-cu13 or -cu12 for Python), or name in "
            "INGOT_NCCL the one that made the communicator");
    return n;
}

/// ncclDataType_t; for operations that only move elements, bytes.
int type_of(DType t) {
    switch (t) {
    case DType::I8:
        return 0;
    case DType::I32:
        return 2;
    case DType::I64:
        return 4;
    case DType::F16:
        return 6;
    case DType::F32:
        return 7;
    case DType::F64:
        return 8;
    case DType::BF16:
        return 9;
    default:
        return 1; // bytes, bool
    }
}

/// ncclRedOp_t.
int reduction_of(std::string_view name) {
    constexpr std::string_view names[] = {"sum", "prod", "max", "min", "avg"};
    const auto* it = std::find(std::begin(names), std::end(names), name);
    CHECK(it != std::end(names), "the op was checked");
    return static_cast<int>(it - std::begin(names));
}

constexpr int bytes_type = 1;

} // namespace

std::string nccl_version() {
    const Nccl& n = opened();
    return !n.library
               ? std::string()
               : str("nccl ", n.version / 10000, '.', n.version / 100 % 100, '.', n.version % 100);
}

Communicator::Communicator(void* handle) : handle_(handle) {
    const Nccl& n = nccl();
    int rank = 0;
    int ranks = 0;
    n.check(n.count(handle, &ranks), "ncclCommCount", nullptr);
    n.check(n.rank(handle, &rank), "ncclCommUserRank", nullptr);
    n.check(n.device(handle, &device_), "ncclCommCuDevice", nullptr);
    rank_ = {rank, ranks};
}

Communicator::~Communicator() {
    for (const auto& [group, comm] : groups_) {
        int r = opened().destroy(comm);
        if (r != 0 && r != in_progress) {
            log(LogLevel::Warning, "ncclCommDestroy: ", opened().error(r));
        }
    }
}

void* Communicator::of_group(const Exchange& e) {
    const std::vector<int64_t>& group = e.op.group;
    bool is_all = static_cast<int64_t>(group.size()) == rank_.ranks &&
                  std::is_sorted(group.begin(), group.end());
    if (group.empty() || is_all) {
        return handle_;
    }
    if (auto it = groups_.find(group); it != groups_.end()) {
        return it->second;
    }
    const Nccl& n = nccl();
    require(!e.captured, ErrorCode::InvalidArgument, "ranks ", group,
            " have no communicator of their own yet, and a capture cannot make "
            "one: enqueue a run outside of a capture first");
    require(n.split != nullptr, ErrorCode::Unsupported, "groups of ranks need NCCL 2.18, this is ",
            nccl_version());
    // Groups are disjoint: their smallest rank identifies them.
    auto color = static_cast<int>(*std::min_element(group.begin(), group.end()));
    Comm made = nullptr;
    n.check(n.split(handle_, color, static_cast<int>(e.op.position(rank_.rank)), &made, nullptr),
            "ncclCommSplit", handle_);
    int ranks = 0;
    n.check(n.count(made, &ranks), "ncclCommCount", made);
    groups_.emplace(group, made);
    require(ranks == e.op.ranks, ErrorCode::InvalidArgument, "the group of ranks ", group, " has ",
            ranks, " ranks: other ranks have groups that overlap with it");
    return made;
}

bool Communicator::enqueue(const Exchange& e, void* stream) {
    if (e.in_count == 0) {
        return true;
    }
    const Nccl& n = nccl();
    const Collective& op = e.op;
    Comm comm = of_group(e);
    auto count = static_cast<size_t>(e.in_count);
    auto part = static_cast<size_t>(e.out_count);
    auto bytes = byte_size(e.dtype, e.in_count);
    auto root = static_cast<int>(op.has_root() ? op.position(op.root) : -1);
    int type = type_of(e.dtype);
    bool is_root = !op.has_root() || op.root == rank_.rank;
    std::string_view what = op.operation;
    if (what == "all_reduce") {
        int f = reduction_of(op.reduction);
        n.check(n.all_reduce(e.in, e.out, count, type, f, comm, stream), "ncclAllReduce", comm);
    } else if (what == "reduce") {
        int f = reduction_of(op.reduction);
        n.check(n.reduce(e.in, e.out, count, type, f, root, comm, stream), "ncclReduce", comm);
        return is_root;
    } else if (what == "reduce_scatter") {
        int f = reduction_of(op.reduction);
        n.check(n.reduce_scatter(e.in, e.out, part, type, f, comm, stream), "ncclReduceScatter",
                comm);
    } else if (what == "broadcast") {
        n.check(n.broadcast(e.in, e.out, bytes, bytes_type, root, comm, stream), "ncclBroadcast",
                comm);
    } else if (what == "all_gather") {
        n.check(n.all_gather(e.in, e.out, bytes, bytes_type, comm, stream), "ncclAllGather", comm);
    } else {
        move(e, comm, stream);
        return what != "gather" || is_root;
    }
    return true;
}

/// gather, scatter, all_to_all: sends parts between ranks.
void Communicator::move(const Exchange& e, void* comm, void* stream) const {
    const Nccl& n = nccl();
    const Collective& op = e.op;
    auto ranks = static_cast<int>(op.ranks);
    bool is_gather = op.operation == "gather";
    bool is_scatter = op.operation == "scatter";
    auto root = static_cast<int>(op.has_root() ? op.position(op.root) : -1);
    bool is_root = op.root == rank_.rank;
    size_t part = is_gather ? byte_size(e.dtype, e.in_count)
                            : byte_size(e.dtype, e.in_count) / static_cast<size_t>(ranks);
    int failed = 0;
    auto note = [&failed](int r) { failed = failed != 0 || r == in_progress ? failed : r; };
    auto send = [&](size_t index, int to) {
        note(n.send(e.in + index * part, part, bytes_type, to, comm, stream));
    };
    auto receive = [&](size_t index, int from) {
        note(n.receive(e.out + index * part, part, bytes_type, from, comm, stream));
    };
    n.check(n.group_start(), "ncclGroupStart", nullptr);
    for (int i = 0; i < ranks; ++i) {
        auto at = static_cast<size_t>(i);
        if ((is_scatter && is_root) || !op.has_root()) {
            send(at, i);
        }
        if ((is_gather && is_root) || !op.has_root()) {
            receive(at, i);
        }
    }
    if (is_gather) {
        send(0, root);
    } else if (is_scatter) {
        receive(0, root);
    }
    int ended = n.group_end();
    n.check(failed, "ncclSend and ncclRecv", comm);
    n.check(ended, "ncclGroupEnd", comm);
}

} // namespace ingot::cuda
