# SPDX-License-Identifier: Apache-2.0
"""Sessions with ep.share_ep_contexts: an engine that several of them load is in memory once."""
import subprocess
import sys
import textwrap
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import model_of, on_cpu, onnxruntime, session, session_options

SHARED = "the engine is shared with another session"
SHARE = {"ep.share_ep_contexts": "1"}
STOP = {**SHARE, "ep.stop_share_ep_contexts": "1"}
X = np.random.default_rng(1).standard_normal((3, 32)).astype(np.float32)


def product(seed, size=32):
    """y = Relu(x W), sizes of x open."""
    weights = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
    return model_of([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
                    {"x": (TensorProto.FLOAT, ["n", size])}, {"y": (TensorProto.FLOAT, ["n", size])}, {"w": weights})


def compiled(model, target, embed=True, **options):
    onnxruntime.ModelCompiler(session_options(options), model.SerializeToString(), embed_compiled_data_into_model=embed
                              ).compile_to_file(str(target))
    return target


def opened(path, entries, capfd, options=None):
    """A session, and whether it says that its engine is another's."""
    capfd.readouterr()
    made = session_options({"nv_detailed_build_log": "1", **(options or {})}, entries)
    made.log_severity_level = 1
    result = onnxruntime.InferenceSession(str(path), made, enable_fallback=False)
    text = "".join(capfd.readouterr())
    return result, SHARED in text


def check(made, model):
    np.testing.assert_allclose(made.run(None, {"x": X})[0], on_cpu(model, {"x": X})[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("embed", [True, False])
def test_sessions_share_an_engine_and_outlive_each_other(tmp_path, capfd, embed):
    model = product(1)
    path = compiled(model, tmp_path / "a_ctx.onnx", embed)
    first, is_shared = opened(path, SHARE, capfd)
    assert not is_shared
    second, is_shared = opened(path, SHARE, capfd)
    assert is_shared
    check(first, model)
    del first
    check(second, model)
    third, is_shared = opened(path, SHARE, capfd)
    assert is_shared, "the second session still has it"
    check(third, model)
    del second, third
    last, is_shared = opened(path, SHARE, capfd)
    assert not is_shared, "it went with the last session"
    check(last, model)


def test_sessions_without_the_option_share_nothing(tmp_path, capfd):
    path = compiled(product(1), tmp_path / "a_ctx.onnx")
    kept = opened(path, SHARE, capfd)
    for entries in ({}, {"ep.share_ep_contexts": "0"}, {"ep.stop_share_ep_contexts": "1"}):
        assert not opened(path, entries, capfd)[1], entries
    del kept


def test_stop_ends_a_share_with_its_own_session(tmp_path, capfd):
    model = product(1)
    path = compiled(model, tmp_path / "a_ctx.onnx")
    first, is_shared = opened(path, SHARE, capfd)
    assert not is_shared
    last, is_shared = opened(path, STOP, capfd)
    assert is_shared, "the session that ends the share belongs to it"
    fresh, is_shared = opened(path, SHARE, capfd)
    assert not is_shared
    second, is_shared = opened(path, SHARE, capfd)
    assert is_shared, "later sessions share among themselves"
    for made in (first, last, fresh, second):
        check(made, model)


def test_other_weights_are_another_engine(tmp_path, capfd):
    """Also where both contexts are without weights, so that their engines are the same bytes."""
    for options in ({}, {"nv_weight_stripped_engine_enable_experimental": "1"}):
        sessions = []
        for seed in (1, 2):
            model = product(seed)
            source = tmp_path / f"source_{seed}.onnx"
            onnx.save(model, source)
            target = tmp_path / f"{len(options)}_{seed}_ctx.onnx"
            onnxruntime.ModelCompiler(session_options(options), str(source), embed_compiled_data_into_model=True
                                      ).compile_to_file(str(target))
            made, is_shared = opened(target, SHARE, capfd)
            assert not is_shared
            sessions.append((made, model))
        for made, model in sessions:
            check(made, model)


def test_models_share_too(tmp_path, capfd):
    """An engine that a session builds is that of another session of the same model."""
    model = product(1)
    onnx.save(model, tmp_path / "a.onnx")
    first, is_shared = opened(tmp_path / "a.onnx", SHARE, capfd)
    assert not is_shared
    second, is_shared = opened(tmp_path / "a.onnx", SHARE, capfd)
    assert is_shared
    check(first, model)
    check(second, model)


def test_streamed_weights_are_not_shared(tmp_path, capfd):
    model = product(1, 512)
    path = compiled(model, tmp_path / "a_ctx.onnx", nv_weight_streaming_budget="50%")
    made = session_options({}, SHARE)
    made.log_severity_level = 2
    first = onnxruntime.InferenceSession(str(path), made, enable_fallback=False)
    text = "".join(capfd.readouterr())
    assert "ep.share_ep_contexts has no effect on it, since its weights are streamed" in text
    second, is_shared = opened(path, SHARE, capfd)
    assert not is_shared
    x = np.ones((2, 512), np.float32)
    for run in (first, second):
        np.testing.assert_allclose(run.run(None, {"x": x})[0], on_cpu(model, {"x": x})[0], rtol=1e-3, atol=1e-3)


def test_compiled_models_have_engines_of_their_own(tmp_path, capfd):
    """Other providers put the engines of all models up to ep.stop_share_ep_contexts into one file."""
    models = {"a": product(1), "b": product(2)}
    for entries, expected in (({}, 0), (SHARE, 2)):
        capfd.readouterr()
        for name, model in models.items():
            made = session_options({}, {**entries, **(STOP if entries and name == "b" else {})})
            made.log_severity_level = 2
            onnxruntime.ModelCompiler(made, model.SerializeToString(), embed_compiled_data_into_model=False
                                      ).compile_to_file(str(tmp_path / f"{name}_ctx.onnx"))
        text = "".join(capfd.readouterr())
        assert text.count("ep.share_ep_contexts puts no engines of several models into one file: each compiled model "
                          "has engines of its own. Sessions that load them with this key share those that are equal"
                          ) == expected
        assert sorted(f.name for f in tmp_path.glob("*.engine")) == ["a_ctx_0.engine", "b_ctx_0.engine"]
    for name, model in models.items():
        made, is_shared = opened(tmp_path / f"{name}_ctx.onnx", SHARE, capfd)
        assert not is_shared
        check(made, model)


def test_wrong_value_is_refused(tmp_path):
    with pytest.raises(Exception, match='"ep.share_ep_contexts": got "maybe"'):
        session(product(1), entries={"ep.share_ep_contexts": "maybe"})


def test_threads_make_share_and_close_sessions(tmp_path):
    models = [product(seed) for seed in (1, 2)]
    paths = [compiled(m, tmp_path / f"{i}_ctx.onnx") for i, m in enumerate(models)]
    failures = []

    def work(number):
        try:
            for turn in range(8):
                which = (number + turn) % 2
                entries = STOP if number == 0 and turn == 4 else SHARE
                check(session(paths[which], entries=entries), models[which])
        except Exception as e:  # pylint: disable=broad-except
            failures.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_weights_are_in_memory_once(tmp_path):
    """Four sessions of 64 MiB of weights inside the model; the CPU packs them for its kernels, which
    belongs to the engine as well."""
    compiled(product(1, 4096), tmp_path / "a_ctx.onnx")
    taken = {}
    for share in ("0", "1"):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(f"""
            import gc, sys
            sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})
            import numpy as np
            from onnxruntime_plugin import session
            def anonymous():
                lines = open("/proc/self/status").read().splitlines()
                return int([l for l in lines if l.startswith("RssAnon")][0].split()[1]) / 1024
            kept = []
            for _ in range(4):
                kept.append(session("a_ctx.onnx", entries={{"ep.share_ep_contexts": "{share}"}}))
                kept[-1].run(None, {{"x": np.ones((1, 4096), np.float32)}})
                gc.collect()
                print(anonymous())
        """)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        sizes = [float(line) for line in done.stdout.split()]
        taken[share] = sizes[3] - sizes[0]
    print(taken)
    assert taken["1"] < taken["0"] - 2 * 64, taken
