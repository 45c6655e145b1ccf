# SPDX-License-Identifier: Apache-2.0
"""`ingot compat-layout`: a program built by the names of TensorRT's headers and libraries links and
runs against the folder."""
import subprocess

import pytest

import ingot_command as ingot

PROGRAM = r'''
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include <cstdio>
#include <memory>
struct Quiet : nvinfer1::ILogger {
    void log(Severity, const char* text) noexcept override { std::fprintf(stderr, "%s\n", text); }
};
int main() {
    Quiet logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
    char nonsense[100] = {};
    nvinfer1::ICudaEngine* engine = runtime->deserializeCudaEngine(nonsense, sizeof nonsense);
    std::printf("%d %d\n", getInferLibMajorVersion(), engine == nullptr ? 0 : 1);
    return 0;
}
'''


@pytest.mark.parametrize("libraries", [["nvinfer"], ["tensorrt_rtx"], ["nvinfer_lean"],
                                       ["nvinfer_dispatch"]])
def test_a_program_links_and_runs(tmp_path, libraries):
    layout = tmp_path / "trt"
    ingot.call("compat-layout", layout)
    source = tmp_path / "program.cpp"
    source.write_text(PROGRAM)
    subprocess.run(["g++", "-std=c++17", "-I", layout / "include", source, "-o", tmp_path / "program",
                    "-L", layout / "lib", *[f"-l{name}" for name in libraries],
                    f"-Wl,-rpath,{layout / 'lib'}"], check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == "0"
    assert "deserializeCudaEngine" in done.stderr


def test_it_may_be_made_again_and_has_the_programs(tmp_path):
    for _ in range(2):
        ingot.call("compat-layout", tmp_path)
    for name in ["trtexec", "tensorrt_rtx"]:
        assert (tmp_path / "bin" / name).resolve() == (tmp_path / "bin/ingot").resolve()
        done = subprocess.run([tmp_path / "bin" / name, "--help"], capture_output=True, text=True,
                              check=True)
        assert "--saveEngine" in done.stdout
    for name in ["libnvinfer.so", "libnvinfer_lean.so", "libnvinfer_dispatch.so",
                 "libnvonnxparser.so", "libtensorrt_rtx.so", "libtensorrt_onnxparser_rtx.so",
                 "libingot_lean.so.0"]:
        assert (tmp_path / "lib" / name).exists()
    assert {path.name for path in (tmp_path / "include").glob("*.h")} >= {"NvInfer.h", "NvOnnxParser.h"}


def test_where_it_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run([ingot.binary(), "compat-layout", tmp_path / "file" / "below"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "compat-layout" in done.stderr and "Not a directory" in done.stderr
    assert (tmp_path / "file").read_text() == ""


def test_the_cmake_package(tmp_path):
    build = ingot.binary().parent
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("the command was not built by CMake here: its package was NOT tested")
    prefix = tmp_path / "prefix"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    assert subprocess.run([prefix / "bin/trtexec", "--help"], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0
    (tmp_path / "program.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
        "find_package(ingot 0.1 REQUIRED)\n"
        "foreach(part ingot lean dispatch)\nadd_executable(with_${part} program.cpp)\n"
        "target_link_libraries(with_${part} ingot::${part})\nendforeach()\n")
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build",
                    f"-DCMAKE_PREFIX_PATH={prefix}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, stdout=subprocess.DEVNULL)
    for part in ["ingot", "lean", "dispatch"]:
        done = subprocess.run([tmp_path / "build" / f"with_{part}"], capture_output=True, text=True,
                              check=True)
        assert done.stdout.split()[1] == "0"
    assert (prefix / "lib/libingot_lean.so.0").exists()
