# SPDX-License-Identifier: Apache-2.0
"""`ingot compat-layout`: a program built by the names of TensorRT's headers and libraries links and
runs against the folder."""
import os
import subprocess

import numpy as np
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

# In the style of the previous generation's samples: a model becomes an engine with its own types,
# and an engine runs in memory that the application allocates.
OLDER = r'''
#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvOnnxParser.h"
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>
using namespace nvinfer1;
class Logger : public ILogger {
    void log(Severity severity, char const* msg) noexcept override {
        if (severity <= Severity::kWARNING) {
            std::cerr << msg << std::endl;
        }
    }
} gLogger;
int main(int argc, char** argv) {
    if (argc != 2 || !initLibNvInferPlugins(&gLogger, "")) {
        return 1;
    }
    auto builder = std::unique_ptr<IBuilder>(createInferBuilder(gLogger));
    auto const flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    auto network = std::unique_ptr<INetworkDefinition>(builder->createNetworkV2(flags));
    auto parser = std::unique_ptr<nvonnxparser::IParser>(nvonnxparser::createParser(*network, gLogger));
    if (!parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kWARNING))) {
        return 2;
    }
    auto config = std::unique_ptr<IBuilderConfig>(builder->createBuilderConfig());
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1U << 30);
    if (builder->platformHasFastFp16()) {
        config->setFlag(BuilderFlag::kFP16);
    }
    auto profile = builder->createOptimizationProfile();
    auto const input = network->getInput(0)->getName();
    profile->setDimensions(input, OptProfileSelector::kMIN, Dims4{1, 1, 8, 8});
    profile->setDimensions(input, OptProfileSelector::kOPT, Dims4{2, 1, 8, 8});
    profile->setDimensions(input, OptProfileSelector::kMAX, Dims4{4, 1, 8, 8});
    config->addOptimizationProfile(profile);
    auto plan = std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
    auto runtime = std::unique_ptr<IRuntime>(createInferRuntime(gLogger));
    auto engine = std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (engine->hasImplicitBatchDimension()) {
        return 3;
    }
    auto context = std::unique_ptr<IExecutionContext>(engine->createExecutionContextWithoutDeviceMemory());
    std::vector<char> memory(engine->getDeviceMemorySize() + 256);
    auto const address = (reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256;
    context->setDeviceMemory(reinterpret_cast<void*>(address));
    std::vector<float> image(3 * 64, 0.5F), scores(3 * 10, -1.0F);
    if (!context->setInputShape(input, Dims4{3, 1, 8, 8}) || !context->allInputShapesSpecified()) {
        return 4;
    }
    context->setTensorAddress(input, image.data());
    context->setTensorAddress(engine->getIOTensorName(1), scores.data());
    if (!context->enqueueV3(nullptr)) {
        return 5;
    }
    for (float score : scores) {
        std::cout << score << std::endl;
    }
    return 0;
}
'''
# FindTensorRT, as projects carry it.
PROJECT = r'''
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
find_path(TENSORRT_INCLUDE_DIR NvInfer.h HINTS ${TENSORRT_ROOT} PATH_SUFFIXES include)
file(STRINGS ${TENSORRT_INCLUDE_DIR}/NvInferVersion.h major REGEX "#define TRT_MAJOR_ENTERPRISE +[0-9]+")
if(NOT major MATCHES "[0-9]+")
  message(FATAL_ERROR "no version")
endif()
message(STATUS "TensorRT ${CMAKE_MATCH_0}")
foreach(name nvinfer nvinfer_plugin nvonnxparser)
  find_library(TENSORRT_LIBRARY_${name} ${name} HINTS ${TENSORRT_ROOT} PATH_SUFFIXES lib lib64 REQUIRED)
  list(APPEND libraries ${TENSORRT_LIBRARY_${name}})
endforeach()
add_executable(user user.cpp)
target_include_directories(user PRIVATE ${TENSORRT_INCLUDE_DIR})
target_compile_options(user PRIVATE -Wno-deprecated-declarations)
target_link_libraries(user PRIVATE ${libraries})
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


def test_a_project_written_for_tensorrt_builds_and_runs(tmp_path):
    """Its own search for TensorRT, names of the older generation, three libraries that are one here."""
    ingot.call("compat-layout", tmp_path / "trt")
    (tmp_path / "user.cpp").write_text(OLDER)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    said = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build",
                           f"-DTENSORRT_ROOT={tmp_path / 'trt'}"], check=True, capture_output=True, text=True).stdout
    assert "TensorRT 11" in said
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, stdout=subprocess.DEVNULL)
    model = ingot.DIGITS / "digits.onnx"
    done = subprocess.run([tmp_path / "build" / "user", model], capture_output=True, text=True, check=False,
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0 and not done.stderr, done
    scores = np.array(done.stdout.split(), np.float32).reshape(3, 10)
    expected = ingot.run(model, {"image": np.full((3, 1, 8, 8), 0.5, np.float32)}, tmp_path / "run")["scores"]
    np.testing.assert_allclose(scores, expected, 3e-2, 3e-2)


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
