// SPDX-License-Identifier: Apache-2.0
// Without shape-specific variants, the shapes of a profile need no kernel beyond the first run's.
// Plans suffice: the GPU runs nothing. INGOT_GPU_ENGINES lists engines.
#include "backends/cuda/backend.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/error.h"
#include "gpu/engines.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>

namespace ingot::test {
namespace {

TEST(Shapes, OfAProfileAskForNothingNew) {
    for (size_t i = 0; i < engine_names().size(); ++i) {
        SCOPED_TRACE(engine_names()[i]);
        const std::shared_ptr<const Engine>& engine = engine_at(i);
        fake::reset(int64_t{64} << 30);
        auto gpu = fake::make_gpu();
        auto backend = cuda::make_backend(*gpu, 1);
        CompileOptions options;
        options.of<CudaOptions>().runtime_cache = "";
        options.of<CudaOptions>().specialise = Specialise::None;
        Context context(engine, *backend, options);
        context.prepare(input_shapes(*engine, profile_symbols(*engine, 1)));
        auto known = cuda::requested_programs(*backend);
        std::mt19937 random(3);
        for (int n = 0; n < 100; ++n) {
            Symbols symbols;
            for (const auto& [name, range] : input_bounds(*engine)) {
                symbols[name] =
                    std::uniform_int_distribution<int64_t>(range.low, range.high)(random);
            }
            context.prepare(input_shapes(*engine, symbols));
        }
        auto now = cuda::requested_programs(*backend);
        EXPECT_EQ(now.size(), known.size()) << "programs";
        if (now.size() != known.size() && std::getenv("INGOT_SHOW_PROGRAMS") != nullptr) {
            for (const auto& p : now) {
                if (std::find(known.begin(), known.end(), p) == known.end()) {
                    size_t at = p.second.find("#define");
                    std::cout << p.first << ": " << p.second.substr(at, 400) << "\n--\n";
                }
            }
        }
    }
}

} // namespace
} // namespace ingot::test
