// SPDX-License-Identifier: Apache-2.0
// An instance on a GPU when the folder of compiled kernels, or their compiler, is not as it should
// be. Each server is a process of its own, which the test DISABLED_Serves is when it is called by
// name.
#include "tests/triton/emulated.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace {

/// No byte can be written below it; "" while there is room everywhere.
std::string& full_folder() {
    static std::string folder;
    return folder;
}

bool is_full(int descriptor) {
    std::array<char, 4096> path{};
    std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    return !full_folder().empty() && readlink(link.c_str(), path.data(), path.size() - 1) > 0 &&
           std::string_view(path.data()).starts_with(full_folder());
}

} // namespace

// In place of the C library's, for the whole program: a disk that is full, and libraries that are
// not there.
extern "C" __attribute__((visibility("default"))) ssize_t write(int descriptor, const void* data,
                                                                size_t bytes) {
    if (is_full(descriptor)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, descriptor, data, bytes);
}

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* path, int mode) {
    using Open = void*(const char*, int);
    auto* real = reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "dlopen"));
    const char* missing = std::getenv("INGOT_CHILD_WITHOUT");
    bool is_missing =
        path != nullptr && missing != nullptr && std::strstr(path, missing) != nullptr;
    return real(is_missing ? "/nowhere" : path, mode);
}

namespace ingot::triton {
namespace {

namespace fs = std::filesystem;
namespace nv = nvinfer1;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Says how the engine of INGOT_CHILD_ENGINE was served: "right, 3 compiled" or the error.
TEST(TritonKernels, DISABLED_Serves) {
    full_folder() = variable("INGOT_CHILD_FULL");
    std::ifstream file(variable("INGOT_CHILD_ENGINE"), std::ios::binary);
    std::string engine((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Scene scene(engine, R"({"parameters":{"buckets":{"string_value":"3"}}})");
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    if (variable("INGOT_CHILD_TRUSTS") == "1") {
        scene.backend.config.json = R"({"cmdline":{"allow-engine-code":"true"}})";
    }
    std::string text = scene.start();
    if (text.empty()) {
        turn(scene, 3);
        auto* newest = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_newest");
        int64_t general = 1; // loaded first
        auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (variable("INGOT_CHILD_WAITS") == "1" && newest(0) <= general &&
               std::chrono::steady_clock::now() < end) { // for the kernels of the bucket
            turn(scene, 3);
        }
        scene.stop();
        auto* compiled =
            find_function<int()>(std::getenv("INGOT_NVRTC"), "ingot_emulated_compiled");
        text = "right, " + std::to_string(compiled == nullptr ? 0 : compiled()) + " compiled";
    }
    std::printf("<<%s>>\n%s", text.c_str(), FakeHost::get().logged().c_str());
}

using Variables = std::map<std::string, std::string>;

struct Served {
    std::string said; // "right, 0 compiled", or an error
    std::string all;  // with its log
};

Served serve(const Variables& variables) {
    std::string command = "exec env";
    for (const auto& [name, value] : variables) {
        command.append(" ").append(name).append("='").append(value).append("'");
    }
    command += " " + fs::read_symlink("/proc/self/exe").string() +
               " --gtest_also_run_disabled_tests --gtest_filter=TritonKernels.DISABLED_Serves 2>&1";
    Served out;
    FILE* pipe = popen(command.c_str(), "r"); // NOLINT(cert-env33-c)
    std::array<char, 4096> piece{};
    for (size_t n = 0; (n = fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
        out.all.append(piece.data(), n);
    }
    int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << out.all;
    size_t begin = out.all.find("<<");
    size_t end = out.all.find(">>");
    if (begin != std::string::npos && end != std::string::npos) {
        out.said = out.all.substr(begin + 2, end - begin - 2);
    }
    return out;
}

/// An engine's file, with kernels for the GPU or without.
class EngineFile {
public:
    explicit EngineFile(bool with_kernels) {
        std::string bytes = turning_engine(99, [&](nv::IBuilderConfig& config) {
            if (with_kernels) {
                EXPECT_TRUE(config.setNbComputeCapabilities(1));
                EXPECT_TRUE(config.setComputeCapability(nv::ComputeCapability::kSM80, 0));
            }
        });
        std::ofstream(path(), std::ios::binary) << bytes;
    }
    std::string path() const { return folder_.path() + "/model.engine"; }

private:
    Folder folder_;
};

std::vector<fs::path> files_below(const std::string& folder) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file() && fs::file_size(entry) > 0) {
            out.push_back(entry.path());
        }
    }
    return out;
}

bool compiled_some(const std::string& said) {
    return said.starts_with("right, ") && said.ends_with(" compiled") &&
           said != "right, 0 compiled";
}

/// Sooner or later a server finds all kernels in the folder. One that ends gives up what it has not
/// yet compiled.
void expect_settled(const Variables& variables) {
    constexpr int most = 20;
    std::string said;
    for (int i = 0; i < most && said != "right, 0 compiled"; ++i) {
        said = serve(variables).said;
    }
    EXPECT_EQ(said, "right, 0 compiled");
}

TEST_F(TritonEmulated, AnAbsentFolderOfKernelsIsMadeAndADamagedOneIsReplaced) {
    EngineFile engine(false);
    Folder folder;
    Variables variables = {{"INGOT_CHILD_ENGINE", engine.path()},
                           {"INGOT_RUNTIME_CACHE", folder.path() + "/not/there"},
                           {"INGOT_CHILD_WAITS", "1"}};
    Served first = serve(variables);
    EXPECT_TRUE(compiled_some(first.said)) << first.all;
    std::vector<fs::path> kept = files_below(folder.path());
    EXPECT_FALSE(kept.empty());
    variables.erase("INGOT_CHILD_WAITS");
    expect_settled(variables);
    for (size_t i = 0; i < kept.size(); ++i) { // flipped, cut, empty, foreign
        std::ifstream in(kept[i], std::ios::binary);
        std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
        std::string changes[] = {bytes, bytes.substr(0, bytes.size() / 3), "", "no kernel"};
        std::ofstream(kept[i], std::ios::binary | std::ios::trunc) << changes[i % 4];
    }
    Served damaged = serve(variables);
    EXPECT_TRUE(compiled_some(damaged.said)) << damaged.all;
    expect_settled(variables); // the files are whole again
}

TEST_F(TritonEmulated, AFolderOfKernelsThatCannotBeWrittenCostsNothingButItself) {
    EngineFile engine(false);
    Folder folder;
    std::ofstream(folder.path() + "/file") << "in its way";
    std::string full = folder.path() + "/full";
    for (const Variables& place :
         {Variables{{"INGOT_RUNTIME_CACHE", "/proc/ingot/kernels"}},
          Variables{{"INGOT_RUNTIME_CACHE", folder.path() + "/file/in"}},
          Variables{{"INGOT_RUNTIME_CACHE", full}, {"INGOT_CHILD_FULL", full}}}) {
        SCOPED_TRACE(place.at("INGOT_RUNTIME_CACHE"));
        Variables variables = place;
        variables["INGOT_CHILD_ENGINE"] = engine.path();
        Served served = serve(variables);
        EXPECT_TRUE(compiled_some(served.said)) << served.all;
        EXPECT_NE(served.all.find("runtime cache: nothing is saved: "), std::string::npos)
            << served.all;
    }
    EXPECT_TRUE(files_below(full).empty());
}

TEST_F(TritonEmulated, WithoutACompilerAnEngineNeedsItsKernelsAndTrust) {
    EngineFile bare(false);
    EngineFile whole(true);
    Variables variables = {{"INGOT_RUNTIME_CACHE", "none"}, {"INGOT_CHILD_WITHOUT", "libnvrtc"}};
    for (const EngineFile* engine : {&bare, &whole}) { // not trusted, so its kernels are not used
        variables["INGOT_CHILD_ENGINE"] = engine->path();
        Served served = serve(variables);
        EXPECT_EQ(
            served.said,
            "5 instance 'model_0': kernels have to be compiled for GPU 0, and nothing here "
            "can: install NVRTC 13 or 12 where the server runs, or name it in INGOT_NVRTC, or "
            "let the engine bring its kernels: 'ingot build --computeCapabilities=80' with "
            "--backend-config=ingot,trusted-keys=FILE or allow-engine-code=true");
        EXPECT_NE(served.all.find("NVRTC 12 or 13 was not found (tried "), std::string::npos);
    }
    variables["INGOT_CHILD_TRUSTS"] = "1";
    EXPECT_EQ(serve(variables).said, "right, 0 compiled");
}

} // namespace
} // namespace ingot::triton
