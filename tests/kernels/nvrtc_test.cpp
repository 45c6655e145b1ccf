// SPDX-License-Identifier: Apache-2.0
// Every program that a family emitted in this process, and those of whole models, compile by NVRTC
// for their architectures, without spills, local memory and serialised instructions.
#include "backends/cuda/backend.h"
#include "base/error.h"
#include "base/hash.h"
#include "golden.h"
#include "kernels/harness.h"
#include "kernels/nvrtc_check.h"
#include "kernels/nvrtc_passed.h"
#include "kernels/part.h"
#include "kernels/test_device.h"
#include "source_dir.h"
#include "workflow/build.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

namespace ingot::test {
namespace {

/// The tactics and kernels that other parts of one run have compiled, by architecture.
class Covered {
public:
    Covered() {
        const char* folder = std::getenv("INGOT_NVRTC_COVERED");
        folder_ = folder == nullptr || writes_goldens() ? "" : folder; // a set is listed as a whole
    }
    /// Whether this is the first of its kind, in all parts.
    bool add(const EmittedProgram& e) {
        std::string kind = str(e.family, ' ', e.tactic, ' ', e.entry, ' ', e.cc);
        if (!seen_.insert(kind).second) {
            return false;
        }
        std::string file = file_of(kind);
        bool fresh = file.empty() || !std::filesystem::exists(file);
        if (fresh && !file.empty()) {
            files_.push_back(file);
        }
        return fresh;
    }
    /// Publishes them, once the programs are good or this process has failed.
    void commit() const {
        for (const std::string& file : files_) {
            std::filesystem::create_directories(folder_);
            std::ofstream(file).flush();
        }
    }

private:
    std::string file_of(const std::string& kind) const {
        return folder_.empty() ? "" : str(folder_, '/', hash_bytes(kind.data(), kind.size()));
    }

    std::string folder_;
    std::set<std::string> seen_;
    std::vector<std::string> files_;
};

/// For nvrtc_known.txt.
bool lists_known() {
    return std::getenv("INGOT_NVRTC_OUT") != nullptr;
}

/// Whether a set need not be compiled.
bool may_skip(const std::string& name, const std::vector<NvrtcProgram>& programs) {
    bool skip = !lists_known() && !writes_goldens() && have_passed(name, programs);
    if (skip) {
        std::cout << "[  NVRTC   ] " << name << ": no text is new, as nvrtc_passed.txt says\n";
    }
    return skip;
}

/// Whether all programs are compiled: by ctest, and for lists of them.
bool compiles_all() {
    return std::getenv("INGOT_NVRTC_COVERED") != nullptr || lists_known() || writes_goldens();
}

/// Every text for one of its architectures; the first of each tactic and kernel for all of them. By
/// hand, where an edit waits for it, one text of each tactic and kernel for one architecture. A
/// text and an architecture occur once, with the most shared memory.
std::vector<NvrtcProgram> chosen(const std::vector<EmittedProgram>& emitted, Covered& covered) {
    const bool all = compiles_all();
    std::set<std::string> kinds;
    std::map<std::string, std::vector<const EmittedProgram*>> by_text;
    std::vector<const std::string*> order;
    for (const EmittedProgram& e : emitted) {
        auto [it, fresh] = by_text.try_emplace(e.text);
        it->second.push_back(&e);
        if (fresh) {
            order.push_back(&it->first);
        }
    }
    std::vector<NvrtcProgram> out;
    for (const std::string* text : order) {
        const auto& group = by_text[*text];
        size_t one = hash_bytes(text->data(), text->size()) % group.size();
        bool new_kind = false;
        for (const EmittedProgram* e : group) {
            new_kind |= kinds.insert(str(e->family, ' ', e->tactic, ' ', e->entry)).second;
        }
        if (!all && !new_kind) {
            continue;
        }
        std::map<int, size_t> places; // in `out`, by compute capability
        for (size_t i = 0; i < group.size(); ++i) {
            const EmittedProgram& e = *group[i];
            bool first = all && covered.add(e);
            auto at = places.find(e.cc);
            if (at != places.end()) {
                out[at->second].shared = std::max(out[at->second].shared, e.shared);
            } else if (i == one || first) {
                places[e.cc] = out.size();
                out.push_back(
                    {str(e.family, ' ', e.tactic, " (", e.entry, ')'), e.text, e.cc, e.shared});
            }
        }
    }
    return out;
}

/// After the last test: the programs of the harness.
class EmittedPrograms : public ::testing::Environment {
public:
    void TearDown() override {
        if (!on_device() && !emitted_programs().empty()) { // a device compiled them itself
            std::vector<NvrtcProgram> all;
            for (const EmittedProgram& e : emitted_programs()) {
                all.push_back({"", e.text, e.cc, e.shared});
            }
            std::string set = running_part().empty() ? "" : "part " + running_part();
            if (!set.empty() && may_skip(set, all)) {
                return;
            }
            Covered covered;
            bool good = expect_good_by_nvrtc(chosen(emitted_programs(), covered),
                                             "programs of the families' tests");
            covered.commit();
            if (good && writes_goldens() && !set.empty() &&
                ::testing::UnitTest::GetInstance()->Passed()) {
                list_passed(set, all);
            }
        }
    }
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new EmittedPrograms);

/// A GPU for plans that never run.
class PlanningGpu : public cuda::Gpu {
public:
    explicit PlanningGpu(int cc) : arch_(kernels::arch_of(cc)) {}
    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return "a GPU to plan for"; }
    std::string compiler() const override { return "none"; }
    std::string compile(const std::string&) const override { return "none"; }
    std::shared_ptr<const cuda::Function> load(std::string_view, const std::string&,
                                               int64_t) override {
        return std::make_shared<cuda::Function>();
    }
    std::unique_ptr<cuda::Stream> create_stream() override { return std::make_unique<Stream>(); }
    std::byte* allocate(int64_t bytes) override {
        std::byte* at = next_;
        next_ += (bytes + 511) / 256 * 256;
        return at;
    }
    void release(std::byte*) noexcept override {}
    void encode(const kernels::TensorMap&, std::byte*, std::byte*) const override {}

private:
    class Stream : public cuda::Stream {
        void launch(const cuda::Function&, const cuda::LaunchShape&, void* const*) override {}
        void copy(std::byte*, const std::byte*, size_t) override {}
        void fill(std::byte*, int, size_t) override {}
        void read(void*, const std::byte*, size_t) override {}
        void write(std::byte*, const void*, size_t) override {}
        void synchronize() override {}
    };

    const kernels::Arch& arch_;
    std::byte* next_ = reinterpret_cast<std::byte*>(uintptr_t{1} << 20);
};

std::string models_folder() {
    const char* variable = std::getenv("INGOT_SHARED");
    std::string folder = variable != nullptr ? variable : source_dir() + "/../shared";
    folder += "/models/pretrained";
    return std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<NvrtcProgram> programs_of(const std::string& model, int cc) {
    auto engine = build_engine(model, {});
    PlanningGpu gpu(cc);
    auto backend = cuda::make_backend(gpu);
    auto execution =
        backend->compile(std::make_shared<const Graph>(engine->graph()))->create_execution();
    std::vector<Shape> shapes;
    for (Value v : engine->graph().inputs()) {
        // Sizes without a number of their own are 1.
        Symbols symbols;
        const Dims& dims = engine->graph().type(v).dims;
        std::set<std::string, std::less<>> names;
        for (const Dim& d : dims) {
            d.collect_symbols(names);
        }
        for (const std::string& name : names) {
            symbols[name] = 1;
        }
        shapes.push_back(eval(dims, symbols));
    }
    execution->prepare(shapes);
    std::vector<NvrtcProgram> out;
    for (const auto& [entry, text] : cuda::requested_programs(*backend)) {
        out.push_back({str(std::filesystem::path(model).stem().string(), ' ', entry), text, cc, 0});
    }
    return out;
}

TEST(Nvrtc, CompilesTheProgramsOfModels) {
    std::string folder = models_folder();
    if (folder.empty()) {
        GTEST_SKIP() << "no shared/models beside the clone (set INGOT_SHARED): the programs of "
                        "models were NOT compiled";
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".onnx") {
            continue;
        }
        for (int cc : {80, 90, 120}) {
            SCOPED_TRACE(str(entry.path().filename().string(), ", compute capability ", cc));
            try {
                std::vector<NvrtcProgram> programs = programs_of(entry.path().string(), cc);
                EXPECT_FALSE(programs.empty());
                std::string set = str("model ", entry.path().stem().string(), " for ", cc);
                if (!may_skip(set, programs) && expect_good_by_nvrtc(programs, set) &&
                    writes_goldens()) {
                    list_passed(set, programs);
                }
            } catch (const Error& e) {
                ADD_FAILURE() << e.what();
            }
        }
    }
}

TEST(Nvrtc, SetsAreListedByAllThatDecides) {
    std::string file = std::filesystem::temp_directory_path() / str("passed_", ::getpid(), ".txt");
    const std::vector<NvrtcProgram> two = {{"a", "text a", 90, 0}, {"b", "text b", 80, 1024}};
    EXPECT_FALSE(have_passed("part x", two, file));
    list_passed("part y", {}, file);
    list_passed("part x", two, file);
    EXPECT_TRUE(have_passed("part x", two, file));
    EXPECT_TRUE(have_passed("part x", {two[1], two[0], two[1]}, file));
    EXPECT_TRUE(have_passed("part y", {}, file));
    EXPECT_FALSE(have_passed("part y", two, file));
    EXPECT_FALSE(have_passed("part", two, file));
    for (const NvrtcProgram& other : std::vector<NvrtcProgram>{
             {"a", "text a ", 90, 0}, {"a", "text a", 100, 0}, {"a", "text a", 90, 1}}) {
        EXPECT_FALSE(have_passed("part x", {other, two[1]}, file));
    }
    EXPECT_FALSE(have_passed("part x", {two[0]}, file));
    std::filesystem::remove(file);
}

TEST(Nvrtc, TextsAreCompiledOnce) {
    ASSERT_EQ(missing_nvrtc(), "");
    // The process alone keeps a text that does not compile.
    std::string text = std::string(kernels::device_file("ptx")) + "KERNEL void k() { once(); }";
    int before = nvrtc_compilations();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&text] {
            EXPECT_NE(check_by_nvrtc({"test", text, 80, 0}).problems.find("once"),
                      std::string::npos);
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    EXPECT_EQ(nvrtc_compilations(), before + 1);
    EXPECT_NE(check_by_nvrtc({"test", text, 86, 0}).problems, "");
    EXPECT_EQ(nvrtc_compilations(), before + 2) << "another architecture is another program";
}

TEST(Nvrtc, PartsCoverEveryTest) {
    std::set<std::string> files;
    for (const auto& e : std::filesystem::directory_iterator(source_dir() + "/tests/kernels")) {
        files.insert(e.path().filename().string());
    }
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const testing::TestSuite& suite = *all.GetTestSuite(s);
        for (int t = 0; t < suite.total_test_count(); ++t) {
            std::string file =
                std::filesystem::path(suite.GetTestInfo(t)->file()).filename().string();
            EXPECT_TRUE(file.ends_with("_test.cpp") && files.contains(file))
                << suite.name() << " stands in " << file
                << ", which is no part: tests belong into tests/kernels/NAME_test.cpp";
        }
    }
}

TEST(Nvrtc, FindsFault) {
    ASSERT_EQ(missing_nvrtc(), "");
    std::string begin(kernels::device_file("ptx"));
    auto problems = [&begin](const std::string& text, int64_t shared = 0, int cc = 80) {
        return check_by_nvrtc({"test", begin + text, cc, shared}).problems;
    };
    EXPECT_EQ(problems("KERNEL void __launch_bounds__(32) k(u32* p) { grid_wait(); p[0] = 1; }"),
              "");
    EXPECT_NE(problems("KERNEL void k(u32* p) { p[0] = nothing; }").find("nothing"),
              std::string::npos);
    EXPECT_NE(
        problems("KERNEL void k(u32* p) { u32 v[64];\nfor (int i = 0; i < 64; i++) v[p[i] & 63] "
                 "= i;\np[0] = v[p[99] & 63]; }")
            .find("bytes of local memory"),
        std::string::npos);
    EXPECT_NE(problems("KERNEL void __launch_bounds__(1024, 2) k(float* p) { float v[96];\n"
                       "#pragma unroll\nfor (int i = 0; i < 96; i++) v[i] = p[i];\nsync();\n"
                       "#pragma unroll\nfor (int i = 0; i < 96; i++) p[i] = v[95 - i] * v[i]; }")
                  .find("bytes are spilled"),
              std::string::npos);
    EXPECT_NE(problems("KERNEL void k(u32* p) { p[0] = 1; }", 100 * 1024, 86)
                  .find("bytes of shared memory, a block has"),
              std::string::npos);
    EXPECT_NE(problems("KERNEL void k(u32* p) { mbar_init(0, 1); }").find("mbar_init"),
              std::string::npos);
}

} // namespace
} // namespace ingot::test
