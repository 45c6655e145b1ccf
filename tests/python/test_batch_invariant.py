# SPDX-License-Identifier: Apache-2.0
"""--batchInvariant: a row's results have the same bits alone and beside others, whatever command runs the engine."""
import json

import numpy as np
import pytest
from onnx import helper, numpy_helper

import ingot_command as ingot
from ingot_command import fails
from small_models import model_file, value


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("invariant")
    random = np.random.default_rng()
    weights = numpy_helper.from_array(random.standard_normal((700, 300)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Softmax", ["m"], ["y"]),
             helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=0)]
    path = model_file(folder / "m.onnx", nodes, [value("x", ["n", 700])], [value("y", ["n", 300]), value("mean", ["n"])],
                      initializers=[weights])
    rows = random.standard_normal((64, 700)).astype(np.float32)
    for first, last in ((0, 64), (5, 6), (3, 20)):
        np.save(folder / f"x{first}.npy", rows[first:last])
    return path


def results(path, model, first, *options):
    folder = model.parent / f"out{first}"
    ingot.call("run", path, f"--input=x={model.parent / f'x{first}.npy'}", f"--save-outputs={folder}", "--device=cpu", *options)
    return np.load(folder / "y.npy"), np.load(folder / "mean.npy")


@pytest.mark.parametrize("built", [True, False])
def test_rows_have_the_same_bits_alone_and_in_any_batch(model, built):
    path, options = model, ["--batchInvariant"]
    if built:
        path, options = model.parent / "m.engine", []
        ingot.call("build", model, "-o", path, "--batchInvariant")
        assert "batch_invariant: on" in ingot.call("inspect", path)
    whole = results(path, model, 0, *options)
    for first, count in ((5, 1), (3, 17)):
        part = results(path, model, first, *options)
        for got, expected in zip(part, whole):
            assert np.array_equal(got.view(np.uint32), expected[first:first + count].view(np.uint32))


def test_an_engine_obeys_what_it_was_built_for(model):
    path = model.parent / "plain.engine"
    ingot.call("build", model, "-o", path)
    assert "batch_invariant" not in ingot.call("inspect", path)
    _, text = fails("run", path, "--batchInvariant")
    assert (f"--batchInvariant: {path} is an engine, which obeys what it was built for; give the option to the build") in text


@pytest.mark.parametrize("option", ["--batchInvariant", "--noTF32"])
def test_the_kernels_for_a_gpu_are_those_of_invariant_runs(model, option):
    """One row takes the product that many rows take, and another where the build did not ask for that."""
    engine = model.parent / "k.engine"
    ingot.call("build", model, "-o", engine, option, "--minShapes=x:1x700", "--optShapes=x:8x700", "--maxShapes=x:512x700")
    one, many = ({kernel["entry"] for kernel in json.loads(ingot.call(
        "inspect", engine, "--kernels", "--for=90", "--noCompile", "--json", f"--shapes=x:{rows}x700"))["kernels"]
        if kernel["entry"].startswith("gem")} for rows in (1, 512))
    assert len(one) == len(many) == 1
    assert (one == many) == (option == "--batchInvariant"), (one, many)
