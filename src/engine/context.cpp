// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/engine_code.h"
#include "engine/properties.h"
#include "ir/rewrite.h"
#include "ops/plugin.h"

#include <new>

namespace ingot {

namespace {

// Marks a context as in use; throws when another thread is inside.
class Busy {
public:
    explicit Busy(std::atomic<bool>& flag) : flag_(flag) {
        require(!flag_.exchange(true, std::memory_order_acquire), ErrorCode::InvalidArgument,
                "this context is in use by another thread; give each thread a context of its own");
    }
    ~Busy() { flag_.store(false, std::memory_order_release); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

private:
    std::atomic<bool>& flag_;
};

constexpr const char* code_remedy =
    "; sign it with 'ingot sign' and give the public key (--trustedKeys, ingot::setTrustedKeys), "
    "or "
    "allow its code (--allowEngineCode, IRuntime::setEngineHostCodeAllowed)";

/// On the CPU nothing that an engine brings is code.
bool is_trusted_on(const Engine& engine, const Backend& backend) {
    return engine.distrust().empty() || backend.compute_capability() == 0;
}

/// Errors: InvalidEngine for a kernel of source text, which would be compiled and run.
void refuse_sources(const Engine& engine) {
    visit_nodes(engine.graph(), [&](const Graph&, const Node& n) {
        require(!n.is(cuda_source_def), ErrorCode::InvalidEngine, "node '", n.name,
                "' is a kernel of CUDA source text that the engine brings, and ", engine.distrust(),
                code_remedy);
    });
}

CompileOptions with_kernels(CompileOptions options, const Engine& engine, const Storage& storage,
                            const Backend& backend) {
    require(!engine.weights_missing(), ErrorCode::InvalidArgument,
            "the engine was written without its weights: refit it first");
    options = with_properties(std::move(options), engine);
    if (!is_trusted_on(engine, backend)) {
        refuse_sources(engine);
    }
    if (options.kernels == nullptr) {
        std::string why_not = unused_kernels(engine, backend);
        if (why_not.empty()) {
            options.kernels = engine.kernels();
        } else {
            log(LogLevel::Warning, why_not);
        }
    }
    if (options.profiles.empty()) {
        options.profiles = engine.profiles();
    }
    options.profiles = storage.profiles(options.profiles);
    return options;
}

std::vector<Shape> shapes_of(std::span<const Tensor> tensors) {
    std::vector<Shape> shapes;
    for (const Tensor& t : tensors) {
        shapes.push_back(t.shape());
    }
    return shapes;
}

} // namespace

// Kernels built ahead are native code: those of a trusted engine are used.
std::string unused_kernels(const Engine& engine, const Backend& backend) {
    size_t count = engine.kernels() == nullptr ? 0 : engine.kernels()->size();
    if (count == 0 || is_trusted_on(engine, backend)) {
        return "";
    }
    return str("the engine's ", count,
               " kernels built ahead are not used but compiled anew: ", engine.distrust(),
               code_remedy);
}

Context::Context(std::shared_ptr<const Engine> engine, const Backend& backend,
                 const CompileOptions& options)
    : engine_(std::move(engine)),
      storage_(std::make_shared<const Storage>(engine_->graph_ref(), engine_->formats())),
      executable_(
          backend.compile(storage_->graph(), with_kernels(options, *engine_, *storage_, backend))),
      execution_(executable_->create_execution()) {}

Context::Context(std::shared_ptr<const Engine> engine, std::shared_ptr<const Storage> storage,
                 std::shared_ptr<const Executable> executable)
    : engine_(std::move(engine)), storage_(std::move(storage)), executable_(std::move(executable)),
      execution_(executable_->create_execution()) {}

std::unique_ptr<Context> Context::sibling() const {
    return std::unique_ptr<Context>(new Context(engine_, storage_, executable_));
}

void Context::prepare(std::span<const Shape> shapes) {
    Busy busy(busy_);
    const Graph& g = engine_->graph();
    require(shapes.size() == g.inputs().size(), ErrorCode::InvalidArgument, "the engine has ",
            g.inputs().size(), " inputs, got ", shapes.size(), " shapes");
    for (size_t i = 0; i < shapes.size(); ++i) {
        check_shape(g, i, shapes[i], engine_->profiles());
    }
    try {
        execution_->prepare(storage_->input_shapes(shapes));
    } catch (const std::bad_alloc&) {
        fail(ErrorCode::OutOfMemory, "not enough memory to plan for inputs of these shapes");
    }
    engine_->check_weights(); // the check ran while kernels were compiled and weights copied
}

int64_t Context::activation_bytes(std::span<const Shape> shapes) {
    return execution_->activation_bytes(storage_->input_shapes(shapes));
}

bool Context::capturable(std::span<const Shape> shapes) const {
    return execution_->capturable(storage_->input_shapes(shapes));
}

void Context::require_ok(const Status& s) const {
    if (!s.ok()) {
        throw Error(s.code(),
                    execution_->error().empty() ? std::string(s.text()) : execution_->error());
    }
}

void Context::check_inputs(std::span<const Tensor> inputs) const {
    const Graph& g = engine_->graph();
    require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "the engine has ",
            g.inputs().size(), " inputs, got ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Type& t = g.type(g.inputs()[i]);
        require(inputs[i].dtype() == t.dtype, ErrorCode::InvalidArgument, "input '",
                g.value_name(g.inputs()[i]), "' is ", inputs[i].dtype(), ", expected ", t.dtype);
        check_shape(g, i, inputs[i].shape(), engine_->profiles());
    }
}

std::vector<Tensor> Context::stored(std::span<const Tensor> inputs) const {
    check_inputs(inputs);
    std::vector<Tensor> out;
    std::vector<Shape> shapes = storage_->input_shapes(shapes_of(inputs));
    for (size_t i = 0; i < storage_->sizes_before(); ++i) {
        out.push_back(Tensor::empty(DType::U8, shapes[i]));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        out.push_back(to_storage(storage_->formats().input(i), inputs[i]));
    }
    return out;
}

std::vector<Tensor> Context::run_stored(std::span<const Tensor> inputs,
                                        std::span<const Tensor> outputs) {
    Busy busy(busy_);
    std::vector<Tensor> out(engine_->graph().outputs().size());
    std::copy_n(outputs.begin(), std::min(outputs.size(), out.size()), out.begin());
    require_ok(execution_->run(inputs, out));
    engine_->check_weights(); // the check ran meanwhile
    return out;
}

std::vector<Tensor> Context::unstored(std::span<const Tensor> outputs,
                                      std::span<const Tensor> inputs) const {
    std::vector<Tensor> out;
    std::vector<Shape> shapes = shapes_of(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
        Shape shape = storage_->output_shape(i, outputs[i].shape(), shapes);
        out.push_back(from_storage(storage_->formats().output(i), outputs[i], shape));
    }
    return out;
}

std::vector<Tensor> Context::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    if (storage_->is_plain()) {
        check_inputs(inputs);
        return run_stored(inputs, outputs);
    }
    std::vector<Tensor> arrays = stored(inputs);
    std::vector<Tensor> given(outputs.begin(), outputs.end());
    for (size_t i = 0; i < given.size(); ++i) {
        if (!storage_->formats().output(i).is_row_major()) {
            given[i] = {};
        }
    }
    std::vector<Tensor> out = unstored(run_stored(arrays, given), inputs);
    for (size_t i = 0; i < std::min(outputs.size(), out.size()); ++i) {
        if (outputs[i].defined() && !storage_->formats().output(i).is_row_major()) {
            Tensor to = outputs[i];
            require(to.writable() && to.dtype() == out[i].dtype() && to.shape() == out[i].shape(),
                    ErrorCode::InvalidArgument, "output '", engine_->graph().output_names()[i],
                    "' has to hold ", out[i].dtype(), out[i].shape(), ", got ", to.dtype(),
                    to.shape(), to.writable() ? "" : ", which is read-only");
            std::span<const std::byte> bytes = out[i].bytes();
            std::copy(bytes.begin(), bytes.end(), to.mutable_bytes().begin());
            out[i] = std::move(to);
        }
    }
    return out;
}

void Context::enqueue(std::span<const Binding> inputs, std::span<Binding> outputs, void* stream,
                      const OutputMemory& memory) {
    Busy busy(busy_);
    const Graph& g = engine_->graph();
    require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "the engine has ",
            g.inputs().size(), " inputs, got ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        check_shape(g, i, inputs[i].shape, engine_->profiles());
    }
    engine_->check_weights(); // the results reach the caller's memory
    require_ok(storage_->is_plain() ? execution_->enqueue(inputs, outputs, stream, memory)
                                    : enqueue_stored(inputs, outputs, stream, memory));
}

Status Context::enqueue_stored(std::span<const Binding> inputs, std::span<Binding> outputs,
                               void* stream, const OutputMemory& memory) {
    shapes_.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        shapes_[i] = inputs[i].shape;
    }
    storage_->input_shapes(shapes_, stored_shapes_);
    bindings_.resize(stored_shapes_.size());
    size_t before = storage_->sizes_before();
    for (size_t i = 0; i < bindings_.size(); ++i) {
        bindings_[i].address = i < before ? nullptr : inputs[i - before].address;
        bindings_[i].shape = stored_shapes_[i];
    }
    Status s = execution_->enqueue(bindings_, outputs, stream, memory);
    for (size_t i = 0; i < outputs.size() && s.ok(); ++i) {
        outputs[i].shape = storage_->output_shape(i, outputs[i].shape, shapes_);
    }
    return s;
}

} // namespace ingot
