// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes either read as a graph that verifies and writes back, or are refused.
#include "base/error.h"
#include "ir/binary.h"
#include "ir/verify.h"
#include "ops/op_table.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    ReadOptions options{find_op, [](DType t, const Shape& shape, uint64_t) {
                            require(count_of(shape) <= 4096, ErrorCode::InvalidEngine, "too large");
                            return Tensor::zeros(t, shape);
                        }};
    try {
        Graph g = read_graph(std::as_bytes(std::span(data, size)), options);
        verify(g);
        auto place = [](const Tensor&) { return uint64_t{0}; };
        std::vector<std::byte> bytes = write_graph(g, place);
        if (write_graph(read_graph(bytes, options), place) != bytes) {
            std::abort();
        }
    } catch (const Error&) {
    }
    return 0;
}
