// SPDX-License-Identifier: Apache-2.0
#include "run/plugin.h"

#include "plan/compile_options.h"
#include "plan/device.h"

#include <algorithm>

namespace ingot::plan {

namespace {

/// Shared by all plans of an execution for one node.
struct Attached {
    std::shared_ptr<PluginRun> run;
    const void* last = nullptr; // the step that last called set_tensors
};

size_t byte_count(const Operand& o) {
    return static_cast<size_t>(byte_size(o.dtype, o.view.count()));
}

class PluginStep : public Step {
public:
    explicit PluginStep(const StepArgs& a)
        : plugin_(a.group.first().as<Plugin>()), host_(a.options.plugins),
          in_(a.in.begin(), a.in.end()), out_(a.out.begin(), a.out.end()), key_(&a.node) {
        require(host_ != nullptr, ErrorCode::Unsupported, "plugin '", plugin_.name,
                "': plugins run where an engine is loaded by the API (IRuntime)");
        for (const Operand& o : in_) {
            tensors_.in.push_back({o.dtype, o.view.shape, o.view.shape});
        }
        Bounds most;
        for (size_t i = 0; i < plugin_.symbols.size(); ++i) {
            int64_t high = plugin_.most[i].eval(a.symbols);
            require(high >= 0, ErrorCode::InvalidArgument, "size ", i, " of plugin '", plugin_.name,
                    "' is at most ", high);
            most.emplace(std::string(plugin_.symbols[i].symbol_name()), Interval{0, high});
            tensors_.most.push_back(high);
        }
        for (const Type& t : plugin_results(plugin_)) {
            add_result(t, a.symbols, most);
        }
        for (size_t at = 0; at < plugin_.shape_values.size();) {
            auto n = static_cast<size_t>(plugin_.shape_values[at++].value());
            Shape& values = tensors_.shape_inputs.emplace_back();
            for (size_t i = 0; i < n; ++i) {
                values.push_back(plugin_.shape_values[at++].eval(a.symbols));
            }
        }
        check_aliases();
        scratch_bytes_ = host_->prepare(plugin_, tensors_);
    }

    Status run(const RunContext& c) noexcept override {
        try {
            std::vector<void*> out;
            for (const Operand& o : out_) {
                out.push_back(c.bytes(o));
            }
            enqueue(c, out);
        } catch (const Error& e) {
            c.error.set("%s", e.what());
            return {e.code(), "a plugin failed"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "a plugin failed"};
        }
        return {};
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        std::vector<Tensor> whole;
        std::vector<void*> out;
        for (const PluginTensor& t : tensors_.out) {
            whole.push_back(c.device.tensor(t.dtype, t.largest));
            out.push_back(whole.back().mutable_bytes().data());
        }
        enqueue(c, out);
        for (size_t i = 0; i < plugin_.symbols.size(); ++i) {
            const Tensor& t = whole[static_cast<size_t>(plugin_.size_results[i])];
            Tensor here = Tensor::empty(t.dtype(), {});
            c.device.read(here.mutable_bytes().data(), t.bytes().data(), here.bytes().size());
            int64_t n = here.get_i64(0);
            require(n >= 0 && n <= tensors_.most[i], ErrorCode::InvalidArgument, "plugin '",
                    plugin_.name, "' wrote size ", n, " to output ", plugin_.size_results[i],
                    ", expected 0 to ", tensors_.most[i]);
            results.symbols.insert_or_assign(std::string(plugin_.symbols[i].symbol_name()), n);
        }
        for (size_t i = 0; i < whole.size(); ++i) {
            results.tensors.push_back(first_part(whole[i], partly_[i], results.symbols, i));
        }
    }

    std::string implementation() const override {
        return str("plugin ", plugin_.name, " version ", plugin_.version);
    }
    int64_t scratch_bytes() const override { return scratch_bytes_; }
    bool recordable() const override { return true; }

private:
    void add_result(const Type& t, const Symbols& symbols, const Bounds& most) {
        Shape shape;
        Shape largest;
        Dims partly;
        for (const Dim& d : t.dims) {
            std::optional<int64_t> size = d.try_eval(symbols);
            Dim rest = d.substitute([&symbols](std::string_view s) -> std::optional<Dim> {
                auto it = symbols.find(s);
                return it == symbols.end() ? std::nullopt : std::optional<Dim>(it->second);
            });
            shape.push_back(size.value_or(-1));
            largest.push_back(size ? *size : rest.bounds(most).high);
            partly.push_back(std::move(rest));
        }
        static_cast<void>(count_of(largest)); // may overflow
        tensors_.out.push_back({t.dtype, std::move(shape), std::move(largest)});
        partly_.push_back(std::move(partly));
    }

    void check_aliases() const {
        for (size_t i = 0; i < plugin_.aliases.size(); ++i) {
            int64_t a = plugin_.aliases[i];
            if (a >= 0) {
                const Shape& from = tensors_.in[static_cast<size_t>(a)].shape;
                require(from == tensors_.out[i].shape, ErrorCode::InvalidArgument, "plugin '",
                        plugin_.name, "': output ", i, " of shape ", tensors_.out[i].shape,
                        " updates input ", a, " of shape ", from);
            }
        }
    }

    PluginRun& attached(const RunContext& c) {
        std::shared_ptr<void>& slot = c.device.shared_state(key_);
        if (slot == nullptr) {
            auto made = std::make_shared<Attached>();
            made->run = host_->attach(plugin_);
            slot = std::move(made);
        }
        auto& a = *static_cast<Attached*>(slot.get());
        if (a.last != this) {
            a.last = nullptr;
            a.run->set_tensors(tensors_);
            a.last = this;
        }
        return *a.run;
    }

    void enqueue(const RunContext& c, const std::vector<void*>& out) {
        PluginRun& run = attached(c);
        std::vector<const void*> in;
        for (const Operand& o : in_) {
            in.push_back(c.bytes(o));
        }
        for (size_t i = 0; i < plugin_.aliases.size(); ++i) {
            if (plugin_.aliases[i] >= 0) { // the input may still be needed: its copy is updated
                auto a = static_cast<size_t>(plugin_.aliases[i]);
                c.device.copy(static_cast<std::byte*>(out[i]), c.bytes(in_[a]), byte_count(in_[a]));
                in[a] = out[i];
            }
        }
        CallerStreams* streams = c.device.parts().streams;
        void* workspace = scratch < 0 ? nullptr : c.buffers[scratch];
        run.enqueue(tensors_, in, out, workspace, streams == nullptr ? nullptr : streams->native());
    }

    /// The result at its final sizes: a dense prefix of the allocated tensor.
    Tensor first_part(Tensor& whole, const Dims& dims, const Symbols& symbols, size_t index) const {
        Shape shape = eval(dims, symbols);
        bool fits = std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; });
        require(fits && count_of(shape) <= whole.count(), ErrorCode::InvalidArgument, "output ",
                index, " of plugin '", plugin_.name, "' has shape ", shape, ", expected at most ",
                tensors_.out[index].largest);
        auto bytes = static_cast<size_t>(byte_size(whole.dtype(), count_of(shape)));
        auto owner = std::make_shared<Tensor>(whole);
        return Tensor::wrap_mutable(whole.dtype(), std::move(shape),
                                    owner->mutable_bytes().first(bytes), owner);
    }

    const Plugin& plugin_;
    std::shared_ptr<PluginHost> host_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
    const void* key_;
    PluginTensors tensors_;
    std::vector<Dims> partly_; // per result: sizes, unknown only where the plugin computes them
    int64_t scratch_bytes_ = 0;
};

std::optional<std::string> accept(const Group&) {
    return std::nullopt;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<PluginStep>(args);
}

const Kernel rows[] = {{.name = "plugin", .refuse = accept, .prepare = prepare}};

} // namespace

const KernelTable plugin_kernels = rows;

} // namespace ingot::plan
