// SPDX-License-Identifier: Apache-2.0
// SourceStep: the kernel of a cuda_source, compiled like those of families. Its text follows the
// common device types, so that it can use them.
#include "backends/cuda/run/launch_list.h"
#include "backends/cuda/run/steps.h"
#include "base/error.h"
#include "ops/plugin.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

namespace {

using Kind = BoundSource::Argument::Kind;

constexpr int64_t most_threads = 1024;
constexpr int64_t most_blocks[3] = {2147483647, 65535, 65535};
constexpr int64_t most_block[3] = {1024, 1024, 64};

std::string_view device_type(DType t) {
    switch (t) {
    case DType::F32:
        return "float";
    case DType::F16:
        return "F16";
    case DType::BF16:
        return "BF16";
    case DType::F8E4M3:
        return "F8E4M3";
    case DType::I8:
        return "signed char";
    case DType::U8:
        return "unsigned char";
    case DType::I32:
        return "int";
    case DType::I64:
        return "long long";
    case DType::Bool:
        return "bool";
    default:
        fail(ErrorCode::Unsupported, "kernels of source text do not take elements of type ",
             name(t));
    }
}

std::string program_text(const SourceKernel& s, const BoundSource& b) {
    std::string file = s.title;
    std::replace_if(
        file.begin(), file.end(), [](char c) { return c == '"' || c == '\\' || c == '\n'; }, '_');
    std::string body = "\n";
    for (const auto& [name, type] : b.types) {
        body += str("typedef ", device_type(type), ' ', name, ";\n");
    }
    body += str("#line 1 \"", file, "\"\n", s.source, '\n');
    kernels::Program p;
    p.uses = {"types", "math"};
    p.body = std::move(body);
    return kernels::full_text(p);
}

class SourceStep : public Step, public ReadyStep, public plan::LaunchReporter {
public:
    explicit SourceStep(const StepArgs& a)
        : device_(static_cast<CudaDevice&>(a.device)), source_(a.group.first().as<SourceKernel>()) {
        std::vector<Type> types;
        for (const Operand& o : a.in) {
            types.push_back({o.dtype, to_dims(o.view.shape)});
        }
        BoundSource b = bind_source(source_, types);
        for (const BoundSource::Condition& c : b.conditions) {
            require(c.a == c.b, ErrorCode::InvalidArgument, c.what, " is ", c.b, ", expected ",
                    c.a);
        }
        set_launch(b);
        set_arguments(a, b);
        if (!nothing_) {
            request(program_text(source_, b));
        }
    }

    Status run(const RunContext& c) noexcept override {
        if (nothing_) {
            return {};
        }
        try {
            for (const kernels::Args::Fixup& f : args_.fixups()) {
                std::byte* base = f.what == kernels::Args::Patch::Scratch ? c.buffers[scratch]
                                                                          : c.buffers[f.buffer];
                std::byte* address = base + f.offset;
                std::memcpy(memory_.data() + f.at, &address, sizeof address);
            }
            device_.stream().launch(kernel_->function(), shape_, parameters_.data());
        } catch (const Error& e) {
            c.error.set("kernel '%s' of '%s': %s", source_.kernel.c_str(), source_.title.c_str(),
                        e.what());
            return {e.code(), "a kernel of source text could not be launched"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "a kernel of source text could not be launched"};
        }
        return {};
    }

    std::string implementation() const override {
        return str("source ", source_.title, '.', source_.kernel);
    }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    void report(plan::StepReport& to) override {
        if (kernel_ != nullptr) {
            to.launches.push_back(launch_report(*kernel_, shape_, device_.arch()));
        }
    }

    bool recordable() const override { return true; }
    bool get_ready() noexcept override { return true; } // the plan has waited for the compiler

private:
    void set_launch(const BoundSource& b) {
        uint32_t block[3];
        int64_t threads = 1;
        for (size_t i = 0; i < 3; ++i) {
            int64_t blocks = b.grid[i].value();
            int64_t size = b.block[i].value();
            require(blocks >= 0 && blocks <= most_blocks[i], ErrorCode::InvalidArgument,
                    "the grid '", source_.grid, "' has ", blocks, " blocks along axis ", i,
                    ", expected 0 to ", most_blocks[i]);
            require(size >= 1 && size <= most_block[i], ErrorCode::InvalidArgument, "the block '",
                    source_.block, "' has ", size, " threads along axis ", i, ", expected 1 to ",
                    most_block[i]);
            nothing_ = nothing_ || blocks == 0;
            shape_.grid[i] = static_cast<uint32_t>(blocks);
            block[i] = static_cast<uint32_t>(size);
            threads *= size;
        }
        require(threads <= most_threads, ErrorCode::InvalidArgument, "the block '", source_.block,
                "' has ", threads, " threads, expected at most ", most_threads);
        shape_.block = block[0];
        shape_.block_y = block[1];
        shape_.block_z = block[2];
        int64_t shared = b.shared.value();
        require(shared >= 0 && shared <= device_.arch().shared_per_block,
                ErrorCode::InvalidArgument, "the shared memory '", source_.shared, "' is ", shared,
                " bytes, expected 0 to ", device_.arch().shared_per_block);
        shape_.shared = static_cast<uint32_t>(shared);
        scratch_bytes_ = b.workspace.value();
        require(scratch_bytes_ >= 0, ErrorCode::InvalidArgument, "the workspace '",
                source_.workspace, "' is ", scratch_bytes_, " bytes");
    }

    void set_arguments(const StepArgs& a, const BoundSource& b) {
        for (const Operand& o : a.in) {
            args_.pointer(o);
        }
        for (const Operand& o : a.out) {
            args_.pointer(o);
        }
        if (!source_.workspace.empty()) {
            scratch_bytes_ > 0 ? args_.scratch(0) : args_.null();
        }
        for (const BoundSource::Argument& v : b.arguments) {
            switch (v.kind) {
            case Kind::I64:
                args_.i64(v.integer.value());
                break;
            case Kind::I32:
                args_.i32(v.integer.value());
                break;
            case Kind::F32:
                args_.f32(v.real);
                break;
            case Kind::F64:
                args_.f64(v.real);
                break;
            }
        }
        memory_ = args_.bytes();
        for (uint32_t offset : args_.offsets()) {
            parameters_.push_back(memory_.data() + offset);
        }
    }

    /// Waits for the compiler, whose full message is an error of the plan.
    void request(std::string text) {
        ProgramCache& programs = *device_.state().programs;
        ProfilePrograms* profile = device_.state().profile_programs.get();
        using When = ProgramCache::When;
        if (profile != nullptr && profile->is_open()) { // nothing will be launched
            kernel_ = programs.request(text, source_.kernel, shape_.shared, When::Now);
            profile->note(text, source_.kernel, kernel_);
            return;
        }
        kernel_ = programs.request(std::move(text), source_.kernel, shape_.shared, When::Now);
        with_place([this] { return str("source '", source_.title, "'"); },
                   [this] {
                       try {
                           kernel_->wait();
                       } catch (const Error& e) {
                           if (e.code() == ErrorCode::Internal) { // the text is the user's
                               fail(ErrorCode::InvalidArgument, e.what());
                           }
                           throw;
                       }
                   });
    }

    CudaDevice& device_;
    const SourceKernel& source_;
    LaunchShape shape_;
    bool nothing_ = false;
    kernels::Args args_;
    std::vector<std::byte> memory_; // of the parameters
    std::vector<void*> parameters_;
    std::shared_ptr<PendingKernel> kernel_;
    int64_t scratch_bytes_ = 0;
};

} // namespace

std::unique_ptr<Step> make_source_step(const StepArgs& args) {
    return std::make_unique<SourceStep>(args);
}

} // namespace ingot::cuda
