# SPDX-License-Identifier: Apache-2.0
"""Compiled models (EPContext): written, moved, loaded, and refused with a reason."""
import pathlib
import re
import shutil

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxruntime_contexts import FLOAT, check_runs, compile_to, context_nodes, model, source  # noqa: F401
from onnxruntime_plugin import (NAME, RELEASE, model_of, on_cpu, onnxruntime, session, session_options)

def test_external_engine_is_named_after_the_model_and_found_beside_it(source, tmp_path):
    target = compile_to(source, tmp_path / "out" / "m_ctx.onnx")
    assert sorted(p.name for p in target.parent.iterdir()) == ["m_ctx.onnx", "m_ctx_0.engine"]
    node, = context_nodes(target)
    assert node["ep_cache_context"] == b"m_ctx_0.engine" and node["embed_mode"] == 0
    assert node["source"] == NAME.encode() and node["onnx_model_filename"] == b"model.onnx"
    assert node["main_context"] == 1 and node["partition_name"] == b"m_ctx_0"
    assert re.fullmatch(rb"\d+\.\d+\.\d+", node["ep_sdk_version"])
    source.unlink()
    check_runs(session(target))


def test_embedded_engine_is_in_the_model(source, tmp_path):
    target = compile_to(source, tmp_path / "m_ctx.onnx", embed=True)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["m_ctx.onnx"]
    check_runs(session(target))
    check_runs(session(onnx.load(str(target))))  # from memory


def test_moved_folder_with_spaces_and_unicode(source, tmp_path):
    target = compile_to(source, tmp_path / "a" / "m.onnx")
    moved = tmp_path / "moved to ünï çødé"
    shutil.move(target.parent, moved)
    check_runs(session(moved / "m.onnx"))


def test_relative_paths(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = onnxruntime.ModelCompiler(session_options(), "source/model.onnx",
                                     embed_compiled_data_into_model=False)
    pathlib.Path("deep").mkdir()
    made.compile_to_file("deep/m_ctx.onnx")
    assert (tmp_path / "deep" / "m_ctx_0.engine").is_file()
    check_runs(session("deep/m_ctx.onnx"))


def test_by_session_options(source, tmp_path):
    target = tmp_path / "by_options.onnx"
    made = session(source, entries={"ep.context_enable": "1",
                                    "ep.context_file_path": str(target)})
    check_runs(made)
    assert (tmp_path / "by_options_0.engine").is_file()
    check_runs(session(target))


def test_by_session_options_the_engine_may_be_inside(source, tmp_path):
    target = tmp_path / "inside.onnx"
    session(source, entries={"ep.context_enable": "1", "ep.context_file_path": str(target),
                             "ep.context_embed_mode": "1"})
    assert context_nodes(target)[0]["embed_mode"] == 1 and not list(tmp_path.glob("*.engine"))
    check_runs(session(target))


@pytest.mark.skipif(RELEASE < (1, 27), reason="onnxruntime before 1.27 has no sessions that only compile: "
                                              "they were NOT tested")
def test_session_that_only_compiles_writes_the_model_and_runs_nothing(source, tmp_path):
    with pytest.raises(RuntimeError, match="Session has not been initialized"):  # ONNX Runtime's text
        session(source, entries={"ep.context_enable": "1", "session.compile_only": "1",
                                 "ep.context_file_path": str(tmp_path / "only.onnx")})
    check_runs(session(tmp_path / "only.onnx"))


def test_by_session_options_without_a_path_it_is_beside_the_model(source):
    session(source, entries={"ep.context_enable": "1"})
    assert sorted(p.name for p in source.parent.iterdir()) == [
        "model.onnx", "model_ctx.onnx", "model_ctx_0.engine"]
    check_runs(session(source.parent / "model_ctx.onnx"))


def test_from_memory_the_engine_is_looked_for_at_the_path_given(source, tmp_path):
    target = compile_to(source, tmp_path / "out" / "m.onnx")
    loaded = onnx.load(str(target))
    check_runs(session(loaded, entries={"ep.context_file_path": str(target)}))
    with pytest.raises(Exception, match="read from memory, and its engine 'm_0.engine' is a file: "
                                        "set ep.context_file_path"):
        session(loaded)


def test_to_memory_embedded(source):
    made = onnxruntime.ModelCompiler(session_options(), str(source),
                                     embed_compiled_data_into_model=True)
    check_runs(session(onnx.load_model_from_string(made.compile_to_bytes())))


def test_any_size_also_after_loading(source, tmp_path):
    made = session(compile_to(source, tmp_path / "m.onnx"))
    for n in (1, 0, 9):
        x = np.ones((n, 64), np.float32)
        assert made.run(None, {"x": x})[0].shape == (n,)


def test_two_models_compiled_from_one_path_keep_their_weights(tmp_path):
    path = tmp_path / "model.onnx"
    for seed in (0, 1):
        onnx.save(model(seed), path)
        compile_to(path, tmp_path / f"out_{seed}.onnx")
    for seed in (0, 1):
        check_runs(session(tmp_path / f"out_{seed}.onnx"), seed)


def test_engine_of_another_model_is_refused(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx")
    onnx.save(model(1), source)
    compile_to(source, tmp_path / "b.onnx")
    shutil.copy(tmp_path / "b_0.engine", tmp_path / "a_0.engine")
    with pytest.raises(Exception, match="is not the engine that the model was compiled with: got "
                                        "engine=[0-9a-f]{64}, expected engine=[0-9a-f]{64}.*compile the model again"):
        session(target)


def test_damaged_engines_are_refused(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx")
    engine = tmp_path / "a_0.engine"
    whole = engine.read_bytes()
    for bad in (whole[:-1], whole[:100], b"", whole[:50] + bytes([whole[50] ^ 0xff]) + whole[51:]):
        engine.write_bytes(bad)
        with pytest.raises(Exception, match="is not the engine that|can't find engine cache|empty|it is truncated"):
            session(target)
    engine.unlink()
    with pytest.raises(Exception, match="can't find engine cache: .*a_0.engine. Please make sure "
                                        "engine cache is in the same directory"):
        session(target)
    engine.write_bytes(whole)
    check_runs(session(target))


def with_attributes(path, target, **values):
    """A copy of a compiled model with other attributes; None takes one out."""
    loaded = onnx.load(str(path))
    node, = [n for n in loaded.graph.node if n.op_type == "EPContext"]
    kept = [a for a in node.attribute if a.name not in values]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(k, v) for k, v in values.items() if v is not None)
    onnx.save(loaded, target)
    return target


@pytest.mark.parametrize("name", ["../a_0.engine", "/etc/passwd", "b/../../a_0.engine"])
def test_paths_that_leave_the_folder_are_refused(source, tmp_path, name):
    target = compile_to(source, tmp_path / "a.onnx")
    (tmp_path / "in").mkdir()
    bad = with_attributes(target, tmp_path / "in" / "bad.onnx", ep_cache_context=name)
    with pytest.raises(Exception, match="can't find engine cache"):
        session(bad)


def test_symbolic_links_that_leave_the_folder_are_refused(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx")
    (tmp_path / "in").mkdir()
    shutil.copy(target, tmp_path / "in" / "a.onnx")
    (tmp_path / "in" / "a_0.engine").symlink_to(tmp_path / "a_0.engine")
    with pytest.raises(Exception, match="can't find engine cache"):
        session(tmp_path / "in" / "a.onnx")


def test_engine_of_nvidias_provider_is_named_as_that(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx", embed=True)
    theirs = with_attributes(target, tmp_path / "b.onnx", ep_cache_context=b"ftrt" + bytes(200),
                             notes=None)
    with pytest.raises(Exception, match="not one of Ingot's: NVIDIA's provider of the same name"):
        session(theirs)


@pytest.mark.parametrize("byte, text", [
    (8, "its engine was written by a release of Ingot that this one cannot read; compile the model again"),
    (60, "its engine is cut short or damaged; compile the model again"),
])
def test_engine_of_a_newer_format_and_one_with_a_damaged_header(source, tmp_path, byte, text):
    target = compile_to(source, tmp_path / "a.onnx", embed=True)
    engine = bytearray(context_nodes(target)[0]["ep_cache_context"])
    engine[byte] ^= 0x40
    with pytest.raises(Exception, match=text):
        session(with_attributes(target, tmp_path / "b.onnx", ep_cache_context=bytes(engine), notes=None))


def test_context_of_another_source_is_not_claimed(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx", embed=True)
    theirs = with_attributes(target, tmp_path / "b.onnx", source="QNNExecutionProvider")
    with pytest.raises(Exception, match="EPContext"):
        session(theirs, whole=False)


@pytest.mark.parametrize("source_name", [None, "NvTensorRtRtxExecutionProvider",
                                         "IngotExecutionProvider"])
def test_context_without_a_source_or_of_another_registration_loads(source, tmp_path, source_name):
    target = compile_to(source, tmp_path / "a.onnx", embed=True)
    check_runs(session(with_attributes(target, tmp_path / "b.onnx", source=source_name)))


def test_compiled_model_is_not_compiled_again(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx")
    with pytest.raises(Exception, match="is compiled already; compile the model that it was made "
                                        "of"):
        compile_to(target, tmp_path / "b.onnx")


@pytest.mark.parametrize("spelling", ["model.onnx", "../source/model.onnx"])
def test_compiled_model_does_not_replace_its_source(source, spelling):
    before = source.read_bytes()
    with pytest.raises(Exception, match="the compiled model would replace its source '.*model.onnx': give "
                                        "it another path"):
        compile_to(source, source.parent / spelling)
    assert source.read_bytes() == before and [p.name for p in source.parent.iterdir()] == ["model.onnx"]


def test_engine_and_model_that_do_not_fit(source, tmp_path):
    target = compile_to(source, tmp_path / "a.onnx", embed=True)
    loaded = onnx.load(str(target))
    node = loaded.graph.node[0]
    node.input[0] = loaded.graph.input[0].name = "other"
    with pytest.raises(Exception, match="engine/model mismatch: .* has no input 'x', which the "
                                        "engine has; the node's inputs are other"):
        session(loaded)


def test_weights_of_what_is_left_to_others_stay_in_the_model(tmp_path):
    mixed = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("Softmax", ["b"], ["s"]),
         helper.make_node("MatMul", ["s", "v"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        {"x": (FLOAT, ["n", 8])}, {"y": (FLOAT, ["n", 4])},
        {"w": np.eye(8, dtype=np.float32), "v": np.ones((8, 4), np.float32)})
    path = tmp_path / "mixed.onnx"
    onnx.save(mixed, path)
    options = {"nv_op_types_to_exclude": "Softmax"}
    made = onnxruntime.ModelCompiler(session_options(options, whole=False), str(path),
                                     embed_compiled_data_into_model=False)
    made.compile_to_file(str(tmp_path / "ctx.onnx"))
    assert [n.op_type for n in onnx.load(str(tmp_path / "ctx.onnx")).graph.node].count(
        "EPContext") == 2
    assert {p.name for p in tmp_path.glob("*.engine")} == {"ctx_0.engine", "ctx_1.engine"}
    x = np.random.default_rng(6).standard_normal((3, 8)).astype(np.float32)
    got, = session(tmp_path / "ctx.onnx", whole=False).run(None, {"x": x})
    np.testing.assert_allclose(got, on_cpu(mixed, {"x": x})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not hasattr(onnxruntime.ModelCompiler, "set_ep_context_data_write_func"),
                    reason="onnxruntime before 1.31 has no callbacks for engines: they were NOT tested")
def test_engines_go_through_the_applications_own_functions(source, tmp_path):
    kept = {}

    def turned(data):  # an encryption, so to speak
        return bytes(b ^ 0x5A for b in data)

    def write(name, data):
        kept[name] = turned(data.read(0, data.size))

    def read(name, buffer):
        buffer.allocate(len(kept[name]))
        buffer.write(turned(kept[name]), 0)

    compiler = onnxruntime.ModelCompiler(session_options(), str(source),
                                         embed_compiled_data_into_model=False)
    compiler.set_ep_context_data_write_func(write)
    compiler.compile_to_file(str(tmp_path / "m.onnx"))
    assert list(kept) == ["m_0.engine"] and not list(tmp_path.glob("*.engine"))
    options = session_options()
    options.set_ep_context_data_read_func(read, 1 << 30)
    check_runs(onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), options, enable_fallback=False))
    with pytest.raises(Exception, match="can't find engine cache"):
        session(tmp_path / "m.onnx")
