// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/nvrtc.h"

#include "backends/cuda/driver/exit_gate.h"
#include "base/error.h"
#include "base/shared_library.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <memory>
#include <vector>

namespace ingot::cuda {

namespace {

using Program = struct nvrtcProgram_st*;

struct Nvrtc {
    SharedLibrary library;
    int major = 0;
    int minor = 0;
    std::string searched;
    std::string path;

    int (*version)(int*, int*) = nullptr;
    int (*create)(Program*, const char*, const char*, int, const char* const*,
                  const char* const*) = nullptr;
    int (*destroy)(Program*) = nullptr;
    int (*compile)(Program, int, const char* const*) = nullptr;
    int (*log_size)(Program, size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*cubin_size)(Program, size_t*) = nullptr;
    int (*cubin)(Program, char*) = nullptr;
    int (*ptx_size)(Program, size_t*) = nullptr;
    int (*count_archs)(int*) = nullptr;
    int (*archs)(int*) = nullptr;
    const char* (*error)(int) = nullptr;

    /// -minimal leaves out declarations of CUDA's library, so that parsing takes less time. Since
    /// 12.4.
    bool has_minimal() const { return major > 12 || minor >= 4; }
};

std::vector<std::string> candidates() {
    std::vector<std::string> names;
    if (const char* chosen = std::getenv("INGOT_NVRTC")) {
        names.emplace_back(chosen);
    }
    const std::string folders[] = {own_folder() + "/", "", "/usr/local/cuda/lib64/",
                                   "/usr/local/cuda/lib/"};
    for (const std::string& folder : folders) {
        for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
            names.push_back(folder + name);
        }
    }
    return names;
}

template <class F>
bool get(const SharedLibrary& l, F*& f, const char* name) {
    f = reinterpret_cast<F*>(l.symbol(name));
    return f != nullptr;
}

/// The first compilations create objects that the library keeps until the process ends.
void note_compilation() {
    static std::atomic<unsigned> count{0};
    if (std::has_single_bit(++count)) {
        ExitGate::close_earlier();
    }
}

Nvrtc open_nvrtc() {
    Nvrtc n;
    for (const std::string& path : candidates()) {
        std::string problem;
        n.library = SharedLibrary::open(path, problem);
        n.searched += (n.searched.empty() ? "" : ", ") + path;
        const SharedLibrary& l = n.library;
        if (l && get(l, n.version, "nvrtcVersion") && get(l, n.create, "nvrtcCreateProgram") &&
            get(l, n.destroy, "nvrtcDestroyProgram") && get(l, n.compile, "nvrtcCompileProgram") &&
            get(l, n.log_size, "nvrtcGetProgramLogSize") && get(l, n.log, "nvrtcGetProgramLog") &&
            get(l, n.cubin_size, "nvrtcGetCUBINSize") && get(l, n.cubin, "nvrtcGetCUBIN") &&
            get(l, n.ptx_size, "nvrtcGetPTXSize") && get(l, n.error, "nvrtcGetErrorString") &&
            get(l, n.count_archs, "nvrtcGetNumSupportedArchs") &&
            get(l, n.archs, "nvrtcGetSupportedArchs")) {
            n.version(&n.major, &n.minor);
            n.path = path;
            ExitGate::close_earlier();
            return n;
        }
        n.library = {};
    }
    return n;
}

const Nvrtc& nvrtc() {
    static const Nvrtc n = open_nvrtc();
    return n;
}

void require_found(const Nvrtc& n) {
    require(static_cast<bool>(n.library), ErrorCode::Unsupported,
            "kernels have to be compiled, and NVRTC 12 or 13 was not found (tried ", n.searched,
            "): install it, or name it in INGOT_NVRTC");
}

/// Throws where the architecture ("sm_90a") is newer than the library.
void require_known(const Nvrtc& n, const std::string& arch) {
    int count = 0;
    require(n.count_archs(&count) == 0 && count > 0, ErrorCode::Internal,
            "nvrtcGetNumSupportedArchs gave no number");
    std::vector<int> known(static_cast<size_t>(count));
    require(n.archs(known.data()) == 0, ErrorCode::Internal, "nvrtcGetSupportedArchs failed");
    int wanted = std::atoi(arch.c_str() + std::string_view("sm_").size());
    int newest = *std::max_element(known.begin(), known.end());
    require(std::find(known.begin(), known.end(), wanted) != known.end(), ErrorCode::Unsupported,
            "NVRTC ", n.major, '.', n.minor, " (", n.path, ") cannot compile for ", arch,
            ", the newest that it knows is sm_", newest,
            ": install one that knows it (12.8 for sm_100a and sm_120), or name it in "
            "INGOT_NVRTC");
}

} // namespace

std::string nvrtc_problem(const std::string& arch) {
    const Nvrtc& n = nvrtc();
    try {
        require_found(n);
        if (!arch.empty()) {
            require_known(n, arch);
        }
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

bool nvrtc_knows(const std::string& arch) {
    return nvrtc_problem(arch).empty();
}

std::string nvrtc_version() {
    const Nvrtc& n = nvrtc();
    return n.library ? str("nvrtc ", n.major, '.', n.minor) : std::string();
}

std::vector<std::string> nvrtc_options(const std::string& arch) {
    std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17", "--fmad=true"};
    if (nvrtc().has_minimal()) {
        options.emplace_back("-minimal");
    }
    if (std::getenv("INGOT_NVRTC_VERBOSE") != nullptr) {
        options.emplace_back("--ptxas-options=-v");
    }
    return options;
}

CompiledText nvrtc_compile(const std::string& text, const std::string& arch) {
    const Nvrtc& n = nvrtc();
    require_found(n);
    require_known(n, arch);
    Program raw = nullptr;
    int r = n.create(&raw, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    require(r == 0, ErrorCode::Internal, "nvrtcCreateProgram: ", n.error(r));
    auto destroy = [&n](Program p) { n.destroy(&p); };
    std::unique_ptr<std::remove_pointer_t<Program>, decltype(destroy)> program(raw, destroy);
    const std::vector<std::string> given = nvrtc_options(arch);
    std::vector<const char*> options;
    for (const std::string& option : given) {
        options.push_back(option.c_str());
    }
    r = n.compile(raw, static_cast<int>(options.size()), options.data());
    note_compilation();
    CompiledText out;
    size_t size = 0;
    if (n.log_size(raw, &size) == 0 && size > 1) {
        out.log.resize(size);
        n.log(raw, out.log.data());
        out.log.resize(size - 1);
    }
    require(r == 0, ErrorCode::Internal, "compiling a kernel for ", arch, ": ", n.error(r), '\n',
            out.log);
    require(n.cubin_size(raw, &size) == 0 && size > 0, ErrorCode::Internal,
            "NVRTC gave no binary for ", arch);
    out.cubin.resize(size);
    n.cubin(raw, out.cubin.data());
    n.ptx_size(raw, &out.ptx_bytes);
    return out;
}

} // namespace ingot::cuda
