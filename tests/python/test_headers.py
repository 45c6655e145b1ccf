# SPDX-License-Identifier: Apache-2.0
"""The public headers compile: each alone, and with programs as users write them, in both standards,
for both products, with g++ and clang, beside CUDA's own headers."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
PROGRAMS = sorted((ROOT / "tests/api/programs").glob("*.cpp"))
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
OLD = {"gen10", "plugin_v2"}  # they use marked names of an older generation
ENTERPRISE = "-DINGOT_TENSORRT_ENTERPRISE"
# Compiler, standard, product: each of them with each other one somewhere.
FORMS = [("g++", "c++17", None), ("g++", "c++20", ENTERPRISE),
         ("clang++", "c++17", ENTERPRISE), ("clang++", "c++20", None)]


def compiler(name):
    found = shutil.which(name) or shutil.which(f"{name}-14")
    if found is None:
        pytest.skip(f"NOT TESTED: there is no {name} here")
    return found


def errors(name, standard, source, *options):
    """The compiler's messages for a file, or for text."""
    is_file = isinstance(source, pathlib.Path)
    command = [compiler(name), f"-std={standard}", "-x", "c++", "-fsyntax-only", f"-I{INCLUDE}",
               *WARNINGS, *filter(None, options), str(source) if is_file else "-"]
    done = subprocess.run(command, input=None if is_file else source, capture_output=True,
                          text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr), done.stderr
    return done.stderr


def cuda_include():
    for root in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if root and (pathlib.Path(root) / "include/cuda_runtime_api.h").exists():
            return f"{root}/include"
    pytest.skip("NOT TESTED: CUDA's headers are not here (set CUDA_HOME)")


@pytest.mark.parametrize("name, standard, product", FORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_compiles(program, name, standard, product):
    quiet = "-DINGOT_NO_DEPRECATION_WARNINGS" if program.stem in OLD else None
    assert not errors(name, standard, program, product, quiet)


@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles_alone_and_twice(header):
    line = f'#include "{header}"\n'
    name, standard, product = FORMS[HEADERS.index(header) % len(FORMS)]
    assert not errors(name, standard, line + line, product)


@pytest.mark.parametrize("order", ["before", "after", "both sides"])
def test_headers_stand_beside_cudas(order):
    ours = '#include "NvInfer.h"\n#include "NvOnnxParser.h"\n#include "ingot.h"\n'
    cuda = "#include <cuda_runtime_api.h>\n"
    use = """
        bool enqueue(nvinfer1::IExecutionContext& context, cudaStream_t stream, cudaEvent_t event);
        bool enqueue(nvinfer1::IExecutionContext& context, cudaStream_t stream, cudaEvent_t event) {
            return context.setInputConsumedEvent(event) && context.enqueueV3(stream) &&
                   cudaStreamSynchronize(stream) == cudaSuccess;
        }
    """
    text = {"before": cuda + ours, "after": ours + cuda,
            "both sides": cuda + ours + cuda + ours}[order] + use
    assert not errors("g++", "c++17", text, "-isystem", cuda_include())
    assert not errors("clang++", "c++20", text, "-isystem", cuda_include())


def test_no_header_needs_cudas():
    for header in HEADERS:
        text = (INCLUDE / header).read_text(encoding="utf-8")
        assert not re.search(r"#\s*include\s*<(cuda|nccl)", text), header


@pytest.mark.parametrize("call, meant", [
    ("bool f(nvinfer1::IBuilder& b); bool f(nvinfer1::IBuilder& b) "
     "{ return b.platformHasFastFp16(); }", "platformHasFastFp16"),
    ("auto const flag = nvinfer1::BuilderFlag::kFP16;", "kFP16"),
    ("auto const flag = nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH;",
     "kEXPLICIT_BATCH"),
])
def test_names_of_older_generations_are_marked(call, meant):
    said = errors("g++", "c++17", f'#include "NvInfer.h"\n{call}\n')
    assert meant in said and "deprecated" in said
    assert not errors("g++", "c++17", f'#include "NvInfer.h"\n{call}\n',
                      "-DINGOT_NO_DEPRECATION_WARNINGS", "-Wno-unused-variable")


@pytest.mark.parametrize("wrong, why", [
    ("void f(nvinfer1::ITensor* t); void f(nvinfer1::ITensor* t) { delete t; }", "protected"),
    ("struct L : nvinfer1::ILogger {}; L l;", "abstract|pure"),
    ("nvinfer1::DataType t = 1;", "convert|cannot init"),
    ("void f(nvinfer1::IHostMemory& m); void f(nvinfer1::IHostMemory& m) { auto c = m; }",
     "deleted|abstract"),
])
def test_misuse_does_not_compile(wrong, why):
    for name in ("g++", "clang++"):
        assert re.search(why, errors(name, "c++17", f'#include "NvInfer.h"\n{wrong}\n'))


@pytest.mark.parametrize("pattern, number", [
    (r"define TRT_MAJOR_RTX * +([0-9]+)", "1"),
    (r"define TRT_MINOR_RTX * +([0-9]+)", "6"),
    (r"define TRT_MAJOR_ENTERPRISE * +([0-9]+)", "11"),
    (r"define NV_ONNX_PARSER_MAJOR * +([0-9]+)", "0"),
])
def test_build_scripts_find_versions_in_the_text(pattern, number):
    text = "".join((INCLUDE / name).read_text(encoding="utf-8")
                   for name in ("NvInferVersion.h", "NvOnnxParser.h"))
    assert re.findall(pattern, text) == [number]


def test_every_class_is_described():
    """Doxygen text stands before each class, struct and enumeration that has a body."""
    bare = []
    for header in HEADERS:
        lines = (INCLUDE / header).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if not re.match(r"(class|struct) \w+[^;]*\{$", line):
                continue
            before = lines[number - 1].strip()
            if not before.startswith("///") and not re.match(r"template|struct EnumMax", before):
                bare.append(f"{header}:{number + 1}: {line}")
    assert not bare


def documented_classes():
    """Class -> (the text before it and before its bases, where it stands), but for values."""
    found = {}
    for header in HEADERS:
        lines = (INCLUDE / header).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            match = re.match(r"class (\w+)(?: final)?(?: : ([\w:, ]+))? \{$", line)
            if match:
                first = number
                while re.match(r"///|template|TRT_", lines[first - 1]):
                    first -= 1
                bases = re.findall(r"\w+(?=,|$)", match[2] or "")
                found[match[1]] = ("\n".join(lines[first:number]), bases, f"{header}:{number + 1}")

    def text(name):
        own, bases, _ = found.get(name, ("", [], ""))
        return own + "".join(text(base) for base in bases)
    values = {"Dims64", "Dims2", "DimsHW", "Dims3", "Dims4", "Weights", "InterfaceInfo", "DimsExprs",
              "PluginField", "PluginFieldCollection"}
    return {name: (text(name), place) for name, (_, _, place) in found.items() if name not in values}


def test_every_class_tells_of_lifetime_threads_and_errors():
    """Its text or that of a class that it derives from."""
    classes = documented_classes()
    assert len(classes) > 100
    for name, (text, place) in classes.items():
        for what, words in (("lifetime", r"Lifetime|life of|deletes|[Bb]elongs to|valid |outlives"),
                            ("threads", r"[Tt]hread"), ("errors", r"[Ee]rror|fails?\b|nullptr")):
            assert re.search(words, text), f"{place}: {name} does not tell of {what}"


def virtual_methods(text):
    """Class -> names of the virtual methods that it introduces, in the order of declaration."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for match in re.finditer(r"\nclass (\w+)(?: final)?(?: : [^{;]*)? \{", text):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = re.sub(r"\{[^{}]*\}", ";", text[match.end():end - 1])
        body = re.sub(r"\{[^{}]*\}", ";", body)
        statements = [part for part in body.split(";") if re.search(r"\bvirtual\b", part)]
        found[match.group(1)] = [re.search(r"(~?\w+)\(", part).group(1) for part in statements
                                 if "~" not in part]
    return found


def test_methods_are_added_at_the_end_only():
    """Programs call virtual methods by their place: what surface.def has keeps its order."""
    listed = {}
    for line in (ROOT / "tests/api/surface.def").read_text(encoding="utf-8").splitlines():
        row = re.match(r"METHOD\(\w+::(\w+), (\w+), ", line)
        if row:
            listed.setdefault(row.group(1), []).append(row.group(2))
    checked = 0
    for header in HEADERS:
        classes = virtual_methods((INCLUDE / header).read_text(encoding="utf-8"))
        for name, declared in classes.items():
            if name in listed:
                # Inline overloads of older generations stand behind the virtual ones.
                known = [method for place, method in enumerate(listed[name])
                         if listed[name][:place].count(method) < declared.count(method)]
                assert declared[:len(known)] == known, f"{header}: {name}"
                checked += len(known)
    assert checked > 850
