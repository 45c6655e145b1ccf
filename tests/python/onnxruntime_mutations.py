# SPDX-License-Identifier: Apache-2.0
"""A worker that loads mutated compiled models: onnxruntime_mutations.py FIRST COUNT PLACE. Each number
is one mutation, always the same. PLACE is a file that holds the number at work, for a process that
dies; the worker exits with 1 and a text for a result that is wrong."""
import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper

import onnxruntime_plugin as plugin

X = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)


def source(seed):
    rng = np.random.default_rng(seed)
    return plugin.model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
         helper.make_node("Softmax", ["r"], ["y"])],
        {"x": (1, ["n", 16])}, {"y": (1, ["n", 24])},
        {"w": rng.standard_normal((16, 24)).astype(np.float32)})


def compiled(seed, entries=None):
    made = plugin.onnxruntime.ModelCompiler(
        plugin.session_options(entries=entries), source(seed).SerializeToString(),
        embed_compiled_data_into_model=True)
    return onnx.load_model_from_string(made.compile_to_bytes())


def attributes(model):
    return {a.name: a for a in model.graph.node[0].attribute}


def changed(rng, data, other):
    """Bytes like `data`, damaged in one of seven ways."""
    out = bytearray(data)
    at = int(rng.integers(len(out)))
    size = int(rng.integers(1, 64))
    way = rng.integers(7)
    if way == 0:
        out[at] ^= 1 << int(rng.integers(8))
    elif way == 1:
        out[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
    elif way == 2:
        del out[at:]
    elif way == 3:
        del out[at:at + size]
    elif way == 4:
        out[at:at] = rng.bytes(size)
    elif way == 5:
        out[at:at + size] = rng.bytes(len(out[at:at + size]))
    else:  # a part of another's
        out[at:at + 4 * size] = other[at:at + 4 * size]
    return bytes(out)


def expect(session, wanted):
    """The result, if there is one, is the right one."""
    try:
        got, = session.run(None, {"x": X})
    except Exception:
        return
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        raise AssertionError(f"got {got}, expected {wanted}")


def mutate(number, models, wanted):
    """Loads one mutation; whatever changes the engine or the table of a bound context is refused."""
    rng = np.random.default_rng(number)
    kind = number % 4
    model = onnx.ModelProto()
    model.CopyFrom(models[kind % 2])
    own, others = attributes(model), attributes(models[2])
    if kind >= 2:  # bound to nothing: the reader of engines has to find the damage
        own["notes"].s = b""
    engine, table = own["ep_cache_context"], own.get("ep_refit_table")
    target = table if table is not None and rng.integers(3) == 0 else engine
    is_whole = rng.integers(8) == 0  # ONNX Runtime reads that damage before it asks providers
    if is_whole:
        data = changed(rng, model.SerializeToString(), models[2].SerializeToString())
        is_bound = False
    else:
        before = target.s
        target.s = changed(rng, before, others["ep_cache_context"].s)
        is_bound = kind < 2 and target.s != before
        data = model.SerializeToString()
    try:
        session = plugin.onnxruntime.InferenceSession(data, OPTIONS, enable_fallback=False)
    except Exception as e:
        assert str(e) or is_whole, f"an error without a text: {e!r}"
        return "refused"
    assert not is_bound, "a damaged engine was loaded"
    if target is engine and kind >= 2:
        expect(session, wanted)
    return "loaded"


if __name__ == "__main__":
    first, count, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    folder = pathlib.Path(place).parent
    onnx.save(source(0), folder / "source.onnx")
    OPTIONS = plugin.session_options(entries={
        "ep.context_source_model_path": str(folder / "source.onnx")}, whole=False)
    OPTIONS.log_severity_level = 4
    OPTIONS.intra_op_num_threads = 1
    contexts = [compiled(0), compiled(0, {"ep.enable_weightless": "1"}), compiled(1)]
    right, = plugin.onnxruntime.InferenceSession(
        contexts[0].SerializeToString(), OPTIONS, enable_fallback=False).run(None, {"x": X})
    file = os.open(place, os.O_RDWR | os.O_CREAT)
    ends = {"refused": 0, "loaded": 0}
    for i in range(first, first + count):
        os.pwrite(file, f"{i:12}".encode(), 0)
        try:
            ends[mutate(i, contexts, right)] += 1
        except AssertionError as e:
            print(f"mutation {i}: {e}")
            sys.exit(1)
    print(f"{count} mutations: {ends['refused']} refused, {ends['loaded']} loaded")
