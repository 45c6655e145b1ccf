// SPDX-License-Identifier: Apache-2.0
// loop: the body is planned once per shape and runs repeatedly, on alternating buffers.
#include "base/interrupt.h"
#include "ops/primitives.h"
#include "run/control_steps.h"

#include <deque>

namespace ingot::plan {

namespace {

/// A carried value: two buffers, alternately read and written.
struct Carried {
    explicit Carried(Device& device) : buffers{GrowingBuffer(device), GrowingBuffer(device)} {}

    DType dtype = DType::F32;
    Shape shape;
    const std::byte* current = nullptr; // the node's input before the first iteration
    GrowingBuffer buffers[2];
    int next = 0;  // index of the buffer to write next
    Tensor tensor; // holds a result of data-dependent size

    int64_t bytes() const { return static_cast<int64_t>(byte_size(dtype, count_of(shape))); }
};

/// A scanned result: consecutive rows.
struct Scanned {
    explicit Scanned(Device& device) : rows(device), row_memory(device) {}

    DType dtype = DType::F32;
    Shape row;                       // the shape of one row, once known
    GrowingBuffer rows;              // used when the row count is not known before the run
    std::byte* target = nullptr;     // otherwise: the address of the rows
    GrowingBuffer row_memory;        // for a row at an unaligned address
    std::byte* row_target = nullptr; // the address to copy that row to

    size_t row_bytes() const { return byte_size(dtype, count_of(row)); }
    /// The address of row `i`; keeps the rows before it.
    std::byte* at(Device& device, size_t i) {
        if (target != nullptr) {
            return target + i * row_bytes();
        }
        auto needed = static_cast<int64_t>((i + 1) * row_bytes());
        if (needed > rows.bytes()) {
            GrowingBuffer larger(device);
            larger.reserve(std::max<int64_t>(2 * needed, 256));
            device.copy(larger.data(), rows.data(), i * row_bytes());
            device.synchronize();
            rows = std::move(larger);
        }
        return rows.data() + i * row_bytes();
    }
};

/// The value of a scalar that is known before the run, else nullopt.
std::optional<int64_t> known_scalar(const Graph& g, Value v, const Symbols& symbols) {
    if (const Tensor* t = g.constant(v); t != nullptr && t->count() == 1) {
        return t->get_i64(0);
    }
    HostRef host = g.host(v);
    if (host == nullptr || host->elements.size() != 1 || !host->elements[0] ||
        host->elements[0]->denominator != 1) {
        return std::nullopt;
    }
    return host->elements[0]->numerator.try_eval(symbols);
}

/// The trip count of a loop that does not depend on data: it is known, and the condition is
/// constant true.
std::optional<int64_t> fixed_trips(const Group& group, const Node& node, const Graph& body,
                                   const Symbols& symbols) {
    constexpr int64_t most = 4096; // limits the size of captured graphs
    Value next = body.outputs()[0];
    bool stays = next == body.inputs()[1] || known_scalar(body, next, symbols) == 1;
    std::optional<int64_t> trips = known_scalar(group.graph, node.inputs[0], symbols);
    if (!stays || !trips || *trips < 0 || *trips > most ||
        known_scalar(group.graph, node.inputs[1], symbols) != 1) {
        return std::nullopt;
    }
    return trips;
}

class LoopStep : public Step, public BodyReporter {
public:
    explicit LoopStep(const StepArgs& a)
        : runner_(a.bodies[0], a.device, a.symbols), device_(a.device), node_(a.node),
          symbols_(a.symbols), in_(a.in.begin(), a.in.end()), out_(a.out.begin(), a.out.end()),
          scalars_(a.device) {
        auto carried = static_cast<size_t>(a.node.as<Loop>().carried);
        for (size_t i = 0; i < a.node.outputs.size(); ++i) {
            if (i < carried) {
                carried_.emplace_back(a.device);
            } else {
                scanned_.emplace_back(a.device);
            }
        }
        scalars_.reserve(sizeof(Scalars));
        for (size_t i = 0; i < in_.size(); ++i) {
            copies_.emplace_back(a.device);
        }
        const Graph& body = *runner_.program().graph;
        for (size_t i = 0; i < carried; ++i) {
            carried_[i].dtype = in_[2 + i].dtype;
        }
        for (size_t i = 0; i < scanned_.size(); ++i) {
            scanned_[i].dtype = body.type(body.outputs()[1 + carried + i]).dtype;
            packed_ = packed_ || is_packed(scanned_[i].dtype);
        }
        shapes_.resize(in_.size());
        inputs_.resize(in_.size());
        results_.resize(body.outputs().size());
        for (size_t i = 2; i < in_.size(); ++i) {
            shapes_[i] = in_[i].view.shape;
        }
        require(!packed_, ErrorCode::Unsupported,
                "loop: scanned results of 4-bit types are not supported");
        trips_ = fixed_trips(a.group, a.node, body, a.symbols);
    }

    std::string bodies_text() override { return body_text("body", runner_, shapes_); }
    std::vector<StepReport> bodies_report() override {
        std::vector<StepReport> all;
        append_report(all, "body", runner_, shapes_);
        return all;
    }

    /// The first run shows whether the iterations only enqueue work.
    bool recordable() const override { return trips_ && (!has_run_ || runner_.recordable()); }

    Status run(const RunContext& c) noexcept override {
        return guarded(c, "loop", [&] { run_static(c); });
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        for (Scanned& s : scanned_) {
            s.target = nullptr;
        }
        int64_t count = iterate(c, -1);
        for (Carried& v : carried_) {
            Tensor t = device_.tensor(v.dtype, v.shape);
            device_.copy(t.mutable_bytes().data(), v.current, t.bytes().size());
            results.tensors.push_back(std::move(t));
        }
        for (size_t i = 0; i < scanned_.size(); ++i) {
            Scanned& s = scanned_[i];
            if (count == 0) {
                s.row = shape_of_no_row(i);
            }
            Shape shape = s.row;
            shape.insert(shape.begin(), count);
            Tensor t = device_.tensor(s.dtype, shape);
            device_.copy(t.mutable_bytes().data(), s.rows.data(), t.bytes().size());
            results.tensors.push_back(std::move(t));
        }
        const Dim& symbol = node_.as<Loop>().count;
        if (!symbol.symbol_name().empty()) {
            results.symbols.emplace(std::string(symbol.symbol_name()), count);
        }
    }

private:
    void run_static(const RunContext& c) {
        int64_t limit = -1;
        for (size_t i = 0; i < scanned_.size(); ++i) {
            const Operand& o = out_[carried_.size() + i];
            scanned_[i].target = c.bytes(o);
            limit = o.view.shape[0];
        }
        int64_t count = iterate(c, limit);
        require(limit < 0 || count == limit, ErrorCode::InvalidArgument, "loop ran ", count,
                " times, expected ", limit);
        for (size_t i = 0; i < carried_.size(); ++i) {
            Carried& v = carried_[i];
            require_shape(v.shape, out_[i].view.shape, "carried value", i);
            device_.copy(c.bytes(out_[i]), v.current, static_cast<size_t>(v.bytes()));
        }
        for (size_t i = 0; i < scanned_.size() && count > 0; ++i) {
            Shape row = out_[carried_.size() + i].view.shape;
            row.erase(row.begin());
            require_shape(scanned_[i].row, row, "a row of scanned result", i);
        }
    }

    /// Runs the body until the condition or the trip count ends it; returns the number of
    /// iterations. Refuses to exceed `limit` iterations (unless negative) before it writes their
    /// results.
    int64_t iterate(const RunContext& c, int64_t limit) {
        int64_t trips = trips_.value_or(0);
        condition_ = true;
        if (!trips_) {
            device_.read(&trips, c.bytes(in_[0]), sizeof trips);
            device_.read(&condition_, c.bytes(in_[1]), sizeof condition_);
        } else if (!has_run_) {
            write_numbers();
        }
        for (size_t i = 0; i < carried_.size(); ++i) {
            carried_[i].current =
                aligned(device_, copies_[2 + i], c.bytes(in_[2 + i]), bytes_of(in_[2 + i]));
            carried_[i].next =
                0; // every run uses the buffers in the same order: a recording allocates nothing
            carried_[i].shape = in_[2 + i].view.shape;
        }
        for (size_t i = 2 + carried_.size(); i < in_.size(); ++i) {
            inputs_[i] = aligned(device_, copies_[i], c.bytes(in_[i]), bytes_of(in_[i]));
        }
        watch_ = *c.bodies;
        iteration_ = 0;
        for (; iteration_ < trips && condition_; ++iteration_) {
            check_interrupt();
            require(limit < 0 || iteration_ < limit, ErrorCode::InvalidArgument,
                    "loop runs more than ", limit, " times, the size of its result");
            run_body();
        }
        has_run_ = true;
        return iteration_;
    }

    /// Writes the scalars of all iterations, when they are known before the run.
    void write_numbers() {
        std::vector<Scalars> all(static_cast<size_t>(std::max<int64_t>(*trips_, 1)));
        for (size_t i = 0; i < all.size(); ++i) {
            all[i].iteration = static_cast<int64_t>(i);
            all[i].condition = true;
        }
        scalars_.reserve(static_cast<int64_t>(all.size() * sizeof(Scalars)));
        device_.write(scalars_.data(), all.data(), all.size() * sizeof(Scalars));
    }

    /// The address of this iteration's scalars.
    std::byte* place_scalars() {
        if (trips_) {
            return scalars_.data() + static_cast<size_t>(iteration_) * sizeof(Scalars);
        }
        Scalars scalars{iteration_, condition_, false};
        device_.write(scalars_.data(), &scalars, sizeof scalars);
        return scalars_.data();
    }

    void run_body() {
        std::byte* scalars = place_scalars();
        inputs_[0] = scalars + offsetof(Scalars, iteration);
        inputs_[1] = scalars + offsetof(Scalars, condition);
        for (size_t i = 0; i < carried_.size(); ++i) {
            inputs_[2 + i] = carried_[i].current;
            if (shapes_[2 + i] != carried_[i].shape) {
                shapes_[2 + i] = carried_[i].shape;
            }
        }
        runner_.prepare(shapes_);
        std::byte* next = scalars + offsetof(Scalars, next_condition);
        results_[0] = {next, {}};
        for (size_t i = 0; i < carried_.size(); ++i) {
            bind_carried(i);
        }
        for (size_t i = 0; i < scanned_.size(); ++i) {
            bind_scanned(i);
        }
        // Addresses differ between iterations: they are recorded with the loop or not at all.
        watch_.replay = !trips_;
        runner_.run(inputs_, results_, watch_);
        if (!trips_) {
            device_.read(&condition_, next, sizeof condition_);
        }
        for (size_t i = 0; i < carried_.size(); ++i) {
            take_carried(i);
        }
        for (size_t i = 0; i < scanned_.size(); ++i) {
            take_scanned(i);
        }
    }

    void bind_carried(size_t i) {
        Carried& v = carried_[i];
        ResultSlot& slot = results_[1 + i];
        std::optional<Shape> shape = runner_.result_shape(1 + i);
        slot = {};
        if (shape) {
            GrowingBuffer& buffer = v.buffers[v.next];
            buffer.reserve(static_cast<int64_t>(byte_size(v.dtype, count_of(*shape))));
            slot.data = buffer.data();
            v.shape = std::move(*shape);
            if (slot.data == nullptr) { // no elements: any non-null address
                slot.data = reinterpret_cast<std::byte*>(&v);
            }
        }
    }

    void take_carried(size_t i) {
        Carried& v = carried_[i];
        ResultSlot& slot = results_[1 + i];
        v.current = slot.data;
        if (slot.tensor.defined()) {
            v.tensor = std::move(slot.tensor);
            v.shape = v.tensor.shape();
        } else {
            v.next = 1 - v.next;
        }
    }

    void bind_scanned(size_t i) {
        Scanned& s = scanned_[i];
        ResultSlot& slot = results_[1 + carried_.size() + i];
        slot = {};
        std::optional<Shape> shape = runner_.result_shape(1 + carried_.size() + i);
        if (shape) {
            take_row_shape(s, *shape, i);
            slot.data = s.at(device_, static_cast<size_t>(iteration_));
            s.row_target = nullptr;
            if (!device_.is_host() && !is_aligned(slot.data, buffer_alignment)) {
                s.row_target = slot.data;
                s.row_memory.reserve(static_cast<int64_t>(s.row_bytes()));
                slot.data = s.row_memory.data();
            }
            if (slot.data == nullptr) {
                slot.data = reinterpret_cast<std::byte*>(&s);
            }
        }
    }

    void take_scanned(size_t i) {
        Scanned& s = scanned_[i];
        const Tensor& t = results_[1 + carried_.size() + i].tensor;
        if (!t.defined()) {
            if (s.row_target != nullptr) {
                device_.copy(s.row_target, s.row_memory.data(), s.row_bytes());
            }
            return;
        }
        take_row_shape(s, t.shape(), i);
        device_.copy(s.at(device_, static_cast<size_t>(iteration_)), t.bytes().data(),
                     t.bytes().size());
    }

    void take_row_shape(Scanned& s, const Shape& shape, size_t i) const {
        if (iteration_ == 0) {
            s.row = shape;
        }
        require(s.row == shape, ErrorCode::InvalidArgument, "scanned result ", i, " has shape ",
                shape, " in iteration ", iteration_, ", expected ", s.row, " as in iteration 0");
        if (s.target != nullptr) {
            const Operand& o = out_[carried_.size() + i];
            auto total = static_cast<size_t>(bytes_of(o));
            require((static_cast<size_t>(iteration_) + 1) * s.row_bytes() <= total,
                    ErrorCode::InvalidArgument, "rows of scanned result ", i, " have shape ", shape,
                    ", which does not fit ", o.view.shape);
        }
    }

    /// The shape of a scanned row when the body never ran; unknown sizes are 0.
    Shape shape_of_no_row(size_t i) const {
        const Graph& body = *runner_.program().graph;
        Symbols known = symbols_;
        for (size_t k = 0; k < in_.size(); ++k) {
            const Dims& dims = body.type(body.inputs()[k]).dims;
            for (size_t d = 0; d < dims.size(); ++d) {
                if (!dims[d].symbol_name().empty()) {
                    known.emplace(std::string(dims[d].symbol_name()), in_[k].view.shape[d]);
                }
            }
        }
        Shape shape;
        for (const Dim& d : body.type(body.outputs()[1 + carried_.size() + i]).dims) {
            shape.push_back(std::max<int64_t>(d.try_eval(known).value_or(0), 0));
        }
        return shape;
    }

    /// Device memory that an iteration reads and writes besides the carried values.
    struct Scalars {
        alignas(buffer_alignment) int64_t iteration = 0;
        alignas(buffer_alignment) bool condition = false;
        alignas(buffer_alignment) bool next_condition = false;
    };

    Runner runner_;
    RunWatch watch_; // of this run
    Device& device_;
    const Node& node_;
    Symbols symbols_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
    std::deque<GrowingBuffer> copies_; // copies of operands whose address is not aligned
    std::deque<Carried> carried_;
    std::deque<Scanned> scanned_;
    std::vector<Shape> shapes_;
    std::vector<const std::byte*> inputs_;
    std::vector<ResultSlot> results_;
    GrowingBuffer scalars_;
    int64_t iteration_ = 0;
    bool condition_ = false;
    bool packed_ = false;
    std::optional<int64_t> trips_; // the trip count, when it does not depend on data
    bool has_run_ = false;
};

} // namespace

std::unique_ptr<Step> make_loop_step(const StepArgs& args) {
    return std::make_unique<LoopStep>(args);
}

} // namespace ingot::plan
