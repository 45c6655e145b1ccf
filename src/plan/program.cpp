// SPDX-License-Identifier: Apache-2.0
#include "plan/program.h"

#include "ir/rewrite.h"
#include "ops/primitives.h"
#include "plan/memory_source.h"
#include "plan/views.h"

#include <algorithm>
#include <new>

namespace ingot::plan {

std::shared_ptr<std::byte> PackCache::allocate(size_t bytes) const {
    constexpr std::align_val_t alignment{64};
    bytes = std::max<size_t>(bytes, 1);
    std::byte* memory = nullptr;
    if (source_ != nullptr) {
        memory = source_->allocate(static_cast<int64_t>(bytes));
    } else {
        memory = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
    }
    require(memory != nullptr, ErrorCode::OutOfMemory, "packed weights need ", bytes,
            " bytes, which ",
            source_ != nullptr ? "the allocator does not give" : "the system does not have");
    return {memory, [source = source_](std::byte* p) {
                source != nullptr ? source->release(p) : ::operator delete(p, alignment);
            }};
}

size_t PackCache::bytes() const {
    std::scoped_lock lock(mutex_);
    return bytes_;
}

std::shared_ptr<void> PackCache::find(const std::string& key) const {
    std::scoped_lock lock(mutex_);
    auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : it->second;
}

std::shared_ptr<void> PackCache::insert(const std::string& key, std::shared_ptr<void> v,
                                        size_t bytes) {
    std::scoped_lock lock(mutex_);
    auto [it, is_new] = entries_.emplace(key, std::move(v));
    if (is_new) {
        bytes_ += bytes;
    }
    return it->second;
}

namespace {

struct Builder {
    Program p;
    std::map<std::string, int, std::less<>> symbol_segment;
    SymbolSet outer;

    int segment_of_symbols(const SymbolSet& used) {
        int segment = 0;
        for (const std::string& s : used) {
            auto it = symbol_segment.find(s);
            if (it != symbol_segment.end()) {
                segment = std::max(segment, it->second);
            } else {
                outer.insert(s);
            }
        }
        return segment;
    }

    void add_bodies(const Node& n, NodeInfo& info) {
        if (n.is(fused_def)) {
            return;
        }
        for (const GraphRef& body : bodies(n)) {
            info.bodies.push_back(make_program(body, *p.kernels, p.packs, p.options));
            for (const std::string& s : info.bodies.back()->outer_symbols) {
                info.segment = std::max(info.segment, segment_of_symbols({s}));
            }
        }
    }

    void find_kernel_of(const Node& n, NodeInfo& info) {
        if (n.is(constant_def) || is_view(*p.graph, n)) {
            return;
        }
        std::string_view name =
            n.is(fused_def) ? std::string_view(n.as<Fused>().kernel) : n.def->name;
        std::string reason;
        Group group = group_of(*p.graph, n);
        info.kernel = p.kernels->find(name, group, &reason);
        if (info.kernel == nullptr && n.def->eval != nullptr && !n.is(fused_def)) {
            info.kernel = p.kernels->find("reference", group, &reason);
        }
        require(info.kernel != nullptr, ErrorCode::Unsupported, "node '", n.name, "' (", name,
                "): no kernel of the ", p.kernels->backend, " backend runs it: ",
                reason.empty() ? std::string("there is none of that name") : reason);
    }

    void add(const Node& n) {
        NodeInfo info;
        SymbolSet declared;
        for (const std::string& s : declared_symbols(n)) {
            if (!symbol_segment.contains(s)) {
                declared.insert(s);
            }
        }
        SymbolSet used;
        collect_symbols(*p.graph, n, used);
        for (const std::string& s : declared) {
            used.erase(s);
        }
        info.segment = segment_of_symbols(used);
        for (Value v : n.inputs) {
            info.segment = std::max(info.segment, p.value_segment[v.id]);
        }
        add_bodies(n, info);
        find_kernel_of(n, info);
        info.binds = !declared.empty();
        info.symbols.assign(declared.begin(), declared.end());
        int ready = info.segment + (info.binds ? 1 : 0);
        for (const std::string& s : declared) {
            symbol_segment[s] = ready;
        }
        for (Value v : n.outputs) {
            p.value_segment[v.id] = ready;
        }
        p.segments = std::max(p.segments, ready + 1);
        p.nodes.push_back(std::move(info));
    }
};

} // namespace

std::shared_ptr<const Program> make_program(GraphRef lowered, const KernelSet& kernels,
                                            std::shared_ptr<PackCache> packs,
                                            const CompileOptions& options) {
    Builder b;
    b.p.graph = std::move(lowered);
    b.p.kernels = &kernels;
    b.p.packs = std::move(packs);
    b.p.options = options;
    const Graph& g = *b.p.graph;
    b.p.value_segment.assign(g.value_count(), 0);
    b.p.users.resize(g.value_count());
    for (const std::string& s : input_symbols(g)) {
        b.symbol_segment[s] = 0;
    }
    for (size_t i = 0; i < g.nodes().size(); ++i) {
        const Node& n = g.nodes()[i];
        for (Value v : n.inputs) {
            b.p.users[v.id].push_back(static_cast<uint32_t>(i));
        }
        b.add(n);
    }
    b.p.outer_symbols.assign(b.outer.begin(), b.outer.end());
    return std::make_shared<const Program>(std::move(b.p));
}

} // namespace ingot::plan
