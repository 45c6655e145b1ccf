// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/batch.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

namespace ingot::triton {

namespace {

/// As the server's own times: of the steady clock, in nanoseconds.
uint64_t now() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// Checks a request's shape against the engine's: open sizes within the built range. The rows of a
/// batch are checked by their limit.
void check_shape(const EngineTensor& t, const std::vector<int64_t>& shape, bool batched) {
    bool fits = shape.size() == t.dims.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) {
        bool open = t.dims[i] == -1;
        bool bounded = open && !t.most.empty() && !(batched && i == 0);
        fits = shape[i] >= 0 && (open || shape[i] == t.dims[i]) &&
               (!bounded || (shape[i] >= t.least[i] && shape[i] <= t.most[i]));
    }
    require(fits, ErrorCode::InvalidArgument, "input '", t.name, "' has shape ", dims_text(shape),
            ", expected ", dims_text(t.dims),
            t.most.empty() ? std::string()
                           : str(" within ", dims_text(t.least), " to ", dims_text(t.most)));
}

/// Gives the states to the next request of the sequence.
void update_states(const Pending& p) {
    for (TRITONBACKEND_State* state : p.states) {
        check(TRITONBACKEND_StateUpdate(state));
    }
}

/// A ragged input's sizes are free; all elements of a batch are within the engine's limit.
void check_ragged(const EngineTensor& t, const std::vector<int64_t>& shape) {
    bool fits = shape.size() > 1 &&
                std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
    require(fits, ErrorCode::InvalidArgument, "input '", t.name, "' has shape ", dims_text(shape),
            ", expected rows of at least one more size");
    int64_t elements = element_count(shape);
    require(t.most.empty() || elements <= t.most[0], ErrorCode::InvalidArgument, "input '", t.name,
            "' of shape ", dims_text(shape), " has ", elements, " elements, the engine takes ",
            t.most[0]);
}

struct DeleteError {
    void operator()(TRITONSERVER_Error* e) const { TRITONSERVER_ErrorDelete(e); }
};
/// The error that answers a request; null: its outputs do.
using Answer = std::unique_ptr<TRITONSERVER_Error, DeleteError>;

} // namespace

Batch::Batch(Instance& instance, TRITONBACKEND_Request** requests, uint32_t count)
    : instance_(instance), runner_(*instance.runner_),
      max_batch_size_(instance.model_.config().max_batch_size), start_(now()), pending_(count) {
    for (uint32_t i = 0; i < count; ++i) {
        pending_[i].request = requests[i];
    }
    for (Pending& p : pending_) {
        TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&p.response, p.request);
        if (error != nullptr) {
            p.response = nullptr;
            for (Pending& made : pending_) {
                if (made.response != nullptr) {
                    ignore(TRITONBACKEND_ResponseDelete(made.response));
                    made.response = nullptr;
                }
            }
            pending_.clear();
            check(error);
        }
    }
}

Batch::~Batch() {
    release_all();
}

void Batch::run() noexcept {
    TRITONSERVER_Error* error = guard([&] { run_groups(); });
    if (error != nullptr) { // memory for the list of groups
        for (Pending& p : pending_) {
            if (p.response != nullptr) {
                answer(p, server_error(TRITONSERVER_ErrorCode(error),
                                       TRITONSERVER_ErrorMessage(error)));
            }
        }
        TRITONSERVER_ErrorDelete(error);
    }
    release_all();
}

void Batch::run_groups() {
    std::vector<Pending*> ready;
    ready.reserve(pending_.size());
    for (Pending& p : pending_) {
        TRITONSERVER_Error* error = guard([&] { read(p); });
        if (error != nullptr) {
            answer(p, error);
        } else {
            ready.push_back(&p);
        }
    }
    // Requests of one shape stand together, in the order in which they came.
    auto same_shape = [&](const Pending* a, const Pending* b) {
        if (max_batch_size_ == 0) {
            return false;
        }
        for (size_t i = 0; i < a->shapes.size(); ++i) {
            if (runner_.is_ragged(i) || runner_.batch_input(i) != nullptr) {
                continue;
            }
            if (!std::equal(a->shapes[i].begin() + 1, a->shapes[i].end(), b->shapes[i].begin() + 1,
                            b->shapes[i].end())) {
                return false;
            }
        }
        return true;
    };
    auto first = ready.begin();
    while (first != ready.end()) {
        auto end = std::stable_partition(first + 1, ready.end(),
                                         [&](Pending* p) { return same_shape(*first, p); });
        while (first != end) {
            int64_t rows = 0;
            auto stop = first;
            while (stop != end && (stop == first || (rows + (*stop)->rows <= max_batch_size_ &&
                                                     ragged_fit(Group(first, stop + 1))))) {
                rows += (*stop)->rows;
                ++stop;
            }
            run_group(Group(&*first, static_cast<size_t>(stop - first)));
            first = stop;
        }
    }
}

void Batch::read(Pending& p) const {
    require(!get_from<bool>(TRITONBACKEND_RequestIsCancelled, p.request), ErrorCode::Interrupted,
            "the request was cancelled");
    const Engine& engine = runner_.engine();
    p.shapes.resize(engine.inputs.size());
    p.inputs.resize(engine.inputs.size());
    p.first_elements.resize(engine.inputs.size());
    std::optional<size_t> first;
    for (size_t i = 0; i < engine.inputs.size(); ++i) {
        if (runner_.batch_input(i) != nullptr) {
            continue;
        }
        if (runner_.may_lack(i) && !has_input(p, engine.inputs[i].name)) {
            take_default(p, i);
            continue;
        }
        read_input(p, i);
        if (max_batch_size_ == 0) {
            continue;
        }
        first = first.value_or(i);
        p.rows = p.shapes[*first][0];
        require(p.shapes[i][0] == p.rows, ErrorCode::InvalidArgument, "input '",
                engine.inputs[i].name, "' has ", p.shapes[i][0], " rows, input '",
                engine.inputs[*first].name, "' has ", p.rows);
    }
    if (max_batch_size_ == 0) {
        return;
    }
    require(p.rows <= max_batch_size_, ErrorCode::InvalidArgument, "the request has ", p.rows,
            " rows, at most ", max_batch_size_, " are allowed");
}

bool Batch::has_input(const Pending& p, const std::string& name) const {
    auto count = get_from<uint32_t>(TRITONBACKEND_RequestInputCount, p.request);
    for (uint32_t i = 0; i < count; ++i) {
        if (get_from<const char*>(TRITONBACKEND_RequestInputName, p.request, i) == name) {
            return true;
        }
    }
    return false;
}

void Batch::take_default(Pending& p, size_t index) const {
    const EngineTensor::Default& value = *runner_.engine().inputs[index].initial;
    p.shapes[index] = value.dims;
    p.inputs[index].bytes = value.bytes.size();
    if (!value.bytes.empty()) {
        p.inputs[index].parts = {{value.bytes.data(), value.bytes.size(), TRITONSERVER_MEMORY_CPU}};
    }
}

void Batch::read_input(Pending& p, size_t index) const {
    const EngineTensor& t = runner_.engine().inputs[index];
    TRITONBACKEND_Input* input = nullptr;
    check(TRITONBACKEND_RequestInput(p.request, t.name.c_str(), &input));
    TRITONSERVER_DataType type{};
    const int64_t* shape = nullptr;
    uint32_t rank = 0;
    uint64_t bytes = 0;
    uint32_t buffers = 0;
    check(TRITONBACKEND_InputProperties(input, nullptr, &type, &shape, &rank, &bytes, &buffers));
    require(type == server_type(t.type), ErrorCode::InvalidArgument, "input '", t.name,
            "' has elements of ", type_name(type), ", expected ", type_name(server_type(t.type)));
    p.shapes[index].assign(shape, shape + rank);
    size_t rank_of_one = max_batch_size_ > 0 ? 1 : 0; // of one element a row
    if (!runner_.is_ragged(index) && t.dims.size() == rank_of_one && rank == rank_of_one + 1 &&
        p.shapes[index].back() == 1) {
        p.shapes[index].pop_back(); // the server takes no tensor without sizes
    }
    if (runner_.is_ragged(index)) {
        check_ragged(t, p.shapes[index]);
    } else {
        check_shape(t, p.shapes[index], max_batch_size_ > 0);
    }
    Pending::Input& in = p.inputs[index];
    for (uint32_t i = 0; i < buffers; ++i) {
        const void* data = nullptr;
        uint64_t size = 0;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t memory_id = 0;
        check(TRITONBACKEND_InputBuffer(input, i, &data, &size, &memory, &memory_id));
        require(memory != TRITONSERVER_MEMORY_GPU || runner_.gpu() != nullptr,
                ErrorCode::Unsupported, "input '", t.name, "' is in memory of GPU ", memory_id,
                ", and this instance runs on the CPU");
        if (size > 0) {
            in.parts.push_back({static_cast<const std::byte*>(data), size, memory});
            in.bytes += size;
        }
    }
    size_t expected = static_cast<size_t>(element_count(p.shapes[index])) * element_bytes(t.type);
    require(in.bytes == expected, ErrorCode::InvalidArgument, "input '", t.name, "' of shape ",
            dims_text(p.shapes[index]), " has ", in.bytes, " bytes, expected ", expected);
}

void Batch::run_group(Group group) noexcept {
    TRITONSERVER_Error* error = guard([&] { compute(group); });
    if (error == nullptr) {
        return;
    }
    bool has_outputs =
        std::any_of(group.begin(), group.end(), [](const Pending* p) { return p->has_outputs; });
    if (group.size() > 1 && !has_outputs && !instance_.model_.watch().lost()) {
        TRITONSERVER_ErrorDelete(error); // whose fault it is shows when each runs alone
        for (size_t i = 0; i < group.size(); ++i) {
            if (group[i]->response != nullptr) {
                run_group(group.subspan(i, 1));
            }
        }
        return;
    }
    for (Pending* p : group) {
        if (p->response != nullptr) {
            answer(*p,
                   server_error(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error)));
        }
    }
    TRITONSERVER_ErrorDelete(error);
}

void Batch::compute(Group group) {
    const Engine& engine = runner_.engine();
    int64_t rows = 0;
    for (const Pending* p : group) {
        rows += p->rows;
    }
    int64_t padded = max_batch_size_ > 0 ? runner_.padded_rows(rows) : rows;
    uint64_t compute_start = 0;
    auto gather_all = [&](Shapes& shapes, std::vector<const void*>& addresses) {
        for (size_t i = 0; i < engine.inputs.size(); ++i) {
            const BatchInput* made = runner_.batch_input(i);
            shapes[i] = batch_shape(group, i, padded);
            addresses.push_back(made == nullptr ? gather(group, i, shapes[i])
                                                : fill_batch_input(group, *made, i, shapes[i]));
        }
        compute_start = now();
    };
    std::vector<Answer> answers(group.size());
    auto copy = [&] {
        int64_t first_row = 0;
        for (size_t i = 0; i < group.size(); ++i) {
            answers[i].reset(guard([&] { write_outputs(*group[i], first_row, padded); }));
            first_row += group[i]->rows;
        }
    };
    instance_.run({gather_all, copy, [&](const std::string& why) { give_up(group, why); }});
    instance_.model_.metrics().add(MetricKind::PaddedRows, static_cast<double>(padded - rows));
    uint64_t compute_end = now();
    for (size_t i = 0; i < group.size(); ++i) {
        if (answers[i] == nullptr) {
            answers[i].reset(guard([&] { update_states(*group[i]); }));
        }
    }
    for (size_t i = 0; i < group.size(); ++i) {
        Pending& p = *group[i];
        p.compute_start = compute_start;
        p.compute_end = compute_end;
        p.succeeded = answers[i] == nullptr;
        answer(p, answers[i].release());
    }
    ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_.instance_,
                                                            static_cast<uint64_t>(rows), start_,
                                                            compute_start, compute_end, now()));
}

/// Whether the elements of ragged inputs are within the engine's limits together.
bool Batch::ragged_fit(Group group) const {
    const std::vector<EngineTensor>& inputs = runner_.engine().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!runner_.is_ragged(i) || inputs[i].most.empty()) {
            continue;
        }
        int64_t elements = 0;
        for (const Pending* p : group) {
            elements += element_count(p->shapes[i]);
        }
        if (elements > inputs[i].most[0]) {
            return false;
        }
    }
    return true;
}

/// The shape in which the engine gets an input of the requests. Notes where each request begins in
/// a ragged one.
std::vector<int64_t> Batch::batch_shape(Group group, size_t input, int64_t rows) const {
    std::vector<int64_t> shape = group[0]->shapes[input];
    if (runner_.is_ragged(input)) {
        int64_t elements = 0;
        for (Pending* p : group) {
            p->first_elements[input] = elements;
            elements += element_count(p->shapes[input]);
        }
        return {elements};
    }
    if (max_batch_size_ > 0 && !shape.empty()) {
        shape[0] = rows;
    }
    return shape;
}

/// Where an input of the batch lies: in the request itself if nothing has to be put together. On a
/// GPU always in the runner's memory: a recorded run holds its addresses.
const void* Batch::gather(Group group, size_t input, const std::vector<int64_t>& shape) const {
    constexpr uintptr_t good_alignment = 64;
    size_t bytes = static_cast<size_t>(element_count(shape)) *
                   element_bytes(runner_.engine().inputs[input].type);
    const Pending::Input& first = group[0]->inputs[input];
    if (runner_.takes_host_memory(input) && group.size() == 1 && first.parts.size() == 1 &&
        first.parts[0].memory != TRITONSERVER_MEMORY_GPU && first.bytes == bytes &&
        reinterpret_cast<uintptr_t>(first.parts[0].data) % good_alignment == 0) {
        return first.parts[0].data;
    }
    std::byte* memory = runner_.input_memory(input, bytes);
    size_t at = 0;
    for (const Pending* p : group) {
        for (const Pending::Part& part : p->inputs[input].parts) {
            runner_.write_input(input, at, part.data, part.bytes, part.memory);
            at += part.bytes;
        }
    }
    runner_.complete_input(input, at, bytes - at);
    return memory;
}

/// Sends the response and takes the error over.
void Batch::answer(Pending& p, TRITONSERVER_Error* error) noexcept {
    if (given_up_.load(std::memory_order_acquire)) {
        Watch::wait_for_the_end();
    }
    ignore(TRITONBACKEND_ResponseSend(p.response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    ignore(error);
    p.response = nullptr;
}

/// By new responses: the device may still write to the outputs of those that there are.
void Batch::give_up(Group group, const std::string& why) noexcept {
    given_up_.store(true, std::memory_order_release);
    for (const Pending* p : group) {
        if (p->response == nullptr) {
            continue;
        }
        TRITONBACKEND_Response* response = nullptr;
        TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, p->request);
        if (error == nullptr) {
            error = server_error(TRITONSERVER_ERROR_INTERNAL, why.c_str());
            ignore(
                TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
        }
        ignore(error);
    }
}

void Batch::release_all() noexcept {
    for (Pending& p : pending_) {
        uint64_t end = now();
        uint64_t compute_start = p.compute_start == 0 ? start_ : p.compute_start;
        uint64_t compute_end = p.compute_end == 0 ? end : p.compute_end;
        ignore(TRITONBACKEND_ModelInstanceReportStatistics(
            instance_.instance_, p.request, p.succeeded, start_, compute_start, compute_end, end));
        ignore(TRITONBACKEND_RequestRelease(p.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    pending_.clear();
}

} // namespace ingot::triton
