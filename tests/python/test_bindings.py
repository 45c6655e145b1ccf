# SPDX-License-Identifier: Apache-2.0
"""Everything that NVIDIA's newest Python bindings have is here: every class, base, method, parameter
name, default, property, enumerator and number, compared with the packages themselves, which are fetched
for it. They are imported beside empty libraries that only satisfy the loader: nothing of TensorRT runs.

What is left out, or differs, on purpose is in ABSENT with its reason; the list has to be true of both
sides."""
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from shim import package

package.find()

# Package, module, ours, the libraries that the loader asks for.
PACKAGES = {
    "tensorrt": ("tensorrt_cu13_bindings==11.4.0.106", "tensorrt_bindings", "tensorrt",
                 ["libnvinfer.so.11", "libnvinfer_plugin.so.11", "libnvonnxparser.so.11"]),
    "tensorrt_rtx": ("tensorrt_rtx_cu13_bindings==1.7.1.116", "tensorrt_rtx_bindings", "tensorrt_rtx",
                     ["libtensorrt_rtx.so.1", "libtensorrt_onnxparser_rtx.so.1"]),
    "tensorrt_lean": ("tensorrt_lean_cu13_bindings==11.4.0.106", "tensorrt_lean_bindings", "tensorrt_lean",
                      ["libnvinfer_lean.so.11"]),
    "tensorrt_dispatch": ("tensorrt_dispatch_cu13_bindings==11.4.0.106", "tensorrt_dispatch_bindings",
                          "tensorrt_dispatch", ["libnvinfer_dispatch.so.11"]),
}
FUNCTIONS = ["createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL",
             "createNvOnnxParser_INTERNAL", "createNvOnnxParserRefitter_INTERNAL", "getBuilderPluginRegistry",
             "getNvOnnxParserVersion", "getPluginRegistry", "initLibNvInferPlugins"]
FACTS = package.SHIM / "binding_facts.py"

LEFT_OVER = "a helper of the package's own __init__, not part of its API"
AOT = "kernels compiled ahead to PTX fit one architecture; add_cuda_source_layer() takes a kernel's text"
GENERATOR = "a helper class of the bindings' generator, which no method takes or gives"
# Names (or parts of names, by the pattern's end), with the reason why they are missing or differ.
ABSENT = {
    r"common_(enter|exit)|attr|value": LEFT_OVER,
    r"FallbackString|NodeIndices|IPluginV2DynamicExtBase(\..*)?": GENERATOR,
    r"IPluginV2DynamicExt\(IPluginV2DynamicExtBase\)": GENERATOR,
    r"PluginField\.__init__": "takes text; theirs a class that text becomes",
    r"ISymExprs?|KernelLaunchParams|PluginArg(Data)?Type|IPluginV3QuickAOTBuild": AOT,
    r"plugin\.(aot_impl|KernelLaunchParams|SymInt(8|16|32)|SymInt?Exprs|SymExprs)": AOT,
    r"plugin\.(SizeTensor)?ShapeExpr\(SymInt32\)|plugin\.ShapeExprs\(SymExprs\)": AOT,
    r"IPluginV2Ext\.(attach_to_context|detach_from_context|configure_plugin)":
        "of plugins without dynamic shapes, which are not run",
    r"IOptimizationProfile\.profile_stream": "of IBuilderConfig, where it is; here by a slip of theirs",
    r"I(Stream(ReaderV2\.read|Writer\.write))":
        "theirs is the C++ method with a capsule; classes of Python define read(num_bytes, stream) and "
        "write(data), as their documentation has it",
    r"INetworkDefinition\.add_plugin": "one parameter takes a tuple or a function: its name is tuple",
    r"IPluginCreatorV3Quick\.create_plugin": "declared for creators of libraries, which give NativePluginV3",
    r"IPluginV2(Dynamic)?Ext\.clone|IPluginCreator\.deserialize_plugin":
        "declared with the base class, gives objects of the class itself",
    r"IPluginV2DynamicExt\.__init__": "copies are made by clone()",
    r"IPluginV3OneBuildV2\.get_aliased_input": "theirs is declared without the object itself",
    r"IRuntimeConfig\.set_runtime_cache": "theirs has None for a default, which it cannot take",
}


def library(folder, name):
    """A shared library with these functions, which do nothing."""
    text = "".join(f"void *{function}(void) {{ return 0; }}\n" for function in FUNCTIONS)
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / name, f"-Wl,-soname,{name}"],
                   input=text, text=True, check=True)


def facts_of(module, path, alias):
    done = subprocess.run([sys.executable, FACTS, module, "as", alias], text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=PACKAGES)
def pair(request, tmp_path_factory):
    """The facts of their module and of ours."""
    wanted, module, ours, libraries = PACKAGES[request.param]
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: the bindings were NOT compared")
    folder = tmp_path_factory.mktemp("bindings")
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
                           "--no-deps", "--only-binary", ":all:", "-d", folder, wanted],
                          text=True, capture_output=True, timeout=300, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        pytest.skip(f"{wanted} could not be had: the bindings were NOT compared: "
                    f"{done.stderr.strip().splitlines()[-1:]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    for name in libraries:
        library(folder / module, name)
    alias = request.param
    return facts_of(module, [folder], alias), facts_of(ours, [package.folder(), package.SHIM], "nothing")


# --- comparing -----------------------------------------------------------------------------------

SAME = {"SupportsInt": "int", "SupportsFloat": "float", "PluginFieldCollection_": "PluginFieldCollection"}
SCALARS = {"int", "bool", "str", "float"}


def names_in(text):
    return {SAME.get(word, word) for word in re.findall(r"[A-Za-z]\w*", text)}


def misfit(mine, theirs, known):
    """The reason why a call valid for theirs is invalid for mine; "" for none."""
    (own, own_result), (their, their_result) = mine, theirs
    takes_all = any(name.startswith("*") for name, _, _ in own)
    own = [one for one in own if not one[0].startswith("*")]
    if len(own) < len(their) and not takes_all:
        return f"takes {len(own)} of {len(their)} parameters"
    for (name, kind, optional), (their_name, their_kind, their_optional) in zip(own, their):
        is_named = not re.fullmatch(r"arg\d*|in", their_name)
        if is_named and name != their_name:
            return f"parameter {their_name} is called {name}"
        if their_optional and not optional:
            return f"parameter {name} has no default"
        needed = names_in(their_kind) & known
        if needed and kind not in ("", "object") and not needed <= names_in(kind):
            return f"parameter {name} is {kind}, theirs {their_kind}"
    for name, _, optional in own[len(their):]:
        if not optional:
            return f"parameter {name} has no default"
    needed = names_in(their_result) & (known | SCALARS)
    return f"returns {own_result}, theirs {their_result}" \
        if needed and own_result not in ("", "object") and not needed <= names_in(own_result) else ""


def call_differences(name, mine, theirs, known):
    for one in theirs:
        reasons = [misfit(own, one, known) for own in mine]
        if reasons and "" not in reasons:
            yield name, reasons[0]


def member_differences(name, mine, theirs, known):
    if theirs["kind"] == "method" and name.endswith("__init__") and not theirs["overloads"]:
        return  # it cannot be made
    if mine is None:
        yield name, "is missing"
    elif theirs["kind"] == "method":
        if mine["kind"] != "method":
            yield name, "is no method"
        else:
            yield from call_differences(name, mine["overloads"], theirs["overloads"], known)
    elif theirs["kind"] in ("property", "value"):
        if mine["kind"] not in ("property", "value"):
            yield name, "is a method"
        elif theirs["reads"] and not mine["reads"]:
            yield name, "cannot be read"
        elif theirs["writes"] and not mine["writes"]:
            yield name, "cannot be written"


def class_differences(name, mine, theirs, known):
    for base in set(theirs["bases"]) - set(mine["bases"]):
        yield f"{name}({base})", "is no subclass"
    for key, number in theirs.get("enumerators", {}).items():
        found = mine.get("enumerators", {}).get(key)
        if found != number:
            yield f"{name}.{key}", f"is {found}, theirs {number}"
    for key, one in theirs.get("members", {}).items():
        yield from member_differences(f"{name}.{key}", mine.get("members", {}).get(key), one, known)


def differences(theirs, ours):
    """(name, difference) for everything that breaks a program written for theirs."""
    for prefix, module in theirs.items():
        own = ours.get(prefix, {"classes": {}, "functions": {}, "values": []})
        known = set(module["classes"])
        for name, one in module["classes"].items():
            if name not in own["classes"]:
                yield prefix + name, "is missing"
            else:
                yield from class_differences(prefix + name, own["classes"][name], one, known)
        for name, calls in module["functions"].items():
            if name not in own["functions"]:
                yield prefix + name, "is missing"
            else:
                yield from call_differences(prefix + name, own["functions"][name], calls, known)
        for name in module["values"]:
            if name not in own["values"]:
                yield prefix + name, "is missing"


found_anywhere = set()


def test_nothing_is_missing_or_otherwise(pair):
    theirs, ours = pair
    assert len(theirs[""]["classes"]) > 90
    surprises = {}
    for name, how in differences(theirs, ours):
        reasons = [pattern for pattern in ABSENT if re.fullmatch(pattern, name)]
        found_anywhere.update(reasons)
        if not reasons:
            surprises[name] = how
    assert not surprises


def test_what_is_said_to_be_left_out_is():
    if not found_anywhere:
        pytest.skip("the bindings were NOT compared")
    assert set(ABSENT) - found_anywhere == set()


def test_the_comparison_sees_what_differs():
    theirs = {"": {"classes": {
        "A": {"bases": [], "members": {
            "f": {"kind": "method", "overloads": [[[["a", "SupportsInt", False], ["b", "A", True]], "A"]]},
            "p": {"kind": "property", "reads": True, "writes": True},
            "q": {"kind": "property", "reads": True, "writes": False}}},
        "E": {"bases": ["A"], "enumerators": {"X": 1, "Y": 2}}}, "functions": {"g": []}, "values": ["v"]}}
    assert not list(differences(theirs, theirs))
    ours = json.loads(json.dumps(theirs))
    changes = [
        (["classes", "A", "members", "f", "overloads", 0, 0, 1, 0], "c", "A.f"),
        (["classes", "A", "members", "f", "overloads", 0, 0, 1, 2], False, "A.f"),
        (["classes", "A", "members", "f", "overloads", 0, 0, 1, 1], "B", "A.f"),
        (["classes", "A", "members", "f", "overloads", 0, 1], "None", "A.f"),
        (["classes", "A", "members", "p", "writes"], False, "A.p"),
        (["classes", "A", "members", "q"], None, "A.q"),
        (["classes", "E", "enumerators", "Y"], 3, "E.Y"),
        (["classes", "E", "bases"], [], "E(A)"),
        (["functions"], {}, "g"), (["values"], [], "v"),
    ]
    for path, value, name in changes:
        changed = json.loads(json.dumps(ours))
        place = changed[""]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        assert [found for found, _ in differences(theirs, changed)] == [name]


def test_modules_that_only_run_engines_have_no_builder():
    text = package.run("import tensorrt_lean as lean, tensorrt_dispatch as dispatch\n"
                       "for m in (lean, dispatch):\n"
                       "    print(hasattr(m, 'Builder'), hasattr(m, 'INetworkDefinition'), hasattr(m, 'OnnxParser'),\n"
                       "          m.__version__, m.Runtime(m.Logger()).engine_header_size > 0)\n")
    assert text == "False False False 11.1.0.0 True\n" * 2
