// SPDX-License-Identifier: Apache-2.0
// Timelines of replayed graphs: what blocks record, what the file says, and that nothing else
// changes.
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/jit/timeline_text.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/timeline.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/read_file.h"
#include "emulator/emulated_gpu.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace ingot::test {
namespace {

Tensor random_tensor(const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    Tensor t = Tensor::empty(DType::F16, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>(random() % 2000) / 1000 - 1);
    }
    return t;
}

/// A product by constant weights, softmax over its rows, and the sum of each row: three families.
std::shared_ptr<const Graph> three_families() {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[70,96]"));
    g.set_origin("widen");
    Value y = ops::matmul(g, x, ops::constant(g, random_tensor({96, 136}, 1)));
    g.set_origin("soften");
    y = ops::softmax(g, y, 1);
    g.set_origin("mix");
    g.add_output("y", ops::matmul(g, y, ops::constant(g, random_tensor({136, 64}, 2))));
    return std::make_shared<const Graph>(std::move(g));
}

/// A sort, two of whose texts hold two kernels each.
std::shared_ptr<const Graph> long_sort() {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[70,96]"));
    Value row = ops::reshape(g, x, {Dim(6720)});
    Values sorted = ops::topk(g, {Dim(6720), 0, true}, row);
    g.add_output("values", sorted[0]);
    g.add_output("indices", sorted[1]);
    return std::make_shared<const Graph>(std::move(g));
}

CompileOptions options(const std::string& file) {
    CompileOptions o;
    o.of<CudaOptions>().runtime_cache = "";
    o.of<CudaOptions>().timeline_file = file;
    return o;
}

class TimelineFile : public testing::Test {
protected:
    TemporaryFolder folder;
    std::string path = folder.path() + "/timeline.json";
    emulator::EmulatedGpu gpu{90};
    std::unique_ptr<Backend> backend = cuda::make_backend(gpu, 2);

    std::vector<Tensor> runs(const std::string& file, int count,
                             const std::shared_ptr<const Graph>& graph = three_families()) {
        auto e = backend->compile(graph, options(file))->create_execution();
        std::vector<Tensor> all;
        for (int i = 0; i < count; ++i) {
            std::vector<Tensor> in = {random_tensor({70, 96}, 3)};
            std::vector<Tensor> out(graph->outputs().size());
            EXPECT_TRUE(e->run(in, out).ok()) << e->error();
            all.push_back(out[0]);
        }
        return all;
    }
    Json file() const { return Json::parse(read_text_file(path)); }
};

TEST_F(TimelineFile, HoldsEveryBlockOfEveryLaunchInOrder) {
    runs(path, 3);
    Json all = file();
    EXPECT_EQ(all.at("replay").get<int>(), 1);
    const Json::List& launches = all.at("launches").items();
    ASSERT_EQ(launches.size(), 3U);
    const char* steps[] = {"widen", "soften", "mix"};
    int64_t end_before = 0;
    for (size_t i = 0; i < launches.size(); ++i) {
        const Json& l = launches[i];
        SCOPED_TRACE(l.dump());
        EXPECT_NE(l.at("step").get<std::string>().find(steps[i]), std::string::npos);
        EXPECT_FALSE(l.at("tactic").get<std::string>().empty());
        auto grid = l.at("grid").get<std::array<int64_t, 3>>();
        auto blocks = static_cast<size_t>(grid[0] * grid[1] * grid[2]);
        auto sm = l.at("sm").get<std::vector<int64_t>>();
        auto start = l.at("start").get<std::vector<int64_t>>();
        auto arrive = l.at("arrive").get<std::vector<int64_t>>();
        auto ready = l.at("ready").get<std::vector<int64_t>>();
        auto main = l.at("main").get<std::vector<int64_t>>();
        auto end = l.at("end").get<std::vector<int64_t>>();
        ASSERT_EQ(sm.size(), blocks);
        ASSERT_EQ(end.size(), blocks);
        int64_t last = 0;
        for (size_t b = 0; b < blocks; ++b) {
            EXPECT_EQ(sm[b], static_cast<int64_t>(b % static_cast<size_t>(grid[0])) % 4);
            EXPECT_GE(start[b], end_before);
            EXPECT_LT(start[b], arrive[b]);
            EXPECT_LT(arrive[b], ready[b]);
            EXPECT_LT(ready[b], main[b]);
            EXPECT_LT(main[b], end[b]);
            last = std::max(last, end[b]);
        }
        end_before = last;
    }
}

TEST_F(TimelineFile, IsOfTheLastReplayWhoseCountIsAPowerOfFour) {
    runs(path, 9); // one plain run, eight replays
    EXPECT_EQ(file().at("replay").get<int>(), 4);
}

TEST_F(TimelineFile, ChangesNoResultAndWithoutItNoText) {
    Tensor plain = runs("", 1)[0];
    for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
        EXPECT_EQ(text.find("timeline"), std::string::npos) << entry;
    }
    for (const Tensor& t : runs(path, 6)) {
        EXPECT_EQ(t, plain);
    }
    EXPECT_EQ(gpu.problems(), "");
}

TEST_F(TimelineFile, AFolderThatIsNotThereIsNamed) {
    auto e = backend->compile(three_families(), options(folder.path() + "/none/t.json"))
                 ->create_execution();
    std::vector<Tensor> in = {random_tensor({70, 96}, 3)};
    std::vector<Tensor> out(1);
    EXPECT_TRUE(e->run(in, out).ok()) << e->error();
    EXPECT_FALSE(e->run(in, out).ok());
    EXPECT_NE(std::string(e->error()).find("/none"), std::string::npos) << e->error();
}

TEST_F(TimelineFile, HoldsEveryKernelWhereATextHasSeveral) {
    runs(path, 2, long_sort());
    std::set<std::string> entries;
    Json all = file();
    for (const Json& l : all.at("launches").items()) {
        SCOPED_TRACE(l.dump());
        entries.insert(l.at("kernel").get<std::string>());
        auto start = l.at("start").get<std::vector<int64_t>>();
        auto ready = l.at("ready").get<std::vector<int64_t>>();
        auto end = l.at("end").get<std::vector<int64_t>>();
        for (size_t b = 0; b < start.size(); ++b) {
            EXPECT_GE(start[b], 0);
            EXPECT_LT(start[b], ready[b]);
            EXPECT_LT(ready[b], end[b]);
        }
    }
    for (const char* entry : {"radix_keys", "radix_gather", "radix_count", "radix_prefix_sum"}) {
        EXPECT_EQ(entries.count(entry), 1U) << entry;
    }
    EXPECT_EQ(gpu.problems(), "");
}

TEST_F(TimelineFile, ItsKernelsCompileForHopper) {
    if (cuda::nvrtc_version().empty()) {
        GTEST_SKIP() << "no NVRTC here";
    }
    runs(path, 1);
    runs(path, 1, long_sort());
    std::set<std::string> entries;
    for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
        entries.insert(entry);
        EXPECT_NE(text.find("u64* timeline_times"), std::string::npos) << entry;
        EXPECT_NO_THROW(cuda::nvrtc_compile(text, "sm_90a")) << entry;
    }
    EXPECT_GE(entries.size(), 7U);
}

TEST(TimelineText, AGeneratedKernelDeclaresTheParameter) {
    kernels::Launch l;
    l.entry = "second";
    l.program.kernel = kernels::KernelText{
        "second", {}, {{kernels::KernelParameter::Kind::U32, "u32", "n"}}, "grid_wait();\n"};
    l.args.i32(0).null();
    std::string text = cuda::timeline_text(l);
    EXPECT_NE(text.find("#define TIMELINE_PARAMETER \"second_param_1\"\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with("second(u32 n, u64* timeline_times) {\n"
                               "begin_kernel();\ngrid_wait();\n}\n"))
        << text;
}

TEST(TimelineText, ADeviceFileStaysAsItIs) {
    kernels::Launch l;
    l.entry = "scan_rows";
    l.program = {{"types", "math"}, "#define T F32\n", "scan", {}};
    l.args.i32(0).null();
    std::string text = cuda::timeline_text(l);
    EXPECT_NE(text.find("#define scan_rows(...) scan_rows(__VA_ARGS__, u64* timeline_times)\n"),
              std::string::npos);
    std::string plain = kernels::full_text(l.program);
    plain = plain.substr(kernels::device_file("ptx").size());
    EXPECT_TRUE(text.ends_with(plain));
}

/// A record whose times are in cycles of 0.5 ns after `offset`; the common timer has steps of 1024.
void add_block(std::vector<uint64_t>& records, uint64_t sm, uint64_t offset, uint64_t ns) {
    uint64_t clock = offset + 2 * ns;
    records.insert(records.end(), {sm + 1, 1000000 + ns / 1024 * 1024, clock, ~(clock + 20),
                                   ~(clock + 200), 0, clock + 1000});
}

TEST(TimelineClocks, AgreeWithinATenthOfTheTimersStep) {
    std::vector<uint64_t> records;
    std::mt19937 random(5);
    std::vector<uint64_t> starts;
    for (uint64_t i = 0; i < 4000; ++i) {
        uint64_t ns = i * 100 + random() % 100;
        starts.push_back(ns);
        add_block(records, i % 40, (uint64_t{1} << 40) + i % 40 * 777777, ns);
    }
    std::vector<int64_t> times = cuda::nanoseconds_of(records);
    constexpr size_t words = cuda::BlockRecord::words;
    double offset = 0; // the zero point is the earliest start as estimated
    for (size_t i = 0; i < starts.size(); ++i) {
        offset += static_cast<double>(times[i * words + cuda::BlockRecord::Start]) -
                  static_cast<double>(starts[i]);
    }
    offset /= static_cast<double>(starts.size());
    for (size_t i = 0; i < starts.size(); ++i) {
        const int64_t* t = &times[i * words];
        EXPECT_EQ(t[cuda::BlockRecord::Sm], static_cast<int64_t>(i % 40));
        EXPECT_NEAR(static_cast<double>(t[cuda::BlockRecord::Start]) - offset,
                    static_cast<double>(starts[i]), 102);
        auto after_start = [t](size_t word) {
            return static_cast<double>(t[word] - t[cuda::BlockRecord::Start]);
        };
        EXPECT_NEAR(after_start(cuda::BlockRecord::Arrive), 10, 1);
        EXPECT_NEAR(after_start(cuda::BlockRecord::Ready), 100, 1);
        EXPECT_NEAR(after_start(cuda::BlockRecord::End), 500, 2);
        EXPECT_EQ(t[cuda::BlockRecord::Main], -1);
    }
}

TEST(TimelineClocks, ABlockThatNeverRanHasNoTimes) {
    std::vector<uint64_t> records(2 * cuda::BlockRecord::words, 0);
    EXPECT_EQ(cuda::nanoseconds_of(records), std::vector<int64_t>(records.size(), -1));
}

} // namespace
} // namespace ingot::test
