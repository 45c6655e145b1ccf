// SPDX-License-Identifier: Apache-2.0
// Ranges reach the profiler library in NVTX_INJECTION64_PATH.
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/nvtx.h"
#include "backends/cuda/options.h"
#include "backends_cuda/fake_driver.h"
#include "base/file.h"
#include "base/process.h"
#include "base/shared_library.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace ingot::test {
namespace {

/// A profiler that keeps the names of ranges: "push a;pop;".
constexpr const char* listener = R"(
#include <string>
static std::string text;
static int push(const char* name) { text += "push " + std::string(name) + ";"; return 0; }
static int pop() { text += "pop;"; return 0; }
using Any = void (*)();
struct Callbacks { unsigned long bytes; int (*get)(int, Any***, unsigned*); };
extern "C" int InitializeInjectionNvtx2(const void* (*get_table)(unsigned)) {
    auto* callbacks = static_cast<const Callbacks*>(get_table(1));
    Any** table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->get(1, &table, &size) == 0 || size < 12) return 0;
    *table[9] = reinterpret_cast<Any>(push);
    *table[11] = reinterpret_cast<Any>(pop);
    return 1;
}
extern "C" const char* listened() { return text.c_str(); }
)";

TEST(Nvtx, ProfilersHearOfRunsAndSteps) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/listener.so";
    write_file(folder.path() + "/listener.cpp", std::string(listener));
    ProcessResult made =
        run_process({"c++", "-shared", "-fPIC", "-o", path, folder.path() + "/listener.cpp"});
    ASSERT_EQ(made.exit_code, 0) << made.output;
    setenv("NVTX_INJECTION64_PATH", path.c_str(), 1);
    fake::reset();
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    g.set_origin("the_layer");
    g.add_output("y", ops::softmax(g, x, 1));
    CompileOptions options;
    options.of<CudaOptions>().runtime_cache = "";
    auto run = [&](std::optional<Ranges> ranges = std::nullopt) {
        auto e = backend->compile(std::make_shared<const Graph>(g), options)->create_execution();
        if (ranges) {
            e->change([&](RunSettings& changed) { changed.ranges = *ranges; });
        }
        std::vector<Tensor> out(1);
        std::vector<Tensor> in = {Tensor::empty(DType::F32, {4, 8})};
        EXPECT_TRUE(e->run(in, out).ok()) << e->error();
    };
    std::string problem;
    SharedLibrary library = SharedLibrary::open(path, problem);
    ASSERT_TRUE(library) << problem;
    auto listened = reinterpret_cast<const char* (*)()>(library.symbol("listened"));
    run();
    EXPECT_STREQ(listened(), ""); // nobody asked
    options.ranges = Ranges::Names;
    run();
    std::string text = listened();
    EXPECT_TRUE(text.starts_with("push ingot run;")) << text;
    EXPECT_NE(text.find("push the_layer;"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("pop;pop;")) << text;
    EXPECT_EQ(text.find("f32[4,8]"), std::string::npos) << text;
    run(Ranges::None);
    EXPECT_EQ(listened(), text); // the execution says otherwise
    run(Ranges::Detailed);
    std::string more = std::string(listened()).substr(text.size());
    EXPECT_NE(more.find("push the_layer ("), std::string::npos) << more;
    EXPECT_NE(more.find("): f32[4,8] -> f32[4,8];"), std::string::npos) << more;
    unsetenv("NVTX_INJECTION64_PATH");
}

TEST(Nvtx, AnUnusableProfilerIsNoFailure) {
    EXPECT_FALSE(cuda::open_nvtx("/nowhere/listener.so").listening());
}

} // namespace
} // namespace ingot::test
