// SPDX-License-Identifier: Apache-2.0
// Batch: the requests of one call of the server, from their inputs to their responses. Those of one
// shape run together; one that is wrong is answered alone.
#pragma once

#include "plugins/triton/instance.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>

namespace ingot::triton {

/// A request with its response. The response is sent once, by answer().
struct Pending {
    struct Part {
        const std::byte* data;
        size_t bytes;
        TRITONSERVER_MemoryType memory;
    };
    struct Input {
        std::vector<Part> parts;
        size_t bytes = 0;
    };
    TRITONBACKEND_Request* request = nullptr;
    TRITONBACKEND_Response* response = nullptr;
    Shapes shapes;
    std::vector<Input> inputs;           // in the engine's order
    std::vector<int64_t> first_elements; // of each ragged input, in the batch's vector
    int64_t rows = 1;
    bool succeeded = false;
    std::vector<TRITONBACKEND_State*> states;    // written, and not yet the next request's
    bool has_outputs = false;                    // the response has some, and takes no others
    uint64_t compute_start = 0, compute_end = 0; // ns; 0 where it was not run
};

class Batch {
public:
    /// Makes the responses. Errors: the server's; then the requests are still the server's.
    Batch(Instance& instance, TRITONBACKEND_Request** requests, uint32_t count);
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    /// Answers and releases all requests.
    void run() noexcept;

private:
    using Group = std::span<Pending*>;
    void read(Pending& p) const;
    bool has_input(const Pending& p, const std::string& name) const;
    void read_input(Pending& p, size_t index) const;
    void take_default(Pending& p, size_t index) const;
    void run_groups();
    /// Runs requests of one shape; where that fails, each alone.
    void run_group(Group group) noexcept;
    void compute(Group group);
    bool ragged_fit(Group group) const;
    const void* gather(Group group, size_t input, const std::vector<int64_t>& shape) const;
    std::vector<int64_t> batch_shape(Group group, size_t input, int64_t rows) const;
    const void* fill_batch_input(Group group, const BatchInput& b, size_t input,
                                 std::vector<int64_t>& shape) const;
    void write_outputs(Pending& p, int64_t first_row, int64_t rows) const;
    void write_output(Pending& p, const char* name, int64_t first_row, int64_t rows) const;
    void write_state(Pending& p, const StateTensor& state, int64_t first_row, int64_t rows) const;
    struct Slice; // a request's part of an output
    Slice find_slice(const Pending& p, std::string_view name, int64_t first_row,
                     int64_t rows) const;
    void answer(Pending& p, TRITONSERVER_Error* error) noexcept;
    /// Answers a group whose run does not end, from the thread that watches it.
    void give_up(Group group, const std::string& why) noexcept;
    void release_all() noexcept;

    Instance& instance_;
    Runner& runner_;
    int64_t max_batch_size_;
    uint64_t start_;
    std::vector<Pending> pending_;
    std::atomic<bool> given_up_{false}; // the thread that runs answers nothing any more
};

} // namespace ingot::triton
