// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/launch_list.h"

#include "backends/cuda/jit/specialise.h"
#include "backends/cuda/jit/timeline_text.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/early_release.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/figures.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ingot::cuda {

using kernels::Args;
using kernels::Launch;

LaunchList::LaunchList(LaunchList&& o) noexcept
    : device_(o.device_), what_(std::move(o.what_)), items_(std::move(o.items_)),
      error_word_(std::exchange(o.error_word_, -1)) {}

LaunchList::~LaunchList() {
    clear();
    if (error_word_ >= 0) {
        device_.release_error_word(error_word_);
    }
}

void LaunchList::clear() {
    for (const Item& item : items_) {
        if (item.timed >= 0) {
            device_.timeline()->remove(item.timed);
        }
    }
    items_.clear();
}

void LaunchList::set(const Launch& l, std::shared_ptr<PendingKernel> kernel) {
    clear();
    add(l, Specialise::None, std::move(kernel));
}

void LaunchList::set(const kernels::Emitted& e, Specialise specialise, std::string_view tactic) {
    clear();
    for (const Launch& l : e.launches) {
        size_t before = items_.size();
        if (device_.timeline() == nullptr) {
            add(l, specialise);
            continue;
        }
        Launch timed = l;
        timed.args.null(); // the address of its records
        add(timed, Specialise::None);
        if (items_.size() > before) {
            add_to_timeline(items_.back(), timed, tactic);
        }
    }
}

void LaunchList::add_to_timeline(Item& item, const Launch& l, std::string_view tactic) {
    item.timed = device_.timeline()->add(l, what_, tactic);
    std::byte* records = device_.timeline()->records(item.timed);
    std::memcpy(item.parameters.back(), &records, sizeof records);
}

void LaunchList::wait() {
    for (Item& item : items_) {
        try {
            item.kernel->function();
        } catch (const Error& e) {
            if (item.generic.empty() || e.code() != ErrorCode::Internal) {
                throw;
            }
            log(LogLevel::Warning, "cuda: ", what_, " keeps its generic kernel: ", e.what());
            item.kernel = device_.state().programs->request(
                item.generic, item.kernel->entry(), item.shape.shared, ProgramCache::When::Now);
            item.generic.clear();
            item.kernel->function();
        }
    }
}

void LaunchList::make_state() {
    for (const Item& item : items_) {
        for (const Args::Fixup& f : item.args.fixups()) {
            if (f.what == Args::Patch::RunState) {
                device_.run_state();
            }
        }
    }
}

bool LaunchList::is_stale() const {
    return std::any_of(items_.begin(), items_.end(), [](const Item& item) {
        return item.special != nullptr && item.special->loaded();
    });
}

void LaunchList::run(std::byte* const* buffers, std::byte* scratch) {
    for (Item& item : items_) {
        if (item.special != nullptr && item.special->loaded()) {
            item.kernel = std::move(item.special);
        }
        if (item.lazy != nullptr && std::exchange(item.has_run, true)) {
            request_special(item);
        }
        fill_in(item, buffers, scratch);
        if (item.timed >= 0) {
            device_.timeline()->launched(item.timed);
        }
        device_.stream().launch(item.kernel->function(), item.shape, item.parameters.data());
    }
}

void LaunchList::repeats() noexcept {
    for (Item& item : items_) {
        if (item.lazy != nullptr) {
            request_special(item);
        }
    }
}

plan::LaunchReport launch_report(PendingKernel& kernel, const LaunchShape& shape,
                                 const kernels::Arch& arch) {
    plan::LaunchReport r;
    r.entry = kernel.entry();
    r.text = kernel.text();
    r.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
    r.block = shape.block;
    r.shared = shape.shared;
    r.cluster = shape.cluster;
    r.resources = kernel.resources();
    plan::KernelResources taken = r.resources.value_or(plan::KernelResources{});
    r.blocks_per_sm =
        kernels::blocks_per_sm(arch, r.block, taken.registers, r.shared + taken.shared);
    double blocks = static_cast<double>(r.grid[0]) * static_cast<double>(r.grid[1]) *
                    static_cast<double>(r.grid[2]);
    r.waves = blocks / (static_cast<double>(arch.sms) * r.blocks_per_sm);
    return r;
}

void LaunchList::report(std::vector<plan::LaunchReport>& to) {
    for (Item& item : items_) {
        bool replaced = item.special != nullptr && item.special->loaded();
        LaunchShape shape = item.shape;
        shape.shared = item.asked;
        to.push_back(launch_report(replaced ? *item.special : *item.kernel, shape, device_.arch()));
    }
}

void LaunchList::request(Item& item, const Launch& l, Specialise specialise) {
    using When = ProgramCache::When;
    ProgramCache& programs = *device_.state().programs;
    int64_t most = most_shared_with_release(l.shared, device_.arch());
    ProfilePrograms* profile = device_.state().profile_programs.get();
    bool notes = profile != nullptr && profile->is_open();
    if (!notes && specialise != Specialise::Eager && device_.timeline() == nullptr) {
        item.kernel = programs.request(l.program, l.entry, most);
        item.lazy = specialise == Specialise::Lazy ? std::make_shared<Launch>(l) : nullptr;
        return;
    }
    std::string text =
        device_.timeline() == nullptr ? kernels::full_text(l.program) : timeline_text(l);
    if (notes) { // nothing will be launched
        bool all_now = device_.state().options.specialise == Specialise::None;
        item.kernel = programs.request(text, l.entry, most, all_now ? When::Now : When::Later);
        profile->note(l.program, l.entry, item.kernel);
        return;
    }
    std::optional<std::string> special =
        specialise == Specialise::Eager ? specialised_text(l) : std::nullopt;
    if (special) {
        item.kernel = programs.request_variant(std::move(*special), l.entry, most, When::Now);
        if (item.kernel != nullptr) {
            item.generic = std::move(text);
            return;
        }
    }
    item.kernel = programs.request(std::move(text), l.entry, most, When::Now);
}

/// A launch that runs again may run often; one for a single shape, as of a decoder's token, may
/// not. Without memory or threads for it, the generic kernel stays.
void LaunchList::request_special(Item& item) noexcept {
    try {
        std::shared_ptr<const Launch> l = std::move(item.lazy);
        if (std::optional<std::string> text = specialised_text(*l)) {
            item.special = device_.state().programs->request_variant(
                std::move(*text), l->entry, most_shared_with_release(l->shared, device_.arch()),
                ProgramCache::When::Later);
        }
    } catch (const std::exception& e) {
        log(LogLevel::Verbose, "cuda: ", what_, " keeps its generic kernel: ", e.what());
    }
}

void LaunchList::add(const Launch& l, Specialise specialise,
                     std::shared_ptr<PendingKernel> kernel) {
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
    require(l.shared <= device_.arch().shared_per_block, ErrorCode::Internal, "kernel ", l.entry,
            " asks for ", l.shared, " bytes of shared memory, the GPU has ",
            device_.arch().shared_per_block);
    item.shape.block = static_cast<uint32_t>(l.block);
    item.asked = static_cast<uint32_t>(l.shared);
    item.shape.shared = static_cast<uint32_t>(shared_with_release(l, device_.arch()));
    item.shape.cluster = static_cast<uint32_t>(l.cluster);
    item.shape.overlap = device_.arch().has_pdl();
    item.args = l.args;
    if (kernel != nullptr) {
        item.kernel = std::move(kernel);
    } else {
        request(item, l, specialise);
    }
    size_t blocks = l.args.bytes().size() / sizeof(Block) + 1;
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

/// Every address in memory that is not there is null: a tactic may name scratch it does not need.
static std::byte* address_in(std::byte* memory, int64_t offset) {
    return memory == nullptr ? nullptr : memory + offset;
}

void LaunchList::fill_in(Item& item, std::byte* const* buffers, std::byte* scratch) {
    auto* base = reinterpret_cast<std::byte*>(item.memory.data());
    for (const Args::Fixup& f : item.args.fixups()) {
        std::byte* address = nullptr;
        switch (f.what) {
        case Args::Patch::Buffer:
        case Args::Patch::Map:
            address =
                address_in(f.buffer == kernels::in_scratch ? scratch : buffers[f.buffer], f.offset);
            break;
        case Args::Patch::Scratch:
            address = address_in(scratch, f.offset);
            break;
        case Args::Patch::ErrorWord:
            address = device_.error_word(error_word_);
            break;
        case Args::Patch::RunState:
            address = device_.run_state();
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

} // namespace ingot::cuda
