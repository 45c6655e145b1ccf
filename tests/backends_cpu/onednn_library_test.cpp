// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and pools through oneDNN against the evaluator; and running without it.
#include "backends/backends.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/options.h"
#include "backends/cpu/simd/simd.h"
#include "backends_cpu/compare.h"
#include "base/process.h"
#include "base/shared_library.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

/// Skips where the library was not built; a library that is there has to open.
class CpuLibrary : public testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(own_folder() + "/libingot_cpu.so")) {
            GTEST_SKIP() << "libingot_cpu.so was not built: nothing here is tested";
        }
        ASSERT_NE(cpu::onednn_library(), nullptr);
    }
};

/// The implementations of all steps of a kernel, with the map after it or without.
std::vector<std::string> implementations(const Graph& g, const Symbols& symbols = {}) {
    auto execution =
        cpu_backend().compile(std::make_shared<const Graph>(g), {})->create_execution();
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(eval(g.type(v).dims, symbols));
    }
    execution->prepare(shapes);
    std::vector<std::string> names;
    for (const StepInfo& s : execution->steps()) {
        if (s.kernel != "copy") {
            names.push_back(s.implementation);
        }
    }
    return names;
}

void expect_onednn(const Graph& g) {
    std::vector<std::string> names = implementations(g);
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(names[0].rfind("onednn ", 0), 0U) << names[0];
}

struct ConvCase {
    Dims x;
    Dims w;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    Dims low;
    Dims high;
    int64_t groups;
};

Shape fixed(const Dims& dims) {
    return eval(dims, {});
}

Value conv_of(Graph& g, const ConvCase& c, Value x) {
    std::mt19937 random(7);
    Value w = ops::constant(g, test::random_tensor(DType::F32, fixed(c.w), random));
    return ops::conv(g, {c.strides, c.dilations, c.low, c.high, c.groups, DType::F32}, x, w);
}

const ConvCase odd_convolutions[] = {
    {{2, 3, 17, 19}, {8, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{1, 3, 31, 30}, {20, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, 1},
    {{3, 37, 9, 11}, {53, 37, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
    {{1, 64, 7, 7}, {70, 64, 1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
    {{1, 1, 5, 5}, {1, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
    // Depthwise, with strides and dilations.
    {{2, 16, 9, 9}, {16, 1, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, 16},
    {{1, 72, 13, 13}, {72, 1, 5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 72},
    {{1, 23, 12, 9}, {23, 1, 5, 5}, {1, 1}, {2, 2}, {4, 4}, {4, 4}, 23},
    // Groups.
    {{1, 12, 9, 8}, {18, 4, 3, 3}, {1, 1}, {1, 1}, {0, 1}, {2, 1}, 3},
    {{1, 64, 10, 10}, {64, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
    {{1, 4, 8, 9}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4},
    // Dilations and pads that differ on each side.
    {{1, 32, 14, 14}, {48, 32, 3, 3}, {1, 1}, {6, 6}, {6, 6}, {6, 6}, 1},
    {{1, 5, 11, 12}, {6, 5, 3, 4}, {2, 1}, {1, 2}, {0, 3}, {2, 1}, 1},
    {{1, 5, 11, 12}, {6, 5, 3, 4}, {3, 2}, {2, 1}, {3, 0}, {1, 2}, 1},
    // One and three spatial axes.
    {{2, 6, 33}, {4, 6, 5}, {2}, {2}, {3}, {1}, 1},
    {{1, 3, 6, 7, 8}, {5, 3, 3, 2, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 2}, {1, 1, 2}, 1},
    // One position across.
    {{2, 16, 40, 1}, {24, 16, 5, 1}, {1, 1}, {1, 1}, {1, 0}, {2, 0}, 1},
    {{1, 16, 40, 1}, {16, 1, 5, 3}, {2, 1}, {2, 1}, {4, 1}, {4, 1}, 16},
    {{1, 12, 9, 1, 7}, {18, 4, 3, 1, 2}, {1, 1, 2}, {1, 1, 1}, {1, 0, 0}, {1, 0, 1}, 3},
};

TEST_F(CpuLibrary, OddConvolutions) {
    int number = 0;
    for (const ConvCase& c : odd_convolutions) {
        SCOPED_TRACE(testing::Message() << "case " << number++);
        Graph g;
        Value y = conv_of(g, c, g.add_input("x", {DType::F32, c.x}));
        Dims bias(c.x.size() - 1, Dim(1));
        bias[0] = c.w[0];
        Value b = g.add_input("b", {DType::F32, bias});
        g.add_output("y", ops::maximum(g, ops::add(g, y, b), 0.0));
        expect_onednn(g);
        expect_same_as_evaluator(g);
    }
}

TEST_F(CpuLibrary, WeightsThatRunBackwards) {
    Graph g;
    std::mt19937 random(7);
    Value x = g.add_input("x", {DType::F32, {1, 16, 9, 9}});
    Value w = ops::constant(g, test::random_tensor(DType::F32, {32, 16, 3, 3}, random));
    w = ops::reverse(g, ops::reverse(g, w, 2), 3);
    g.add_output("y", ops::conv(g, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, DType::F32}, x, w));
    expect_same_as_evaluator(g);
}

using Epilogue = std::function<Value(Graph&, Value)>;

std::vector<std::pair<const char*, Epilogue>> epilogues() {
    auto unary = [](ExprOp op) { return [op](Graph& g, Value v) { return ops::unary(g, op, v); }; };
    auto binary = [](ExprOp op) {
        return [op](Graph& g, Value v) {
            Value other = g.add_input("other", g.type(v));
            return ops::binary(g, op, v, ops::add(g, ops::mul(g, other, 0.1), 1.5));
        };
    };
    auto clip = [](Graph& g, Value v, double low, double high) {
        return ops::minimum(g, ops::maximum(g, v, low), high);
    };
    return {
        {"relu", [](Graph& g, Value v) { return ops::maximum(g, v, 0.0); }},
        {"leaky", [](Graph& g, Value v) { return ops::maximum(g, v, ops::mul(g, v, 0.1)); }},
        {"clip", [=](Graph& g, Value v) { return clip(g, v, -0.5, 1.5); }},
        {"linear", [](Graph& g, Value v) { return ops::add(g, ops::mul(g, v, -0.5), 2.0); }},
        {"hard sigmoid",
         [=](Graph& g, Value v) { return clip(g, ops::add(g, ops::mul(g, v, 0.2), 0.5), 0, 1); }},
        {"hard swish",
         [=](Graph& g, Value v) {
             Value gate = clip(g, ops::add(g, v, 3.0), 0, 6);
             return ops::mul(g, ops::mul(g, gate, 1.0 / 6), v);
         }},
        {"swish",
         [](Graph& g, Value v) { return ops::mul(g, v, ops::unary(g, ExprOp::Sigmoid, v)); }},
        {"gelu",
         [](Graph& g, Value v) {
             Value erf = ops::unary(g, ExprOp::Erf, ops::mul(g, v, 0.70710678));
             return ops::mul(g, ops::mul(g, v, 0.5), ops::add(g, erf, 1.0));
         }},
        {"mish",
         [](Graph& g, Value v) {
             Value soft = ops::unary(g, ExprOp::Log1p, ops::unary(g, ExprOp::Exp, v));
             return ops::mul(g, v, ops::unary(g, ExprOp::Tanh, soft));
         }},
        {"sigmoid", unary(ExprOp::Sigmoid)},
        {"tanh", unary(ExprOp::Tanh)},
        {"add", [](Graph& g, Value v) { return ops::add(g, v, g.add_input("o", g.type(v))); }},
        {"subtract", [](Graph& g, Value v) { return ops::sub(g, v, g.add_input("o", g.type(v))); }},
        {"multiply", [](Graph& g, Value v) { return ops::mul(g, v, g.add_input("o", g.type(v))); }},
        {"residual, then relu",
         [](Graph& g, Value v) {
             return ops::maximum(g, ops::add(g, v, g.add_input("o", g.type(v))), 0.0);
         }},
        {"largest of two", binary(ExprOp::Max)},
        {"smallest of two", binary(ExprOp::Min)},
        {"quotient", binary(ExprOp::Div)},
        {"not one of oneDNN's", unary(ExprOp::Sin)},
    };
}

TEST_F(CpuLibrary, EveryEpilogueOfConvolutions) {
    const ConvCase cases[] = {
        {{1, 24, 9, 8}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
        {{1, 24, 9, 8}, {40, 24, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1},
        {{1, 24, 9, 8}, {24, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 24},
    };
    for (const auto& [what, epilogue] : epilogues()) {
        for (const ConvCase& c : cases) {
            SCOPED_TRACE(what);
            Graph g;
            Value y = conv_of(g, c, g.add_input("x", {DType::F32, c.x}));
            Value bias = g.add_input("bias", {DType::F32, {c.w[0], 1, 1}});
            g.add_output("y", epilogue(g, ops::add(g, ops::mul(g, y, 0.1), bias)));
            expect_same_as_evaluator(g);
        }
    }
}

TEST_F(CpuLibrary, EveryEpilogueOfProducts) {
    for (const auto& [what, epilogue] : epilogues()) {
        for (bool batched : {false, true}) {
            SCOPED_TRACE(testing::Message() << what << (batched ? " batched" : ""));
            Graph g;
            std::mt19937 random(11);
            Dims dims = batched ? Dims{3, 23, 70} : Dims{61, 70};
            Value x = g.add_input("x", {DType::F32, dims});
            Value w = ops::constant(g, test::random_tensor(DType::F32, {70, 53}, random));
            Value y = ops::matmul(g, x, w);
            Value bias = g.add_input("bias", {DType::F32, {53}});
            g.add_output("y", epilogue(g, ops::add(g, y, bias)));
            expect_same_as_evaluator(g);
        }
    }
}

TEST_F(CpuLibrary, ProductsWithOtherLayouts) {
    // Heads that lie inside rows, transposed operands, a batch that only one side has.
    Graph g;
    Value q = g.add_input("q", {DType::F32, {2, 40, 3 * 32}});
    Value k = g.add_input("k", {DType::F32, {2, 52, 3 * 32}});
    auto heads = [&](Value v, int64_t n) {
        return ops::permute(g, ops::reshape(g, v, {2, n, 3, 32}), {0, 2, 1, 3});
    };
    Value scores = ops::matmul(g, heads(q, 40), ops::transpose_last(g, heads(k, 52)));
    Value mixed = ops::matmul(g, scores, heads(k, 52));
    g.add_output("y", ops::reshape(g, ops::permute(g, mixed, {0, 2, 1, 3}), {2, 40, 96}));
    expect_same_as_evaluator(g);
    for (const std::string& name : implementations(g)) {
        EXPECT_EQ(name.rfind("onednn ", 0), 0U) << name;
    }
}

TEST_F(CpuLibrary, SmallProductsAndFewRowsStayOnOwnLoops) {
    for (int64_t rows : {4, 5}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {rows, 256}});
        g.add_output("y", ops::matmul(g, x, g.add_input("w", {DType::F32, {256, 512}})));
        EXPECT_EQ(implementations(g)[0] == "own", rows == 4);
    }
    Graph g;
    Value x = g.add_input("x", {DType::F32, {10, 16}});
    g.add_output("y", ops::matmul(g, x, g.add_input("w", {DType::F32, {16, 512}})));
    EXPECT_EQ(implementations(g)[0], "own");
}

TEST_F(CpuLibrary, OperandsThatAreBroadcast) {
    for (Dims other : {Dims{23, 1}, Dims{1}, Dims{23, 53}, Dims{3, 1, 1}, Dims{3, 23, 53}}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {3, 23, 70}});
        Value y = ops::matmul(g, x, g.add_input("w", {DType::F32, {3, 70, 53}}));
        g.add_output("y", ops::mul(g, y, g.add_input("o", {DType::F32, other})));
        expect_same_as_evaluator(g);
    }
}

TEST_F(CpuLibrary, Pools) {
    const ops::Pool cases[] = {
        {"max", {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, false},
        {"max", {3, 2}, {2, 1}, {1, 2}, {1, 1}, {1, 0}, {1, 0}, false},
        {"average", {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, false},
        {"average", {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, false},
        {"average", {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, true},
    };
    for (const ops::Pool& a : cases) {
        SCOPED_TRACE(testing::Message() << a.fn << ' ' << a.count_padding);
        Graph g;
        g.add_output("y", ops::pool(g, a, g.add_input("x", {DType::F32, {2, 21, 11, 8}})));
        if (a.dilations == std::vector<int64_t>{1, 1}) {
            expect_onednn(g); // it has reference loops only for windows with gaps
        }
        expect_same_as_evaluator(g);
    }
}

/// Bytes of constant weights after runs of all sizes; equal layouts share packed weights.
size_t packed_bytes_of(const Graph& g, bool use_library, const std::vector<int64_t>& sizes) {
    CompileOptions options;
    options.of<CpuOptions>().use_library = use_library;
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), options);
    auto execution = executable->create_execution();
    for (int64_t n : sizes) {
        execution->prepare(std::array{Shape{n, 64}});
    }
    size_t bytes = executable->packed_bytes();
    auto another = executable->create_execution();
    another->prepare(std::array{Shape{sizes.back(), 64}});
    EXPECT_EQ(executable->packed_bytes(), bytes) << "a second execution packs again";
    return bytes;
}

/// The bytes that oneDNN requests on this CPU: each layout once, nothing where it reads weights in
/// place.
size_t wanted_bytes(const std::vector<int64_t>& sizes) {
    std::map<std::string, int64_t> layouts;
    for (int64_t n : sizes) {
        cpu::onednn::Problem p = {};
        p.work = cpu::onednn::Work::Matmul;
        p.x = cpu::dense_array(DType::F32, {n, 64}, {0, 1});
        p.w = cpu::dense_array(DType::F32, {64, 128}, {0, 1});
        p.out = cpu::dense_array(DType::F32, {n, 128}, {0, 1});
        p.constant_w = true;
        cpu::onednn::Choice choice;
        char why[256] = {};
        const cpu::onednn::Library& library = *cpu::onednn_library();
        cpu::onednn::Primitive* made =
            library.create(p, cpu::threads_of(ThreadPool::shared()), choice, why, sizeof why);
        EXPECT_NE(made, nullptr) << why;
        if (made != nullptr) {
            library.destroy(made);
            layouts[choice.layout] = choice.packed_bytes;
        }
    }
    size_t bytes = 0;
    for (const auto& [layout, size] : layouts) {
        bytes += static_cast<size_t>(size);
    }
    return bytes;
}

TEST_F(CpuLibrary, SymbolicSizesShareTheirPackedWeights) {
    Graph g;
    std::mt19937 random(11);
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N"), 64}});
    Value w = ops::constant(g, test::random_tensor(DType::F32, {64, 128}, random));
    g.add_output("y", ops::matmul(g, x, w));
    const std::vector<int64_t> sizes = {128, 256, 512};
    EXPECT_EQ(packed_bytes_of(g, true, sizes), wanted_bytes(sizes));
    // Own loops pack on every CPU.
    EXPECT_EQ(packed_bytes_of(g, false, sizes), packed_bytes_of(g, false, {256}));
    EXPECT_GE(packed_bytes_of(g, false, sizes), 64U * 128 * 4);
}

TEST_F(CpuLibrary, WeightsOfABatchArePackedToo) {
    if (cpu::instruction_set() < cpu::InstructionSet::Avx512) {
        GTEST_SKIP() << "oneDNN may read them in place";
    }
    Graph g;
    std::mt19937 random(13);
    Value x = g.add_input("x", {DType::F32, {2, 9, 64}});
    Value w = ops::constant(g, test::random_tensor(DType::F32, {2, 300, 64}, random));
    g.add_output("y", ops::matmul(g, x, ops::transpose_last(g, w)));
    expect_onednn(g);
    expect_same_as_evaluator(g);
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), {});
    executable->create_execution()->prepare(std::array{Shape{2, 9, 64}});
    EXPECT_GE(executable->packed_bytes(), 2U * 300 * 64 * 4);
}

Graph two_layers() {
    Graph g;
    const ConvCase c = {{1, 16, 20, 20}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
    Value y = ops::maximum(g, conv_of(g, c, g.add_input("x", {DType::F32, c.x})), 0.0);
    std::mt19937 random(3);
    Value w = ops::constant(g, test::random_tensor(DType::F32, {400, 50}, random));
    g.add_output("y", ops::matmul(g, ops::reshape(g, y, {32, 400}), w));
    return g;
}

TEST_F(CpuLibrary, ContextsOfSeveralThreadsShareOnePool) {
    Graph g = two_layers();
    std::mt19937 random(3);
    std::vector<Tensor> inputs = {test::random_tensor(DType::F32, {1, 16, 20, 20}, random)};
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), {});
    std::vector<Tensor> expected(1);
    ASSERT_TRUE(executable->create_execution()->run(inputs, expected).ok());
    std::vector<std::string> errors(4);
    std::vector<std::thread> threads;
    for (std::string& error : errors) {
        threads.emplace_back([&] {
            auto execution = executable->create_execution();
            for (int i = 0; i < 50 && error.empty(); ++i) {
                std::vector<Tensor> got(1);
                if (!execution->run(inputs, got).ok()) {
                    error = execution->error();
                } else if (!std::ranges::equal(got[0].bytes(), expected[0].bytes())) {
                    error = "another result";
                }
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    for (const std::string& error : errors) {
        EXPECT_EQ(error, "");
    }
}

TEST_F(CpuLibrary, PoolsOfAnySize) {
    Graph g = two_layers();
    for (int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads);
        test::CompareOptions options;
        options.compile.pool = &pool;
        expect_same_as_evaluator(g, {}, 1, options);
    }
}

/// Runs in a process of its own, started by the tests below with another library beside it.
TEST(CpuLibraryChild, DISABLED_RunsWithWhatIsThere) {
    expect_same_as_evaluator(two_layers());
    std::cout << "device: " << cpu_backend().description() << '\n';
}

/// Output of a copy of this program, with the library that `make_library` writes beside it.
ProcessResult run_beside(const std::function<void(const std::filesystem::path&)>& make_library) {
    TemporaryFolder folder;
    std::filesystem::path program = std::filesystem::path(folder.path()) / "program";
    std::filesystem::copy_file("/proc/self/exe", program);
    make_library(std::filesystem::path(folder.path()) / "libingot_cpu.so");
    return run_process(
        {program.string(), "--gtest_also_run_disabled_tests", "--gtest_filter=CpuLibraryChild.*"});
}

void expect_own_loops(const ProcessResult& result, const std::string& reason) {
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find(reason), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("onednn"), std::string::npos) << result.output;
    size_t first = result.output.find("own loops, which are slower");
    EXPECT_NE(first, std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("own loops, which are slower", first + 1), std::string::npos)
        << "more than one warning";
}

TEST(CpuLibraryMissing, ItSaysSoOnceAndRuns) {
    expect_own_loops(run_beside([](const auto&) {}), "does not exist");
}

TEST_F(CpuLibrary, RunsBesideTheProgram) {
    ProcessResult result = run_beside([](const std::filesystem::path& to) {
        std::filesystem::copy_file(own_folder() + "/libingot_cpu.so", to);
    });
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("onednn 3."), std::string::npos) << result.output;
}

TEST_F(CpuLibrary, DamagedOnesAreRefused) {
    std::string library = own_folder() + "/libingot_cpu.so";
    auto bytes = std::filesystem::file_size(library);
    expect_own_loops(run_beside([&](const std::filesystem::path& to) {
                         std::filesystem::copy_file(library, to);
                         std::fstream file(to, std::ios::in | std::ios::out | std::ios::binary);
                         file.seekp(static_cast<std::streamoff>(bytes / 2));
                         file.write("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
                     }),
                     "is damaged");
    expect_own_loops(run_beside([&](const std::filesystem::path& to) {
                         std::filesystem::copy_file(library, to);
                         std::filesystem::resize_file(to, bytes / 2);
                     }),
                     "is not a whole shared library");
    expect_own_loops(run_beside([](const std::filesystem::path& to) {
                         std::ofstream(to) << "no library at all, but some text, long enough to "
                                              "hold the header of one";
                     }),
                     "libingot_cpu.so");
}

/// Runs in a process of its own, where oneDNN prints what it executes.
TEST(CpuLibraryTall, DISABLED_Convolution) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {1, 16, 40, 1}});
    Value y = conv_of(g, {{}, {32, 16, 5, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, x);
    Value other = g.add_input("other", g.type(y));
    g.add_output("y", ops::maximum(g, ops::add(g, y, other), 0.0));
    expect_same_as_evaluator(g);
}

TEST_F(CpuLibrary, TallImagesRunAlongTheirLength) {
    ProcessResult result = run_process(
        {"env", "ONEDNN_VERBOSE=1", std::filesystem::read_symlink("/proc/self/exe").string(),
         "--gtest_also_run_disabled_tests", "--gtest_filter=CpuLibraryTall.*"});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("ih1oh1kh1sh1dh0ph0_iw40ow36kw5"), std::string::npos)
        << result.output;
}

TEST_F(CpuLibrary, OtherVersionsOfTheInterfaceAreRefused) {
    std::string problem;
    SharedLibrary file = SharedLibrary::open(own_folder() + "/libingot_cpu.so", problem);
    ASSERT_TRUE(file) << problem;
    auto open =
        reinterpret_cast<cpu::onednn::OpenLibrary>(file.symbol(cpu::onednn::open_library_symbol));
    char why[200] = {};
    EXPECT_EQ(open(cpu::onednn::interface_version + 1, why, sizeof why), nullptr);
    EXPECT_NE(std::string_view(why).find("version"), std::string_view::npos) << why;
}

} // namespace

} // namespace ingot
