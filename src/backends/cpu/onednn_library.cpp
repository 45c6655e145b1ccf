// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/onednn_library.h"

#include "backends/cpu/options.h"
#include "backends/cpu/simd/simd.h"
#include "base/log.h"
#include "base/shared_library.h"
#include "plan/copy.h"

#include <execinfo.h>

#include <algorithm>
#include <new>

namespace ingot::cpu {

namespace {

struct DestroyPrimitive {
    const onednn::Library* library;
    void operator()(onednn::Primitive* p) const { library->destroy(p); }
};

class LibraryStep : public Step {
public:
    using Owned = std::unique_ptr<onednn::Primitive, DestroyPrimitive>;

    LibraryStep(const onednn::Library& library, Owned primitive, const onednn::Choice& choice,
                const LibraryProblem& problem)
        : library_(library), primitive_(std::move(primitive)), name_(str("onednn ", choice.name)),
          scratch_bytes_(choice.scratch_bytes), x_(problem.x), w_(problem.w), bias_(problem.bias),
          out_(problem.out), posts_(problem.posts) {}

    void set_packed(std::shared_ptr<std::byte> packed) { packed_ = std::move(packed); }

    Status run(const RunContext& c) noexcept override {
        onednn::Pointers p = {};
        p.x = c.bytes(x_);
        p.w = packed_ != nullptr ? packed_.get() : pointer(c, w_);
        p.bias = pointer(c, bias_);
        p.out = c.bytes(out_);
        p.scratch = c.scratch<std::byte>(scratch);
        for (size_t i = 0; i < posts_.size(); ++i) {
            p.operands[i] = pointer(c, posts_[i]);
        }
        if (!library_.run(*primitive_, threads_of(c.pool), p)) {
            c.error.set("%s failed", name_.c_str());
            return {ErrorCode::Internal, "oneDNN failed"};
        }
        return {};
    }

    std::string implementation() const override { return name_; }
    int64_t scratch_bytes() const override { return scratch_bytes_; }

private:
    static const std::byte* pointer(const RunContext& c, const Operand& o) {
        return o.buffer < 0 ? nullptr : c.bytes(o);
    }

    const onednn::Library& library_;
    Owned primitive_;
    std::shared_ptr<std::byte> packed_;
    std::string name_;
    int64_t scratch_bytes_ = 0;
    Operand x_, w_, bias_, out_;
    std::vector<Operand> posts_;
};

/// Constant weights in the primitive's layout. They are packed once per layout.
std::shared_ptr<std::byte> packed_weights(const onednn::Library& library,
                                          onednn::Primitive& primitive,
                                          const onednn::Choice& choice, const LibraryProblem& p,
                                          const StepArgs& args) {
    const std::byte* w = p.w_constant + p.w.view.offset * bit_width(p.w.dtype) / 8;
    // Weights for signed inputs have sums behind them, which the layout's text does not say.
    std::string key = str("onednn ", reinterpret_cast<uintptr_t>(w), ' ', p.w.view.strides,
                          choice.layout, ' ', p.x.dtype);
    return args.packs.get<std::byte>(key, [&] {
        std::shared_ptr<std::byte> bytes;
        if (p.w_copied) {
            Operand to{p.w.dtype, 0, plan::dense(p.w.view.shape)};
            size_t size = byte_size(p.w.dtype, p.w.view.count());
            bytes = args.packs.allocate(size);
            copy_elements(p.w, const_cast<std::byte*>(p.w_constant), to, bytes.get(), args.pool);
            if (choice.packed_bytes == 0) {
                return std::make_pair(bytes, size);
            }
            w = bytes.get();
        }
        auto size = static_cast<size_t>(choice.packed_bytes);
        std::shared_ptr<std::byte> packed = args.packs.allocate(size);
        require(library.pack(primitive, threads_of(args.pool), w, p.problem, packed.get()),
                ErrorCode::Internal, "oneDNN could not pack weights for ", choice.name);
        return std::make_pair(packed, size);
    });
}

} // namespace

// The C library opens libgcc_s.so when an exception passes one of its own functions, as
// std::bad_alloc inside oneDNN passes call_once(), and ends the process where it cannot. Now there
// is memory for it.
static void prepare_unwinding() {
    void* frame = nullptr;
    static_cast<void>(::backtrace(&frame, 1));
}

const onednn::Library* open_onednn(const std::string& path, std::string& problem) {
    prepare_unwinding();
    SharedLibrary file = SharedLibrary::open(path, problem);
    if (!file) {
        return nullptr;
    }
    auto open = reinterpret_cast<onednn::OpenLibrary>(file.symbol(onednn::open_library_symbol));
    if (open == nullptr) {
        problem = str("'", path, "' is not an ingot library");
        return nullptr;
    }
    char why[512] = {};
    const onednn::Library* library = open(onednn::interface_version, why, sizeof why);
    if (library == nullptr) {
        problem = str("'", path, "': ", why);
    }
    return library;
}

const onednn::Library* onednn_library() {
    static const onednn::Library* const library = [] {
        std::string problem;
        const onednn::Library* found = open_onednn(own_folder() + "/libingot_cpu.so", problem);
        if (found == nullptr) {
            log(LogLevel::Warning,
                "cpu: products and convolutions run on ingot's own loops, which "
                "are slower: ",
                problem);
        }
        return found;
    }();
    return library;
}

onednn::Threads threads_of(ThreadPool& pool) {
    return {&pool, pool.size(),
            [](void* p, int threads, void (*f)(const void*, int), const void* context) {
                return static_cast<ThreadPool*>(p)->begin_team(threads, f, context);
            },
            [](void* p) { static_cast<ThreadPool*>(p)->end_team(); }};
}

onednn::Element element_of(DType t) {
    switch (t) {
    case DType::F32:
        return onednn::Element::F32;
    case DType::F16:
        return onednn::Element::F16;
    case DType::BF16:
        return onednn::Element::BF16;
    case DType::I32:
        return onednn::Element::I32;
    case DType::I8:
        return onednn::Element::I8;
    case DType::U8:
        return onednn::Element::U8;
    default:
        CHECK(false, "oneDNN has no ", t);
    }
}

onednn::Array strided_array(DType t, const Shape& shape, const Shape& strides) {
    CHECK(shape.size() <= onednn::most_axes, "an array of rank ", shape.size());
    onednn::Array a = {};
    a.element = element_of(t);
    a.rank = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), a.sizes);
    std::copy(strides.begin(), strides.end(), a.strides);
    return a;
}

onednn::Array dense_array(DType t, const Shape& shape, const Order& order) {
    return strided_array(t, shape, plan::dense(shape, order).strides);
}

bool library_multiplies(DType x, DType w) {
    if (x == DType::F32) {
        return w == DType::F32;
    }
    return (x == DType::U8 || x == DType::I8) && w == DType::I8 &&
           instruction_set() == InstructionSet::Avx512Vnni;
}

std::unique_ptr<Step> make_library_step(const LibraryProblem& problem, const StepArgs& args) {
    const onednn::Library* library =
        args.options.of<CpuOptions>().use_library ? onednn_library() : nullptr;
    if (library == nullptr) {
        return nullptr;
    }
    onednn::Choice choice;
    char why[256] = {};
    LibraryStep::Owned primitive(
        library->create(problem.problem, threads_of(args.pool), choice, why, sizeof why),
        DestroyPrimitive{library});
    if (primitive == nullptr) {
        log(LogLevel::Verbose, "cpu: '", args.node.name, "' runs on ingot's own loops: ", why);
        return nullptr;
    }
    onednn::Primitive& p = *primitive;
    auto step = std::make_unique<LibraryStep>(*library, std::move(primitive), choice, problem);
    if (choice.packed_bytes > 0 || problem.w_copied) {
        step->set_packed(packed_weights(*library, p, choice, problem, args));
    }
    return step;
}

} // namespace ingot::cpu
