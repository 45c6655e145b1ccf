// SPDX-License-Identifier: Apache-2.0
// From the outputs of a run to the responses, and to the states of sequences.
#include "plugins/triton/batch.h"

namespace ingot::triton {

struct Batch::Slice {
    size_t output; // in the engine's order
    TRITONSERVER_DataType type;
    std::vector<int64_t> dims; // as the server takes them: never empty
    size_t offset;             // in bytes
    size_t bytes;
};

Batch::Slice Batch::find_slice(const Pending& p, std::string_view name, int64_t first_row,
                               int64_t rows) const {
    const Engine& engine = runner_.engine();
    const EngineTensor* t = engine.find_output(name);
    require(t != nullptr, ErrorCode::InvalidArgument, "the engine has no output '", name, "'");
    auto output = static_cast<size_t>(t - engine.outputs.data());
    std::vector<int64_t> dims = runner_.output_dims(output);
    if (const BatchOutput* scattered = instance_.model_.config().find_batch_output(name)) {
        auto source =
            static_cast<size_t>(engine.find_input(scattered->source) - engine.inputs.data());
        auto size = static_cast<int64_t>(element_bytes(t->type));
        int64_t first = p.first_elements[source];
        int64_t count = element_count(p.shapes[source]);
        require(first + count <= element_count(dims), ErrorCode::Internal, "output '", name,
                "' has shape ", dims_text(dims), ", fewer elements than '", scattered->source,
                "', whose shape it has by batch_output");
        return {output, server_type(t->type), p.shapes[source], static_cast<size_t>(first * size),
                static_cast<size_t>(count * size)};
    }
    if (max_batch_size_ > 0) {
        require(!dims.empty() && dims[0] == rows, ErrorCode::Internal, "output '", name,
                "' has shape ", dims_text(dims), " after a batch of ", rows,
                " rows: its rows are not the batch's; set max_batch_size to 0");
        dims[0] = p.rows;
    }
    size_t bytes = static_cast<size_t>(element_count(dims)) * element_bytes(t->type);
    size_t offset = max_batch_size_ > 0 && p.rows > 0
                        ? bytes / static_cast<size_t>(p.rows) * static_cast<size_t>(first_row)
                        : 0;
    if (dims.empty()) {
        dims.push_back(1);
    }
    return {output, server_type(t->type), std::move(dims), offset, bytes};
}

void Batch::write_outputs(Pending& p, int64_t first_row, int64_t rows) const {
    auto count = get_from<uint32_t>(TRITONBACKEND_RequestOutputCount, p.request);
    for (uint32_t i = 0; i < count; ++i) {
        auto name = get_from<const char*>(TRITONBACKEND_RequestOutputName, p.request, i);
        write_output(p, name, first_row, rows);
    }
    for (const StateTensor& state : instance_.model_.config().states) {
        write_state(p, state, first_row, rows);
    }
}

void Batch::write_output(Pending& p, const char* name, int64_t first_row, int64_t rows) const {
    Slice slice = find_slice(p, name, first_row, rows);
    TRITONBACKEND_Output* output = nullptr;
    p.has_outputs = true;
    check(TRITONBACKEND_ResponseOutput(p.response, &output, name, slice.type, slice.dims.data(),
                                       static_cast<uint32_t>(slice.dims.size())));
    void* target = nullptr;
    // A wish: the server gives memory of the kind that the client asked for.
    TRITONSERVER_MemoryType memory =
        runner_.gpu() == nullptr ? TRITONSERVER_MEMORY_CPU : TRITONSERVER_MEMORY_CPU_PINNED;
    int64_t memory_id = 0;
    check(TRITONBACKEND_OutputBuffer(output, &target, slice.bytes, &memory, &memory_id));
    bool on_gpu = memory == TRITONSERVER_MEMORY_GPU;
    require(!on_gpu || runner_.gpu() != nullptr, ErrorCode::Unsupported, "output '", name,
            "' is wanted in memory of GPU ", memory_id, ", and this instance runs on the CPU");
    if (slice.bytes > 0) {
        runner_.read_output(slice.output, slice.offset, target, slice.bytes, memory);
    }
}

/// The state stays where the next run reads it: on the instance's GPU if it has one.
void Batch::write_state(Pending& p, const StateTensor& state, int64_t first_row,
                        int64_t rows) const {
    Slice slice = find_slice(p, state.output, first_row, rows);
    TRITONBACKEND_State* made = nullptr;
    check(TRITONBACKEND_StateNew(&made, p.request, state.output.c_str(), slice.type,
                                 slice.dims.data(), static_cast<uint32_t>(slice.dims.size())));
    void* target = nullptr;
    TRITONSERVER_MemoryType memory =
        runner_.gpu() == nullptr ? TRITONSERVER_MEMORY_CPU : TRITONSERVER_MEMORY_GPU;
    int64_t memory_id = runner_.engine().target.ordinal;
    check(TRITONBACKEND_StateBuffer(made, &target, slice.bytes, &memory, &memory_id));
    bool on_gpu = memory == TRITONSERVER_MEMORY_GPU;
    require(!on_gpu || runner_.gpu() != nullptr, ErrorCode::Unsupported, "state '", state.output,
            "' lies in memory of GPU ", memory_id, ", and this instance runs on the CPU");
    if (slice.bytes > 0) {
        runner_.read_output(slice.output, slice.offset, target, slice.bytes, memory);
    }
    p.states.push_back(made);
}

} // namespace ingot::triton
