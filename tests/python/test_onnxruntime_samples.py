# SPDX-License-Identifier: Apache-2.0
"""C++ programs of ONNX Runtime on Ingot's execution provider: the EP-context samples by the command lines
of their description, and the listings of the provider's documentation with one line changed."""
import copy
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import (NAME, REPOSITORY, SIMULATED, library, model_of, on_cpu, onnxruntime,
                                session)

SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SECONDS = r"([0-9.e+-]+) sec\n"
TIMES = (rf"> Original session load time: {SECONDS}> Compile time: {SECONDS}"
         rf"> Compiled model saved at (\S+)\n> Context model session load time: {SECONDS}"
         rf"> Context model session load time with runtime cache: {SECONDS}")
DONE = r"Program finished successfully\.\n"


def page(number):
    """A document of the shared folder; "" without it."""
    found = sorted((SHARED / "spec").glob(f"{number}_*")) if SHARED.is_dir() else []
    return found[0].read_text(encoding="utf-8") if found else ""


def compile_program(source, out, *options):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("NOT TESTED: there is no g++ here")
    done = subprocess.run([compiler, "-std=c++17", f"-I{REPOSITORY / 'include'}", *options, source,
                           "-o", out, "-ldl"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def start(program, *words, cwd, **changed):
    capi = pathlib.Path(onnxruntime.__file__).parent / "capi"
    environment = {**os.environ, "INGOT_ALLOW_CPU": "0" if SIMULATED else "1",
                   "INGOT_ONNXRUNTIME": str(library()),
                   "INGOT_ORT_LIBRARY": str(next(capi.glob("libonnxruntime.so*"))), **changed}
    return subprocess.run([str(w) for w in (program, *words)], cwd=cwd, env=environment,
                          capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for name in ("sample", "sample_buffer", "sample_weightless"):
        compile_program(REPOSITORY / f"examples/ep_context/{name}.cpp", folder / name, *WARNINGS)
    return folder


@pytest.fixture
def model(tmp_path):
    """y = Relu(x W + b), x of 4 rows; once whole, once with its weights in another file."""
    rng = np.random.default_rng(2)
    made = model_of([helper.make_node("MatMul", ["x", "w"], ["a"]),
                     helper.make_node("Add", ["a", "b"], ["s"]),
                     helper.make_node("Relu", ["s"], ["y"])],
                    {"x": (TensorProto.FLOAT, [4, 32])}, {"y": (TensorProto.FLOAT, [4, 24])},
                    {"w": rng.standard_normal((32, 24)).astype(np.float32),
                     "b": rng.standard_normal(24).astype(np.float32)})
    onnx.save(made, tmp_path / "my_model.onnx")
    return made


def in_two_files(model, folder):
    onnx.save(copy.deepcopy(model), folder / "my_model.onnx", save_as_external_data=True,
              location="model.onnx.data", size_threshold=0)


def check_context(model, path, embed):
    """It is one compiled node with its engine in the requested place, and computes the same."""
    node, = onnx.load(path).graph.node
    assert node.op_type == "EPContext"
    assert {a.name: a.i for a in node.attribute}["embed_mode"] == embed
    assert len(list(path.parent.glob(f"{path.stem}_*.engine"))) == 1 - embed
    x = np.random.default_rng(3).standard_normal((4, 32)).astype(np.float32)
    np.testing.assert_allclose(session(path).run(None, {"x": x})[0], on_cpu(model, {"x": x})[0],
                               rtol=1e-5, atol=1e-5)


def command_lines():
    """Those of the description's C++ samples: program and words, each placeholder by its example."""
    lines = re.findall(r"^\./(\w+)\.exe `(.*)`", page("002"), re.M)
    return [(name, [words.split()[-1] for words in re.findall(r"<([^>]*)>", text)])
            for name, text in lines]


LINES = command_lines()


@pytest.mark.skipif(not LINES, reason=f"no spec/002 in {SHARED}: its command lines were NOT run")
@pytest.mark.parametrize("name, words", LINES, ids=[name for name, _ in LINES])
def test_line_of_the_description_runs(name, words, samples, model, tmp_path):
    if name == "sample_buffer":
        in_two_files(model, tmp_path)
        assert words[1] == words[3] == "model.onnx.data"
    assert words[-2:] == ["0", NAME]
    done = start(samples / name, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    times = re.fullmatch(TIMES + DONE, done.stdout)
    assert times and times[3] == "model_ctx.onnx", done.stdout
    assert all(0 < float(times[i]) < 60 for i in (1, 2, 4, 5))
    check_context(model, tmp_path / "model_ctx.onnx", 0)
    assert (tmp_path / "ort_runtime_cache").is_dir()


@pytest.mark.skipif(not LINES, reason=f"no spec/002 in {SHARED}: its table was NOT compared")
def test_the_four_times_are_those_of_the_descriptions_table():
    columns = re.search(r"^\|Model +\|(.*)\|$", page("002"), re.M)[1].split("|")
    assert [c.strip() for c in columns] == [
        "Normal Load Time (sec)", "Compile Time (sec)", "EP Context Load (sec)",
        "EP Context + Cache (sec)"]
    source = (REPOSITORY / "examples/ep_context/sample.cpp").read_text()
    assert re.findall(r'print\("([^"]*)"', source) == [
        "Original session load time", "Compile time", "Context model session load time",
        "Context model session load time with runtime cache"]


@pytest.mark.parametrize("embed", [0, 1])
def test_sample_without_weights(embed, samples, model, tmp_path):
    done = start(samples / "sample_weightless", "my_model.onnx", "c.onnx", embed, NAME, "--verify",
                 cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(TIMES + r"> Largest difference of outputs: [0-9.e+-]+\n" + DONE, done.stdout)
    check_context(model, tmp_path / "c.onnx", embed)


@pytest.mark.parametrize("embed", [0, 1])
def test_samples_in_both_modes(embed, samples, model, tmp_path):
    done = start(samples / "sample", "my_model.onnx", "c.onnx", embed, NAME, cwd=tmp_path)
    assert re.fullmatch(TIMES + DONE, done.stdout), done.stdout + done.stderr
    check_context(model, tmp_path / "c.onnx", embed)
    in_two_files(model, tmp_path)
    done = start(samples / "sample_buffer", "my_model.onnx", "model.onnx.data", "buffer.onnx",
                 "model.onnx.data", embed, cwd=tmp_path)
    assert re.fullmatch(TIMES + DONE, done.stdout), done.stdout + done.stderr
    (tmp_path / "model.onnx.data").unlink()  # the context is self-contained
    check_context(model, tmp_path / "buffer.onnx", embed)


@pytest.mark.parametrize("words, said", [
    (["my_model.onnx"], "got 1 arguments; usage: {program} MODEL.onnx MODEL_CTX.onnx [0|1] [PROVIDER]"),
    (["my_model.onnx", "c.onnx", "2"],
     "embed mode: got '2', expected 0 (a file beside the model) or 1 (in the model)"),
    (["my_model.onnx", "c.onnx", "0", "Nothing"],
     "there is no execution provider Nothing, expected NvTensorRTRTXExecutionProvider, "
     "NvTensorRtRtxExecutionProvider or IngotExecutionProvider"),
    (["absent.onnx", "c.onnx"],
     "Load model from absent.onnx failed:Load model absent.onnx failed. File doesn't exist"),
])
def test_wrong_words(words, said, samples, model, tmp_path):
    assert model is not None
    done = start(samples / "sample", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(f"sample: error: {said.format(program=samples / 'sample')}\n")
    assert not (tmp_path / "c.onnx").exists()


def test_what_is_missing_is_named(samples, model, tmp_path):
    assert model is not None
    words = (samples / "sample", "my_model.onnx", "c.onnx")
    said = start(*words, cwd=tmp_path, INGOT_ORT_LIBRARY="/nonexistent/libonnxruntime.so").stderr
    assert said.startswith("sample: error: cannot open ONNX Runtime; pip install onnxruntime, and name "
                           "the libonnxruntime.so.* of its folder capi by INGOT_ORT_LIBRARY:\n"
                           "  /nonexistent/libonnxruntime.so: cannot open shared object file")
    said = start(*words, cwd=tmp_path, INGOT_ONNXRUNTIME="/nonexistent/plugin.so").stderr
    assert said.startswith("sample: error: cannot open Ingot's execution provider; name "
                           "libingot_onnxruntime.so by INGOT_ONNXRUNTIME, or put its folder into "
                           "LD_LIBRARY_PATH:\n  /nonexistent/plugin.so: cannot open")
    done = start(*words, cwd=tmp_path, INGOT_ALLOW_CPU="0", INGOT_SIMULATED_GPU="0")
    assert done.stderr == (f"sample: error: {NAME}: no device runs it here; it needs an NVIDIA GPU of "
                           "compute capability 8.0 or higher and its driver, or INGOT_ALLOW_CPU=1 for "
                           "the CPU\n")


def test_the_library_is_found_by_the_loader_and_beside_the_program(samples, model, tmp_path):
    assert model is not None
    plugin = library()
    done = start(samples / "sample", "my_model.onnx", "c.onnx", cwd=tmp_path, INGOT_ONNXRUNTIME="",
                 LD_LIBRARY_PATH=str(plugin.parent))
    assert done.returncode == 0, done.stderr
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").symlink_to(plugin.parent)
    shutil.copy(samples / "sample", tmp_path / "bin/sample")
    done = start(tmp_path / "bin/sample", "my_model.onnx", "c.onnx", cwd=tmp_path,
                 INGOT_ONNXRUNTIME="")
    assert done.returncode == 0, done.stderr


# The listings of the provider's documentation.
LISTINGS = re.findall(r"^```(?:c\+\+|cpp)\n(.*?)^```", page("000"), re.M | re.S)
CHANGES = [
    (r"session_options\.AppendExecutionProvider\(onnxruntime::kNvTensorRTRTXExecutionProvider, (.*)\);",
     r"ingot::appendExecutionProvider(env, session_options, \1);"),
    (r"api\.SessionOptionsAppendExecutionProvider\(session_options, "
     r"onnxruntime::kNvTensorRTRTXExecutionProvider, (.*)\);",
     r"ingot::appendExecutionProvider(env, session_options, \1);"),
]
# Objects that a listing assumes, by a word that shows that it does not make them itself.
GIVEN = [("Ort::Env env", 'Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "listing");'),
         ("Ort::SessionOptions session_options",
          "Ort::SessionOptions session_options; ingot::appendExecutionProvider(env, session_options);")]
HEAD = r"""
#include "ingot_onnxruntime.h"
#include <cstdio>
// Functions of CUDA and of another compiler, for the listing that uses them.
using cudaStream_t = struct CUstream_st*;
[[maybe_unused]] static int cudaStreamCreate(cudaStream_t* stream) { *stream = nullptr; return 0; }
template <size_t size, class... T> void sprintf_s(char (&out)[size], const char* form, T... values) {
    std::snprintf(out, size, form, values...);
}
int main(int argc, char** argv) try {
    if (argc != 3) { return 2; }
    [[maybe_unused]] const char* const model_path = argv[1];
    [[maybe_unused]] const char* const input_model_path = argv[1];
    [[maybe_unused]] const char* const compile_model_path = argv[2];
"""
TAIL = r"""
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
"""
REAL = os.environ.get("ONNXRUNTIME_INCLUDE_DIR", "")


def program_of(listing, head=HEAD, ready=""):
    """The listing as a program, with at most one line changed."""
    changed = listing
    for old, new in CHANGES:
        changed = re.sub(old, new, changed)
    lines = list(zip(listing.splitlines(), changed.splitlines()))
    assert sum(a != b for a, b in lines) <= 1
    if "AppendExecutionProvider" in listing:
        assert changed != listing
    given = "\n".join(text for word, text in GIVEN if word not in listing)
    checks = "if (status != nullptr) { Ort::ThrowOnError(status); }" if "OrtStatus*" in listing else ""
    if "Ort::Status status" in listing:
        checks = "if (!status.IsOK()) { throw std::runtime_error(status.GetErrorMessage()); }"
    return head + ready + given + "\n" + changed + checks + TAIL


@pytest.mark.skipif(not LISTINGS, reason=f"no spec/000 in {SHARED}: its C++ listings were NOT compiled")
@pytest.mark.parametrize("listing", LISTINGS, ids=range(len(LISTINGS)))
def test_listing_compiles_and_runs(listing, model, tmp_path):
    assert model is not None
    source = tmp_path / "listing.cpp"
    source.write_text(program_of(listing))
    compile_program(source, tmp_path / "listing", "-Wall", "-Wno-unused", "-Wno-format")
    context = tmp_path / "ctx.onnx"
    if "compile_model_path" in listing and "CompileModel" not in listing:
        shutil.copy(tmp_path / "my_model.onnx", context)
    done = start(tmp_path / "listing", tmp_path / "my_model.onnx", context, cwd=tmp_path)
    if "kDeviceId" in listing:  # it names the second GPU, which is not here
        assert done.stderr == (f"{NAME}: there is no device with device_id 1, expected one of 0\n")
        assert done.returncode == 1
        return
    assert done.returncode == 0, done.stderr
    if "CompileModel" in listing:
        check_context(model, context, 0)


@pytest.mark.skipif(not LISTINGS, reason=f"no spec/000 in {SHARED}: its C++ listings were NOT compiled")
def test_the_document_has_the_listings_that_this_knows():
    assert len(LISTINGS) == 6
    assert sum("AppendExecutionProvider" in listing for listing in LISTINGS) == 3


@pytest.mark.skipif(not LISTINGS, reason=f"no spec/000 in {SHARED}: its C++ listings were NOT compiled")
@pytest.mark.skipif(not REAL, reason="ONNXRUNTIME_INCLUDE_DIR is not set: the C++ listings were NOT "
                                     "compiled with ONNX Runtime's own headers")
@pytest.mark.parametrize("listing", LISTINGS, ids=range(len(LISTINGS)))
def test_listing_compiles_with_onnxruntimes_own_headers(listing, tmp_path):
    source = tmp_path / "listing.cpp"
    # Its library is opened when the program runs, as without its headers.
    source.write_text(program_of(
        listing, "#define ORT_API_MANUAL_INIT\n#include <onnxruntime_cxx_api.h>\n" + HEAD,
        "Ort::InitApi(&ingot::onnxRuntimeApi(ingot::openOnnxRuntime()));\n"))
    compile_program(source, tmp_path / "listing", f"-isystem{REAL}", "-Wno-unused", "-Wno-format")


def names_of(header):
    return dict(re.findall(r"constexpr const char\* (k\w+) =\s+\"(\w+)\";", header))


def test_names_of_options_are_options_of_the_provider():
    """The listings' names of options, and that the provider takes each."""
    names = names_of((REPOSITORY / "include/ingot/onnxruntime_names.h").read_text(encoding="utf-8"))
    known = re.findall(r"^INGOT_EP_OPTION\(\w+, (\w+),",
                       (REPOSITORY / "plugins/onnxruntime/options.def").read_text(), re.M)
    assert names.pop("kNvTensorRTRTXExecutionProvider") == NAME
    assert names.pop("kProfileIndex") == "nv_profile_index"  # of a run
    assert len(names) > 15 and set(names.values()) <= set(known)
    used = {name for listing in LISTINGS
            for name in re.findall(r"provider_option_names::(k\w+)", listing)}
    assert used <= set(names)


DECLARATIONS = [REPOSITORY / path for path in (
    "include/ingot/onnxruntime_types.h", "include/ingot/onnxruntime_declarations.h",
    "plugins/onnxruntime/abi_types.h", "plugins/onnxruntime/abi.h")]


def test_each_function_of_a_table_is_declared_once_with_its_slot():
    """Programs and the plugin share one table; each function in it has a static assertion of its slot."""
    texts = "".join(path.read_text() for path in DECLARATIONS)
    tables = re.findall(r"^struct (\w+) \{", texts, re.M)
    assert len(set(tables)) == len(tables) and {"OrtApi", "OrtCompileApi", "OrtEpApi", "OrtEp"} <= set(tables)
    for table in tables:
        body = texts[texts.index(f"struct {table} {{"):]
        declared = re.findall(r"\(\*(\w+)\)\(", body[:body.index("\n};")])
        slots = re.findall(rf"INGOT_SLOT\({table}, (\w+), \d+\)", texts)
        assert declared == slots or table == "OrtApiBase"


def compare_abi(folder, header):
    """The compiler's answer to the plugin's declarations beside a header that is given as ONNX Runtime's."""
    (folder / "onnxruntime_c_api.h").write_text(header)
    (folder / "a.cpp").write_text('#include "plugins/onnxruntime/abi.h"\n')
    return subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-DINGOT_COMPARE_ABI", "-I", folder, "-I", REPOSITORY,
                           "-I", REPOSITORY / "include", folder / "a.cpp"],
                          text=True, capture_output=True, check=False)


def test_declarations_are_compared_with_a_given_header(tmp_path):
    """-DONNXRUNTIME_INCLUDE_DIR: a slot or a number that differs does not compile. The plugin's own declarations stand
    in for ONNX Runtime's header, which no package has."""
    texts = [path.read_text() for path in DECLARATIONS]
    enumerators = re.findall(r"^    (O\w+) = -?\d+,", texts[0] + texts[2], re.M)
    assert len(enumerators) > 60 and all(f"INGOT_VALUE({name});" in texts[2] for name in enumerators)
    header = "#pragma once\n#include <cstddef>\n#include <cstdint>\n" + "".join(
        re.sub(r"^(#|INGOT_|static_assert|namespace|extern|} // namespace| {4}static_assert| {18}\").*\n", "", text,
               flags=re.M)
        for text in texts)
    done = compare_abi(tmp_path, header)
    assert done.returncode == 0, done.stderr
    moved = header.replace("void* unused_50[1];", "void* unused_50[2];")
    done = compare_abi(tmp_path, moved)
    assert "ONNX Runtime's header has OrtApi::GetTensorMutableData elsewhere" in done.stderr
    assert "OrtApi::GetErrorMessage" not in done.stderr
    done = compare_abi(tmp_path, header.replace("ORT_EP_FAIL = 11", "ORT_EP_FAIL = 12"))
    assert "static assertion failed" in done.stderr and "ORT_EP_FAIL" in done.stderr
