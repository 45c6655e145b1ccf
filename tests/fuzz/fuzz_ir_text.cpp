// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any text either parses to a graph that verifies and prints back, or is refused.
#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/op_table.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    ParseOptions options{find_op, {}};
    try {
        Graph g = parse_graph(text, options);
        verify(g);
        PrintOptions full;
        full.full = true;
        std::string printed = print(g, full);
        if (print(parse_graph(printed, options), full) != printed) {
            std::abort();
        }
    } catch (const Error&) {
    }
    return 0;
}
