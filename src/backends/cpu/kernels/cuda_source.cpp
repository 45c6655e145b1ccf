// SPDX-License-Identifier: Apache-2.0
// cuda_source: calls the application's host function that replaces the kernel.
#include "backends/cpu/kernel.h"
#include "backends/cpu/source_step.h"
#include "ir/rewrite.h"
#include "plan/compile_options.h"
#include "run/plugin.h"

namespace ingot::cpu {

namespace {

class SourceStep : public Step {
public:
    explicit SourceStep(const StepArgs& a)
        : title_(a.group.first().as<SourceKernel>().title), in_(a.in.begin(), a.in.end()),
          out_(a.out.begin(), a.out.end()) {
        const auto& source = a.group.first().as<SourceKernel>();
        std::vector<Type> types;
        for (const Operand& o : in_) {
            types.push_back({o.dtype, to_dims(o.view.shape)});
            tensors_.in.push_back({o.dtype, o.view.shape, o.view.shape});
        }
        for (const Operand& o : out_) {
            tensors_.out.push_back({o.dtype, o.view.shape, o.view.shape});
        }
        BoundSource b = bind_source(source, types);
        for (const BoundSource::Condition& c : b.conditions) {
            require(c.a == c.b, ErrorCode::InvalidArgument, c.what, " is ", c.b, ", expected ",
                    c.a);
        }
        arguments_ = std::move(b.arguments);
        kernel_ = a.options.plugins == nullptr ? plan::HostKernel()
                                               : a.options.plugins->host_kernel(source);
        CHECK(kernel_, "compiling checked it");
    }

    Status run(const RunContext& c) noexcept override {
        try {
            std::vector<const void*> in;
            std::vector<void*> out;
            for (const Operand& o : in_) {
                in.push_back(c.bytes(o));
            }
            for (const Operand& o : out_) {
                out.push_back(c.bytes(o));
            }
            kernel_(tensors_, arguments_, in, out);
        } catch (const Error& e) {
            c.error.set("%s", e.what());
            return {e.code(), "a host kernel failed"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "a host kernel failed"};
        }
        return {};
    }

    std::string implementation() const override { return str("host kernel ", title_); }

private:
    std::string title_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
    plan::PluginTensors tensors_;
    std::vector<BoundSource::Argument> arguments_;
    plan::HostKernel kernel_;
};

std::optional<std::string> accept(const Group&) {
    return std::nullopt;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<SourceStep>(args);
}

const Kernel rows[] = {{.name = "cuda_source", .refuse = accept, .prepare = prepare}};

} // namespace

void check_sources(const Graph& g, const CompileOptions& options) {
    for (const Node& n : g.nodes()) {
        for (const GraphRef& body : bodies(n)) {
            check_sources(*body, options);
        }
        if (n.is(cuda_source_def)) {
            const auto& source = n.as<SourceKernel>();
            bool found = options.plugins != nullptr &&
                         static_cast<bool>(options.plugins->host_kernel(source));
            require(found, ErrorCode::Unsupported, "node '", n.name, "': '", source.title,
                    "' is a kernel of CUDA source text, which needs a CUDA device, or on the CPU a "
                    "function registered with ingot::registerHostKernel()");
        }
    }
}

extern const KernelTable cuda_source_kernels;
const KernelTable cuda_source_kernels = rows;

} // namespace ingot::cpu
