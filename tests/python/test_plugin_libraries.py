# SPDX-License-Identifier: Apache-2.0
"""Libraries of plugins in the command: nodes of models are theirs, engines need them again, tactics are timed.

Also engines that another library of the API runs (--useRuntime)."""
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import ingot_command as ingot
from trtexec_command import QUICK, lines_of, run

BUILD = ingot.binary().parent
ASKED = BUILD / "tests" / "libplugins_asked.so"  # has getCreators()
REGISTERED = BUILD / "tests" / "libplugins_registered.so"  # registers itself as it is opened
X = np.array([[-1, 2, 3], [4, 5, -6]], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"),
             helper.make_node("Offset", ["r"], ["o"], name="offset", domain="my.domain", by=0.5),
             helper.make_node("Add", ["o", "r"], ["y"], name="sum")]
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "offsets", io[:1], io[1:]),
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)])
    model.ir_version = 9
    onnx.save(model, folder / "model.onnx")
    X.tofile(folder / "x.bin")
    (2 * np.maximum(X, 0) + 0.5).astype(np.float32).tofile(folder / "y.bin")
    return folder


SHAPES = ("--minShapes=x:1x3", "--optShapes=x:2x3", "--maxShapes=x:4x3")
CHECKED = ("--shapes=x:2x3", "--loadInputs=x:x.bin", "--loadRefOutputs=y:y.bin", "--accuracyThreshold=1e-7",
           "--accuracyAlgorithm=l1", *QUICK)


@pytest.mark.parametrize("option", [f"--staticPlugins={REGISTERED}", f"--plugins={REGISTERED}",
                                    f"--dynamicPlugins={ASKED}", f"--staticPlugins={ASKED}"])
def test_nodes_of_a_model_are_served_and_engines_too(option, folder):
    text = run("--onnx=model.onnx", "--saveEngine=model.engine", *SHAPES, option, *CHECKED, folder=folder)
    assert "&&&& PASSED" in text
    text = run("--loadEngine=model.engine", option, "--dumpProfile", *CHECKED, folder=folder)
    assert "&&&& PASSED" in text and re.search(r"\boffset$", text, re.MULTILINE), text


def test_without_the_library_the_error_says_what_to_give(folder):
    run("--onnx=model.onnx", "--saveEngine=alone.engine", *SHAPES, f"--dynamicPlugins={ASKED}", "--skipInference",
        folder=folder)
    errors = lines_of(run("--loadEngine=alone.engine", *QUICK, folder=folder, code=1), "E")
    assert len(errors) == 1 and "plugin 'Offset' version '1'" in errors[0]
    assert errors[0].endswith("; the command takes a library as --dynamicPlugins=FILE")
    text = run("--onnx=model.onnx", *SHAPES, folder=folder, code=1)
    assert "offset (my.domain.Offset, opset 1): Ingot does not know this operator" in text
    assert lines_of(run("--onnx=model.onnx", "--dynamicPlugins=none.so", folder=folder, code=1), "E")[0].startswith(
        "library 'none.so' cannot be loaded: ")
    lean = BUILD / "libingot_lean.so"
    error = lines_of(run("--onnx=model.onnx", f"--dynamicPlugins={lean}", folder=folder, code=1), "E")[0]
    assert error == f"library '{lean}' has neither getCreators() nor getPluginCreators()"


def test_the_other_commands_take_them_too(folder):
    option = f"--dynamicPlugins={ASKED}"
    ingot.call("build", folder / "model.onnx", "-o", folder / "portable.engine", option, *SHAPES)
    # The first tactic of this plugin cannot run, and a build for any device times none.
    with pytest.raises(RuntimeError, match=r"enqueue\(\) returned 1, expected 0"):
        ingot.run(folder / "portable.engine", {"x": X}, folder / "run", extra=[option])
    run("--onnx=model.onnx", option, *SHAPES, "--saveEngine=built.engine", "--device=cpu", "--skipInference",
        folder=folder)
    for model, shapes in (("model.onnx", SHAPES), ("built.engine", ())):
        outputs = ingot.run(folder / model, {"x": X}, folder / "run", extra=[option, *shapes])
        assert np.array_equal(outputs["y"], 2 * np.maximum(X, 0) + 0.5)
    assert "plugin" in ingot.call("inspect", folder / "model.onnx", option)
    with pytest.raises(RuntimeError, match="the command takes a library as --dynamicPlugins=FILE"):
        ingot.run(folder / "built.engine", {"x": X}, folder / "run")


def test_tactics_are_kept_in_the_timing_cache(folder):
    options = ("--onnx=model.onnx", *SHAPES, f"--dynamicPlugins={ASKED}", "--timingCacheFile=tactics.txt", "--device=cpu", *CHECKED)
    error = lines_of(run(*options, "--errorOnTimingCacheMiss", folder=folder, code=1), "E")[0]
    assert "the timing cache has no entry for the tactics of plugin 'Offset' version '1'" in error
    run(*options, folder=folder)
    assert "plugin tactic 2" in (folder / "tactics.txt").read_text()
    run(*options, "--errorOnTimingCacheMiss", folder=folder)


@pytest.mark.parametrize("runtime", ["lean", "dispatch"])
def test_other_libraries_run_engines(runtime, folder):
    options = ("--onnx=model.onnx", *SHAPES, f"--dynamicPlugins={ASKED}", f"--useRuntime={runtime}", *CHECKED)
    text = run(*options, "--dumpProfile", "--dumpLayerInfo", "--dumpOutput", "--infStreams=2", folder=folder)
    assert re.search(rf"The engine is run by \S*libingot_{runtime}.so of Ingot \d", text), text
    assert "&&&& PASSED" in text and re.search(r"\boffset$", text, re.MULTILINE)
    assert "=== Performance summary ===" in text
    lean = BUILD / "libingot_lean.so"
    text = run(*options, f"--leanDLLPath={lean}", "--tune=full", folder=folder)
    assert f"--tune has no effect with --useRuntime={runtime}: that library runs the engine with its own defaults" in \
        lines_of(text, "W")
    error = lines_of(run(*options, "--leanDLLPath=none.so", folder=folder, code=1), "E")[0]
    assert "none.so" in error and "give the path of a libingot_lean.so" in error
    (np.fromfile(folder / "y.bin", np.float32) + 1).tofile(folder / "wrong.bin")
    run(*[o.replace("y:y.bin", "y:wrong.bin") for o in options], folder=folder, code=1)


def test_plugins_may_take_the_place_of_what_is_known(folder):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
    function = helper.make_function("my.domain", "Offset", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])],
                                    opsets[:1], attributes=["by"])
    nodes = [helper.make_node("Offset", ["x"], ["y"], domain="my.domain", by=0.25)]
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", io[:1], io[1:]), opset_imports=opsets, functions=[function])
    model.ir_version = 9
    onnx.save(model, folder / "function.onnx")
    option = f"--dynamicPlugins={ASKED}"
    first = ingot.run(folder / "function.onnx", {"x": X}, folder / "known", extra=[option])
    assert np.array_equal(first["y"], -X)
    other = ingot.run(folder / "function.onnx", {"x": X}, folder / "taken", extra=[option, "--enablePluginOverride"])
    assert np.array_equal(other["y"], X + 0.25)


def test_the_command_shows_plugin_libraries_what_they_call():
    symbols = subprocess.run(["nm", "-D", "--defined-only", ingot.binary()], text=True, capture_output=True,
                             check=True).stdout
    for name in ("getPluginRegistry", "getLogger", "ingotRegisterHostKernel"):
        assert re.search(rf"\bT {name}$", symbols, re.MULTILINE), name
