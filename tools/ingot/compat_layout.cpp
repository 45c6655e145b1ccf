// SPDX-License-Identifier: Apache-2.0
// ingot compat-layout DIR: a folder laid out like an installation of TensorRT or TensorRT for RTX,
// for build scripts.
#include "api/options.h"
#include "base/error.h"
#include "base/shared_library.h"
#include "commands.h"
#include "engine/container.h"

#include <cstdio>
#include <filesystem>
#include <span>

namespace ingot::tool {

namespace {

namespace fs = std::filesystem;

// TensorRT's names of Ingot's libraries.
constexpr std::string_view names_of_all[] = {"libnvinfer.so",
                                             "libnvinfer.so.10",
                                             "libnvinfer.so.11",
                                             "libnvinfer_plugin.so",
                                             "libnvinfer_plugin.so.10",
                                             "libnvinfer_plugin.so.11",
                                             "libnvonnxparser.so",
                                             "libnvonnxparser.so.10",
                                             "libnvonnxparser.so.11",
                                             "libtensorrt_rtx.so",
                                             "libtensorrt_rtx.so.1",
                                             "libtensorrt_onnxparser_rtx.so",
                                             "libtensorrt_onnxparser_rtx.so.1"};
constexpr std::string_view names_of_lean[] = {
    "libnvinfer_lean.so",      "libnvinfer_lean.so.10",      "libnvinfer_lean.so.11",
    "libnvinfer_vc_plugin.so", "libnvinfer_vc_plugin.so.10", "libnvinfer_vc_plugin.so.11"};
constexpr std::string_view names_of_dispatch[] = {
    "libnvinfer_dispatch.so", "libnvinfer_dispatch.so.10", "libnvinfer_dispatch.so.11"};
// Names of NVIDIA's provider for ONNX Runtime.
constexpr std::string_view names_of_plugin[] = {"libonnxruntime_providers_nv_tensorrt_rtx.so"};
constexpr std::string_view program_names[] = {"trtexec", "tensorrt_rtx"};

/// The first of `places` that has `name`; the error lists all of them.
fs::path found(std::string_view name, const std::vector<fs::path>& places) {
    std::string list;
    for (const fs::path& p : places) {
        if (fs::exists(p / name)) {
            return p / name;
        }
        append(list, str(list.empty() ? "" : ", ", p.string()));
    }
    fail(ErrorCode::Io, name, " is in none of ", list,
         "; keep the parts of the installation, or of the build, together");
}

void copy_over(const fs::path& from, const fs::path& to) {
    fs::remove(to);
    fs::copy_file(from, to);
}

void link_over(std::string_view target, const fs::path& link) {
    fs::remove(link);
    fs::create_symlink(target, link);
}

/// Copies the library into the folder, under its name and others.
void put_library(const fs::path& from, const fs::path& folder,
                 std::span<const std::string_view> names) {
    std::string own = from.filename().string();
    copy_over(from, folder / own);
    for (std::string_view name : names) {
        link_over(own, folder / name);
    }
}

} // namespace

int compat_layout(const Options& o) {
    fs::path folder = own_folder();
    fs::path to(o.model);
    try {
        fs::path headers =
            found("NvInfer.h", {folder / "../include", folder / "include"}).parent_path();
        fs::path library = found("libingot.so", {folder, folder / "../lib"});
        for (const char* part : {"include/ingot", "lib", "bin"}) {
            fs::create_directories(to / part);
        }
        for (const auto& entry : fs::recursive_directory_iterator(headers)) {
            fs::path name = fs::relative(entry.path(), headers);
            if (entry.path().extension() == ".h") {
                fs::create_directories((to / "include" / name).parent_path());
                copy_over(entry.path(), to / "include" / name);
            }
        }
        put_library(library, to / "lib", names_of_all);
        put_library(found("libingot_lean.so", {library.parent_path()}), to / "lib", names_of_lean);
        link_over("libingot_lean.so",
                  to / "lib" / str("libingot_lean.so.", engine_producer >> 16U));
        put_library(found("libingot_dispatch.so", {library.parent_path()}), to / "lib",
                    names_of_dispatch);
        if (fs::exists(library.parent_path() / "libingot_onnxruntime.so")) {
            put_library(library.parent_path() / "libingot_onnxruntime.so", to / "lib",
                        names_of_plugin);
        }
        copy_over(found("ingot", {folder}), to / "bin/ingot");
        for (std::string_view name : program_names) {
            link_over("ingot", to / "bin" / name);
        }
        fs::path loops = library.parent_path() / "libingot_cpu.so";
        if (fs::exists(loops)) {
            copy_over(loops, to / "lib/libingot_cpu.so");
            link_over("../lib/libingot_cpu.so", to / "bin/libingot_cpu.so");
        }
    } catch (const fs::filesystem_error& e) {
        fail(ErrorCode::Io, "compat-layout ", o.model, ": ", e.what());
    }
    std::printf("%s: include, lib and bin as TensorRT has them; give it as TENSORRT_ROOT\n",
                o.model.c_str());
    return 0;
}

} // namespace ingot::tool
