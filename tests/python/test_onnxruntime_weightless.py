# SPDX-License-Identifier: Apache-2.0
"""Compiled models without weights: these come from the source model or its data file, found by the
digest of each tensor; without them, or with others, a session is refused with the reason."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxruntime_plugin import RELEASE, model_of, onnxruntime, session, session_options

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
K, N = 96, 128
X = np.random.default_rng(8).standard_normal((5, K)).astype(np.float32)


def tensor(name, dtype, shape, raw):
    return helper.make_tensor(name, dtype, shape, raw, raw=True)


def of_floats(seed=0):
    rng = np.random.default_rng(seed)
    return model_of([helper.make_node("MatMul", ["x", "w"], ["a"]),
                     helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])],
                    {"x": (FLOAT, ["n", K])}, {"y": (FLOAT, ["n", N])},
                    {"w": rng.standard_normal((K, N)).astype(np.float32),
                     "b": rng.standard_normal(N).astype(np.float32)})


def of_halves(seed=0):
    rng = np.random.default_rng(seed)
    return model_of([helper.make_node("Cast", ["x"], ["h"], to=HALF),
                     helper.make_node("MatMul", ["h", "w"], ["a"]),
                     helper.make_node("Cast", ["a"], ["y"], to=FLOAT)],
                    {"x": (FLOAT, ["n", K])}, {"y": (FLOAT, ["n", N])},
                    {"w": (rng.standard_normal((K, N)) / 8).astype(np.float16)})


def of_doubles(seed=0):
    """Values that no float32 holds."""
    rng = np.random.default_rng(seed)
    return model_of([helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
                     helper.make_node("MatMul", ["d", "w"], ["a"]),
                     helper.make_node("Cast", ["a"], ["y"], to=FLOAT)],
                    {"x": (FLOAT, ["n", K])}, {"y": (FLOAT, ["n", N])},
                    {"w": rng.standard_normal((K, N))})


def with_packed(nodes, tensors, opset):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, ["n", K])],
                              [helper.make_tensor_value_info("y", FLOAT, ["n", N])], tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])


def of_int4(seed=0):
    rng = np.random.default_rng(seed)
    scale = (rng.random((K // 32, N)) / 8 + 0.01).astype(np.float32)
    return with_packed(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
         helper.make_node("MatMul", ["x", "d"], ["y"])],
        [tensor("w", TensorProto.INT4, [K, N], rng.bytes(K * N // 2)),
         numpy_helper.from_array(scale, "s")], 21)


def of_matmul_nbits(seed=0):
    rng = np.random.default_rng(seed)
    scale = (rng.random(N * (K // 32)) / 8 + 0.01).astype(np.float32)
    return with_packed(
        [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=K, N=N,
                          bits=4, block_size=32)],
        [tensor("w", TensorProto.UINT8, [N, K // 32, 16], rng.bytes(N * K // 2)),
         numpy_helper.from_array(scale, "s")], 21)


MODELS = [of_floats, of_halves, of_doubles, of_int4, of_matmul_nbits]
ALL = {"ep.enable_weightless": "1"}
KEYS = {"onnxruntime": ({}, ALL), "mode": ({}, {"ep.enable_weightless_mode": "2"}),
        "nvidia": ({"nv_weight_stripped_engine_enable_experimental": "1"}, {})}


def weight_bytes(model, name="w"):
    found, = [t for t in model.graph.initializer if t.name == name]
    return numpy_helper.to_array(found).tobytes() if not found.raw_data else found.raw_data


def compiled(source, target, embed=False, options=None, entries=None):
    made = onnxruntime.ModelCompiler(session_options(options, ALL if entries is None else entries),
                                     str(source), embed_compiled_data_into_model=embed)
    target.parent.mkdir(exist_ok=True)
    made.compile_to_file(str(target))
    return target


def written(target):
    return b"".join(p.read_bytes() for p in (target, *target.parent.glob(f"{target.stem}_*.engine")))


def check_runs(made, model):
    got, = made.run(None, {"x": X})
    options = onnxruntime.SessionOptions()  # optimised, 4-bit weights meet activations of 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected, = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                             providers=["CPUExecutionProvider"]).run(None, {"x": X})
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    return got


@pytest.fixture
def source(tmp_path):
    """A model file with its weights inside."""
    path = tmp_path / "model.onnx"
    onnx.save(of_floats(), path)
    return path


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("make", MODELS)
def test_no_weights_are_written_and_they_are_found_beside(make, embed, tmp_path):
    model = make()
    onnx.save(model, tmp_path / "model.onnx")
    target = compiled(tmp_path / "model.onnx", tmp_path / "m_ctx.onnx", embed)
    all_bytes, w = written(target), weight_bytes(model)
    assert not any(w[at:at + 24] in all_bytes for at in range(0, len(w) - 24, 509))
    whole = compiled(tmp_path / "model.onnx", tmp_path / "whole" / "m_ctx.onnx", embed, entries={})
    assert any(w[at:at + 24] in written(whole) for at in range(0, len(w) - 24, 509)) or (
        make is of_matmul_nbits)  # that one is packed in another way
    got = check_runs(session(target), model)
    np.testing.assert_array_equal(got, session(whole).run(None, {"x": X})[0])


@pytest.mark.parametrize("key", KEYS)
def test_each_key_asks_for_it_and_none_is_needed_to_load(key, source, tmp_path):
    options, entries = KEYS[key]
    if "ep.enable_weightless_mode" in entries and RELEASE >= (1, 32):
        pytest.skip("ONNX Runtime checks this key itself: NOT tested")
    target = compiled(source, tmp_path / "out" / "m.onnx", options=options, entries=entries)
    assert weight_bytes(of_floats())[:64] not in written(target)
    found = {"ep.context_source_model_path": str(source)}
    check_runs(session(target, entries=found), of_floats())
    check_runs(session(target, options, {**entries, **found}), of_floats())


def test_a_session_that_compiles_runs_too(source, tmp_path):
    """ONNX Runtime's optimisers have run here: constants of their own stay in the engine."""
    target = tmp_path / "m_ctx.onnx"
    made = session(source, entries={**ALL, "ep.context_enable": "1",
                                    "ep.context_file_path": str(target)})
    check_runs(made, of_floats())
    assert weight_bytes(of_floats())[:64] not in written(target)
    check_runs(session(target), of_floats())


def test_constants_that_onnxruntime_made_stay_in_the_engine(tmp_path):
    rng = np.random.default_rng(3)
    model = model_of([helper.make_node("Mul", ["v", "two"], ["w"]),
                      helper.make_node("MatMul", ["x", "w"], ["a"]),
                      helper.make_node("MatMul", ["a", "u"], ["y"])],
                     {"x": (FLOAT, ["n", K])}, {"y": (FLOAT, ["n", N])},
                     {"v": rng.standard_normal((K, K)).astype(np.float32) / 8,
                      "two": np.full((1,), 2, np.float32),
                      "u": rng.standard_normal((K, N)).astype(np.float32) / 8})
    onnx.save(model, tmp_path / "model.onnx")
    target = tmp_path / "m_ctx.onnx"
    session(tmp_path / "model.onnx", entries={**ALL, "ep.context_enable": "1",
                                              "ep.context_file_path": str(target)})
    assert weight_bytes(model, "u")[:64] not in written(target)
    check_runs(session(target), model)


def test_weights_under_another_name_or_in_another_file_are_found(source, tmp_path):
    target = compiled(source, tmp_path / "m_ctx.onnx")
    other = onnx.load(source)
    for node in other.graph.node:
        node.input[:] = [f"renamed_{i}" if i in ("w", "b") else i for i in node.input]
    for t in other.graph.initializer:
        t.name = f"renamed_{t.name}"
    onnx.save(other, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    check_runs(session(target), of_floats())


def test_typed_fields_are_weights_too(source, tmp_path):
    """The same numbers as float_data instead of raw_data."""
    target = compiled(source, tmp_path / "m_ctx.onnx")
    other = onnx.load(source)
    for t in other.graph.initializer:
        array = numpy_helper.to_array(t)
        t.CopyFrom(helper.make_tensor(t.name, t.data_type, array.shape, array.flatten().tolist()))
    onnx.save(other, source)
    check_runs(session(target), of_floats())


@pytest.fixture
def in_two_files(tmp_path):
    path = tmp_path / "source" / "model.onnx"
    path.parent.mkdir()
    onnx.save(of_floats(), path, save_as_external_data=True, location="model.data", size_threshold=1024)
    return path


def test_the_data_file_alone_is_enough_for_what_it_holds(in_two_files, tmp_path):
    target = compiled(in_two_files, tmp_path / "out" / "m.onnx",
                      entries={"ep.enable_weightless_mode": "1"})
    assert weight_bytes(of_floats())[:64] not in written(target)
    assert weight_bytes(of_floats(), "b")[:64] in written(target)
    table = json.loads(refit_table(target))
    assert [(w["name"], w["file"], w["shape"]) for w in table["weights"]] == [
        ("w", "model.data", [K, N])]
    in_two_files.unlink()
    data = in_two_files.parent / "model.data"
    check_runs(session(target, entries={
        "session.model_external_initializers_file_folder_path": str(data.parent),
        "ep.context_file_path": str(target)}), of_floats())
    data.rename(target.parent / "model.data")
    check_runs(session(target), of_floats())
    (target.parent / "model.data").write_bytes(bytes(K * N * 4))
    with pytest.raises(Exception, match="weights 'w' changed since the model was compiled: "
                                        "'.*model.data' has xxh3=.*, expected xxh3="):
        session(target)
    (target.parent / "model.data").write_bytes(bytes(99))
    with pytest.raises(Exception, match="weights 'w' changed since the model was compiled: "
                                        "'.*model.data' has 99 bytes, expected 49152 from 0 on"):
        session(target)


def test_weights_inside_and_outside_of_the_source(in_two_files, tmp_path):
    target = compiled(in_two_files, tmp_path / "out" / "m.onnx")
    for part in ("w", "b"):
        assert weight_bytes(of_floats(), part)[:64] not in written(target)
    check_runs(session(target, entries={"ep.context_source_model_path": str(in_two_files)}),
               of_floats())


def test_missing_weights_are_an_error(source, tmp_path):
    target = compiled(source, tmp_path / "m_ctx.onnx")
    source.unlink()
    with pytest.raises(Exception, match=r"weights 'w' and 1 more are missing: expected xxh3=[0-9a-f]{32} "
                                        r"bytes=49152 in .*model.onnx \(.*model.onnx.*No such file.*\); the "
                                        "model was compiled without its weights: put its source model "
                                        "beside it, name it with ep.context_source_model_path"):
        session(target)
    other = tmp_path / "other.onnx"
    onnx.save(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])},
                       {"y": (FLOAT, [2])}), other)
    with pytest.raises(Exception, match="weights 'w' and 1 more are missing"):
        session(target, entries={"ep.context_source_model_path": str(other)})
    other.write_bytes(b"no model")
    with pytest.raises(Exception, match="weights 'w' and 1 more are missing: .*'.*other.onnx': "):
        session(target, entries={"ep.context_source_model_path": str(other)})
    onnx.save(of_floats(), source)
    check_runs(session(target), of_floats())


def test_changed_weights_are_an_error(source, tmp_path):
    target = compiled(source, tmp_path / "m_ctx.onnx")
    onnx.save(of_floats(1), source)
    with pytest.raises(Exception, match="weights 'w' and 1 more changed since the model was compiled: "
                                        "'.*model.onnx' has xxh3=.*, expected xxh3="):
        session(target)


def refit_table(path):
    node, = [n for n in onnx.load(str(path)).graph.node if n.op_type == "EPContext"]
    return {a.name: a for a in node.attribute}["ep_refit_table"].s


@pytest.mark.parametrize("keep_notes", [True, False])
@pytest.mark.parametrize("change, said", [
    (lambda t: None, "has no attribute 'ep_refit_table'"),
    (lambda t: t[:-9], "is damaged"),
    (lambda t: t.replace(b'"format":1', b'"format":2'), "its format is 2, expected 1"),
    (lambda t: t.replace(b'"name":"w"', b'"name":"v"'), r"\(ep_refit_table\) lacks 'w'"),
    (lambda t: t.replace(b'"offset":0', b'"offset":-5'), "-5 is negative"),
    (lambda t: t.replace(b'[96,128]', b'[96,127]'), "giving weights to"),
    (lambda t: t.replace(b'"type":1', b'"type":99'), "giving weights to"),
])
def test_damaged_tables_are_refused(change, said, keep_notes, source, tmp_path):
    target = compiled(source, tmp_path / "m_ctx.onnx", embed=True)
    loaded = onnx.load(str(target))
    node, = loaded.graph.node
    changed = change(refit_table(target))
    kept = [a for a in node.attribute
            if a.name != "ep_refit_table" and (keep_notes or a.name != "notes")]
    del node.attribute[:]
    node.attribute.extend(kept)
    if changed is not None:
        node.attribute.append(helper.make_attribute("ep_refit_table", changed))
    onnx.save(loaded, target)
    with pytest.raises(Exception, match="is not the engine that the model was compiled with"
                       if keep_notes else said):
        session(target)


def test_wrong_mode(source, tmp_path):
    with pytest.raises(Exception, match='"ep.enable_weightless_mode" is "3", expected 0'
                                        "|ep.enable_weightless_mode"):
        compiled(source, tmp_path / "m.onnx", entries={"ep.enable_weightless_mode": "3"})
