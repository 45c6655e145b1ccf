// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "engine/engine.h"

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

CompileOptions with_kernels(CompileOptions options, const Engine& engine) {
    require(!engine.weights_missing(), ErrorCode::InvalidArgument,
            "the engine was written without its weights: refit it first");
    if (options.kernels == nullptr) {
        options.kernels = engine.kernels();
    }
    if (options.profiles.empty()) {
        options.profiles = engine.profiles();
    }
    return options;
}

} // namespace

Context::Context(std::shared_ptr<const Engine> engine, const Backend& backend,
                 const CompileOptions& options)
    : engine_(std::move(engine)),
      executable_(backend.compile(engine_->graph_ref(), with_kernels(options, *engine_))),
      execution_(executable_->create_execution()) {}

Context::Context(std::shared_ptr<const Engine> engine, std::shared_ptr<const Executable> executable)
    : engine_(std::move(engine)), executable_(std::move(executable)),
      execution_(executable_->create_execution()) {}

std::unique_ptr<Context> Context::sibling() const {
    return std::unique_ptr<Context>(new Context(engine_, executable_));
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
        execution_->prepare(shapes);
    } catch (const std::bad_alloc&) {
        fail(ErrorCode::OutOfMemory, "there is no memory to plan for inputs of these shapes");
    }
    engine_->check_weights(); // went on while kernels were compiled and weights copied
}

std::vector<Tensor> Context::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    Busy busy(busy_);
    const Graph& g = engine_->graph();
    require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "the engine has ",
            g.inputs().size(), " inputs, got ", inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Type& t = g.type(g.inputs()[i]);
        require(inputs[i].dtype() == t.dtype, ErrorCode::InvalidArgument, "input '",
                g.value_name(g.inputs()[i]), "' is ", inputs[i].dtype(), ", expected ", t.dtype);
        check_shape(g, i, inputs[i].shape(), engine_->profiles());
    }
    std::vector<Tensor> out(g.outputs().size());
    std::copy_n(outputs.begin(), std::min(outputs.size(), out.size()), out.begin());
    Status s = execution_->run(inputs, out);
    if (!s.ok()) {
        throw Error(s.code(),
                    execution_->error().empty() ? std::string(s.text()) : execution_->error());
    }
    engine_->check_weights();
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
    engine_->check_weights(); // the results go to the caller's memory
    Status s = execution_->enqueue(inputs, outputs, stream, memory);
    if (!s.ok()) {
        throw Error(s.code(),
                    execution_->error().empty() ? std::string(s.text()) : execution_->error());
    }
}

} // namespace ingot
