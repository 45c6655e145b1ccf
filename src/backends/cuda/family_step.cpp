// SPDX-License-Identifier: Apache-2.0
// FamilyStep: the launches that a family emitted, with their arguments filled in as addresses
// become known.
#include "backends/cuda/steps.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/copy/copy.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

namespace {

using kernels::Args;
using kernels::Emitted;
using kernels::Family;
using kernels::Launch;
using kernels::Problem;
using kernels::Tactic;

/// Memory for one launch's parameters, aligned for tensor maps.
struct alignas(64) ParameterBlock {
    std::byte bytes[64];
};

struct Item {
    std::shared_ptr<PendingKernel> kernel;
    LaunchShape shape;
    Args args;
    std::vector<ParameterBlock> memory;
    std::vector<void*> parameters;
    std::vector<std::byte*> encoded; // the base over which each tensor map was encoded
};

class FamilyStep : public Step {
public:
    FamilyStep(Device& device, std::string what)
        : device_(static_cast<CudaDevice&>(device)), what_(std::move(what)) {}

    /// Emits the launches of the family's generic tactic, for when the chosen one does not compile.
    void set_fallback(std::function<Emitted()> f) { fallback_ = std::move(f); }

    void set(const Emitted& e, std::string tactic) {
        items_.clear();
        for (const Launch& l : e.launches) {
            add(l);
        }
        scratch_bytes_ = std::max(scratch_bytes_, e.scratch);
        tactic_ = std::move(tactic);
    }

    Status run(const RunContext& c) noexcept override {
        try {
            if (!compiled_) {
                wait_for_kernels();
            }
            for (Item& item : items_) {
                fill_in(item, c);
                device_.stream().launch(item.kernel->function(), item.shape,
                                        item.parameters.data());
            }
        } catch (const Error& e) {
            c.error.set("%s", e.what());
            return {e.code(), "a kernel could not be launched"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "a kernel could not be launched"};
        }
        return {};
    }

    std::string implementation() const override { return tactic_; }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    bool recordable() const override { return true; }

private:
    /// Waits for the compiler; a kernel that it refuses is replaced by the generic tactic.
    void wait_for_kernels() {
        try {
            for (Item& item : items_) {
                item.kernel->function();
            }
        } catch (const Error& e) {
            if (fallback_ == nullptr || e.code() != ErrorCode::Internal) {
                throw;
            }
            log(LogLevel::Warning, "cuda: ", what_, ", tactic ", tactic_,
                " does not compile, the generic one runs instead: ", e.what());
            Emitted generic = fallback_();
            require(generic.scratch <= scratch_bytes_, ErrorCode::Internal, what_,
                    ": the generic tactic needs more memory than was planned");
            set(generic, "generic");
            for (Item& item : items_) {
                item.kernel->function();
            }
        }
        compiled_ = true;
    }

    void add(const Launch& l) {
        for (int64_t g : l.grid) {
            if (g == 0) {
                return; // nothing to do
            }
        }
        constexpr int64_t most_blocks[3] = {2147483647, 65535, 65535};
        Item item;
        for (size_t i = 0; i < 3; ++i) {
            require(l.grid[i] > 0 && l.grid[i] <= most_blocks[i], ErrorCode::Unsupported, "kernel ",
                    l.entry, " needs a grid of ", l.grid[0], " x ", l.grid[1], " x ", l.grid[2],
                    " blocks, more than CUDA allows");
            item.shape.grid[i] = static_cast<uint32_t>(l.grid[i]);
        }
        require(l.shared <= device_.arch().shared_per_block, ErrorCode::Internal, "kernel ",
                l.entry, " asks for ", l.shared, " bytes of shared memory, the GPU has ",
                device_.arch().shared_per_block);
        item.shape.block = static_cast<uint32_t>(l.block);
        item.shape.shared = static_cast<uint32_t>(l.shared);
        item.shape.cluster = static_cast<uint32_t>(l.cluster);
        item.shape.overlap = device_.arch().has_pdl();
        item.args = l.args;
        item.kernel = device_.state().programs->request(l.program, l.entry, l.shared);
        size_t blocks = l.args.bytes().size() / sizeof(ParameterBlock) + 1;
        item.memory.resize(blocks);
        auto* base = reinterpret_cast<std::byte*>(item.memory.data());
        std::memcpy(base, l.args.bytes().data(), l.args.bytes().size());
        for (uint32_t offset : l.args.offsets()) {
            item.parameters.push_back(base + offset);
        }
        item.encoded.resize(l.args.maps().size());
        for (const Args::Fixup& f : l.args.fixups()) {
            if (f.what == Args::Patch::ErrorWord && error_word_ < 0) {
                error_word_ = device_.add_error_word(what_);
            }
        }
        items_.push_back(std::move(item));
    }

    void fill_in(Item& item, const RunContext& c) {
        auto* base = reinterpret_cast<std::byte*>(item.memory.data());
        for (const Args::Fixup& f : item.args.fixups()) {
            std::byte* address = nullptr;
            switch (f.what) {
            case Args::Patch::Buffer:
            case Args::Patch::Map:
                address = c.buffers[f.buffer] + f.offset;
                break;
            case Args::Patch::Scratch:
                address = c.buffers[scratch] + f.offset;
                break;
            case Args::Patch::ErrorWord:
                address = device_.error_word(error_word_);
                break;
            }
            if (f.what != Args::Patch::Map) {
                std::memcpy(base + f.at, &address, sizeof address);
            } else if (item.encoded[f.map] != address) {
                device_.state().gpu.encode(item.args.maps()[f.map], address, base + f.at);
                item.encoded[f.map] = address;
            }
        }
    }

    CudaDevice& device_;
    std::string what_;
    std::string tactic_;
    std::vector<Item> items_;
    std::function<Emitted()> fallback_;
    bool compiled_ = false;
    int64_t scratch_bytes_ = 0;
    int error_word_ = -1;
};

const Tactic& choose(const std::vector<Tactic>& tactics, const CompileOptions& options) {
    auto it = std::find_if(tactics.begin(), tactics.end(), [&](const Tactic& t) {
        return !options.force_tactic.empty() && t.name.starts_with(options.force_tactic);
    });
    return it == tactics.end() ? tactics.front() : *it;
}

} // namespace

std::unique_ptr<Step> make_family_step(const StepArgs& args) {
    const auto& family = *static_cast<const Family*>(args.kernel.family);
    auto& device = static_cast<CudaDevice&>(args.device);
    Problem problem{args.group,     args.symbols,  args.in,          args.out,
                    args.constants, device.arch(), args.options.tf32};
    std::vector<Tactic> tactics = family.tactics(problem);
    CHECK(!tactics.empty(), "family ", family.name, " has no tactic for a node it accepted");
    const Tactic& t = choose(tactics, args.options);
    auto step = std::make_unique<FamilyStep>(
        device, str("node '", args.node.name, "' (", family.name, ")"));
    step->set(family.emit(problem, t), str(family.name, ' ', t.name));
    if (t.name != tactics.back().name) {
        // The operands and symbols outlive the call, as copies; the graph by the program.
        struct Kept {
            std::vector<Operand> in;
            std::vector<Operand> out;
            std::vector<const std::byte*> constants;
            Symbols symbols;
        };
        Kept kept{{args.in.begin(), args.in.end()},
                  {args.out.begin(), args.out.end()},
                  {args.constants.begin(), args.constants.end()},
                  args.symbols};
        step->set_fallback([kept, &family, group = args.group, generic = tactics.back(),
                            &arch = device.arch(), tf32 = args.options.tf32] {
            return family.emit(
                Problem{group, kept.symbols, kept.in, kept.out, kept.constants, arch, tf32},
                generic);
        });
    }
    return step;
}

std::unique_ptr<Step> make_device_copy(const Operand& from, const Operand& to, Device& device) {
    auto& cuda = static_cast<CudaDevice&>(device);
    auto step = std::make_unique<FamilyStep>(device, "a copy");
    step->set(kernels::emit_copy(from, to, cuda.arch()), "copy");
    return step;
}

} // namespace ingot::cuda
