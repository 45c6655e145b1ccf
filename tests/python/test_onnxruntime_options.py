# SPDX-License-Identifier: Apache-2.0
"""Options of the execution provider: parsing, effects, and errors."""
import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import (NAME, RELEASE, REPOSITORY, model_of, on_cpu, onnxruntime, session,
                                session_options)

FLOAT = TensorProto.FLOAT
OPTIONS = {key: kind for kind, key in re.findall(
    r"INGOT_EP_OPTION\((\w+), (\w+), .*\)",
    (REPOSITORY / "plugins" / "onnxruntime" / "options.def").read_text())}


def model(rows="n"):
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        {"x": (FLOAT, [rows, 8])}, {"y": (FLOAT, [rows, 4])},
        {"w": np.arange(32, dtype=np.float32).reshape(8, 4) - 16})


def run(made, rows=3, **options):
    x = np.random.default_rng(7).standard_normal((rows, 8)).astype(np.float32)
    got, = made.run(None, {"x": x}, **options)
    np.testing.assert_allclose(got, on_cpu(model(), {"x": x})[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", ["0", "1", "true", "false", "True", "False"])
def test_bools_are_these_six(value):
    run(session(model(), {"nv_detailed_build_log": value}))


BOOLS = sorted(key for key, kind in OPTIONS.items() if kind == "Bool")
NUMBERS = sorted(key for key, kind in OPTIONS.items() if kind in ("Int", "Unsigned"))


@pytest.mark.parametrize("key", BOOLS)
@pytest.mark.parametrize("value", ["yes", "TRUE", "2", "", " 1", "on"])
def test_other_bools_are_refused(key, value):
    with pytest.raises(Exception, match=re.escape(
            f'Failed to parse provider option "{key}": got "{value}", expected 0, 1, true, false, '
            'True or False')):
        session(model(), {key: value})


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", ["x", "1 ", "", "1.5", "0xg", "99999999999999999999"])
def test_numbers_are_whole_and_all_of_the_text(key, value):
    with pytest.raises(Exception, match=re.escape(
            f'Failed to parse provider option "{key}": got "{value}", expected an integer')):
        session(model(), {key: value})


@pytest.mark.parametrize("value", ["0", "4096", "0x1000", "0XFFFF"])
def test_unsigned_numbers_may_be_hexadecimal(value):
    run(session(model(), {"nv_max_workspace_size": value}))


def test_unknown_option_is_refused_with_the_nearest():
    with pytest.raises(Exception, match=r'Unknown provider option: "enable_cuda_graphs". Did you '
                                        r'mean "enable_cuda_graph"\?'):
        session(model(), {"enable_cuda_graphs": "1"})
    with pytest.raises(Exception, match='Unknown provider option: "zzz". docs/onnxruntime.md'):
        session(model(), {"zzz": "1"})


@pytest.mark.parametrize("options, text", [
    ({"ingot_precision": "fp64"}, 'provider option "ingot_precision" is "fp64", expected fp32, '
                                  'fp16 or bf16'),
    ({"ingot_max_graphs": "0"}, 'provider option "ingot_max_graphs" is 0, expected 1 to 4096'),
    ({"device_id": "3"}, "Invalid device ID: 3, the session's device is 0"),
    ({"nv_target_sm": "sm70"}, "Invalid nv_target_sm value: 'sm70'. Valid values are: sm80, sm86"),
    ({"user_aux_stream_array": "0x10"}, "Auxiliary streams must be greater than 0 when using "
                                        "external auxiliary streams"),
    ({"profile_min_shapes": "x:1x8", "nv_profile_min_shapes": "x:2x8"},
     'provider options "nv_profile_min_shapes" and "profile_min_shapes" are the same option'),
    ({"nv_weight_streaming_budget": "120%"}, "Invalid nv_weight_streaming_budget: 120%. The weight "
                                             "streaming percentage must be between 0 and 100."),
    ({"nv_weight_streaming_budget": "5T"}, "Invalid unit specifier. Valid base-2 unit suffixes "
                                           "include: B, K, M, G."),
    ({"nv_weight_streaming_budget": ""}, "Invalid nv_weight_streaming_budget: ."),
    ({"nv_weight_streaming_budget": "-2"}, "Invalid nv_weight_streaming_budget: -2."),
    ({"nv_weight_streaming_budget": "-5B"}, "The number of bytes must be 0 or more."),
    ({"nv_weight_streaming_budget": "much"}, "Expected 0, -1, 1, a number of bytes with or without B, "
                                             "K, M or G, or a percentage."),
    ({"nv_max_workspace_size": "-1"}, "expected an integer of 0 or more, decimal or with 0x"),
    ({"has_user_compute_stream": "1", "user_compute_stream": "0"},
     '"has_user_compute_stream" is set, but "user_compute_stream" is 0'),
])
def test_contradictions_and_values_out_of_range(options, text):
    with pytest.raises(Exception, match=re.escape(text)):
        session(model(), options)


@pytest.mark.parametrize("value", ["0", "-1", "1", "1.5G", "64M", "2048", "50%"])
def test_budgets_of_streamed_weights(value):
    run(session(model(), {"nv_weight_streaming_budget": value}))


def test_every_option_is_accepted_with_its_default():
    text = (REPOSITORY / "plugins" / "onnxruntime" / "options.def").read_text()
    defaults = dict(re.findall(r"INGOT_EP_OPTION\(\w+, (\w+), (.*)\)", text))
    defaults["device_id"] = "0"
    for alias in ("min", "max", "opt"):
        del defaults[f"profile_{alias}_shapes"]
    run(session(model(), {key: value.strip('"') for key, value in defaults.items()}))


def test_the_page_names_every_option_and_no_other():
    page = (REPOSITORY / "docs" / "onnxruntime.md").read_text()
    table = page.split("| key | default | effect |")[1].split("\n\n")[0]
    named = {key for row in table.splitlines() if row.startswith("| `")
             for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {key for key in OPTIONS if not key.startswith("profile_")
                     and key != "multi_rotary_cache_concat_offset"}


@pytest.mark.parametrize("options, keys", [
    ({"nv_length_aux_stream_array": "1", "user_aux_stream_array": "0x1000"},
     ["nv_length_aux_stream_array", "user_aux_stream_array"]),
    ({"multi_rotary_cache_concat_offset": "4096"}, ["nv_multi_rotary_cache_concat_offset"]),
    ({"VkExternalComputeQueueDataParamsNV_data": "1"}, ["VkExternalComputeQueueDataParamsNV_data"]),
    ({"nv_length_aux_stream_array": "0", "nv_use_external_data_initializer": "1",
      "nv_persistent_context_memory": "1", "nv_use_sync_gpu_allocator": "1"}, []),
])
def test_options_without_effect_say_so_once(options, keys, capfd):
    made = session_options(options)
    made.log_severity_level = 2
    run(onnxruntime.InferenceSession(model().SerializeToString(), made, enable_fallback=False))
    said = re.findall(r'provider option "(\w+)": accepted, no effect, because \w+',
                      "".join(capfd.readouterr()))
    assert said == keys


# --- profiles ---

def profile(least, usual, most, prefix="nv_"):
    return {f"{prefix}profile_min_shapes": least, f"{prefix}profile_opt_shapes": usual,
            f"{prefix}profile_max_shapes": most}


@pytest.mark.parametrize("prefix", ["nv_", ""])
def test_profile_limits_shapes_and_says_so(prefix):
    made = session(model(), profile("x:2x8", "x:4x8", "x:8x8", prefix))
    for rows in (2, 8, 5):
        run(made, rows)
    for rows in (1, 9):
        with pytest.raises(Exception, match=re.escape(
                f"input 'x' has size {rows} in dimension 0, expected 2 to 8 (profile 0); give other "
                "shapes, or add a profile")):
            run(made, rows)
    run(made, 3)


def test_of_several_profiles_one_that_fits_is_chosen_or_the_one_that_the_run_names():
    made = session(model(), profile("x:1x8,x:16x8", "x:2x8,x:20x8", "x:4x8,x:32x8"))
    for rows in (1, 20, 4, 32):
        run(made, rows)
    with pytest.raises(Exception, match=re.escape("input 'x' has size 10 in dimension 0, expected 1 "
                                                  "to 4 (profile 0), 16 to 32 (profile 1)")):
        run(made, 10)
    named = onnxruntime.RunOptions()
    named.add_run_config_entry("nv_profile_index", "1")
    run(made, 20, run_options=named)
    with pytest.raises(Exception, match=re.escape("expected 16 to 32 (profile 1)")):
        run(made, 2, run_options=named)
    run(made, 2)
    named.add_run_config_entry("nv_profile_index", "2")
    with pytest.raises(Exception, match="nv_profile_index is 2, but the engine has 2 profiles"):
        run(made, 20, run_options=named)


@pytest.mark.parametrize("options, text", [
    (profile("x:1x8", "x:1x8", ""), '"nv_profile_max_shapes" is missing'),
    (profile("x:1x8", "x:1x8", "z:1x8"), '"nv_profile_max_shapes" has no shape for \'x\''),
    (profile("z:1x8", "z:1x8", "z:1x8"), "the profile shapes name 'z', which is no input of the "
                                         "model; its inputs are x"),
    (profile("x:1x8", "x:1x8", "x:1x8x1"), "profile 0: the shapes of 'x' differ in rank"),
    (profile("x:1", "x:1", "x:1"), "'x' has 1 sizes, but the input has rank 2"),
    (profile("x:5x8", "x:4x8", "x:9x8"), "dimension 0 of 'x' has the least 5, the usual 4 and the "
                                         "greatest 9"),
    (profile("x:ax8", "x:1x8", "x:1x8"), '"x:ax8" has the size "a", expected whole numbers'),
    (profile("x1x8", "x:1x8", "x:1x8"), '"x1x8" is no shape, expected name:sizes'),
    (profile("x:-1x8", "x:1x8", "x:1x8"), 'has the size "-1"'),
    (profile("x:1x8,x:2x8", "x:1x8", "x:4x8"), "\"nv_profile_opt_shapes\" has 1 shapes for 'x'"),
])
def test_profiles_that_do_not_fit(options, text):
    with pytest.raises(Exception, match=re.escape(text)):
        session(model(), options)


# --- what options do ---

def test_excluded_operators_run_elsewhere():
    from onnxruntime_plugin import assigned
    mixed = cut_model()
    made = session(mixed, {"nv_op_types_to_exclude": " Softmax , NoSuchOperator"}, whole=False,
                   entries={"session.record_ep_graph_assignment_info": "1"})
    record = assigned(made)
    assert record[NAME] == ["Abs", "MatMul", "Neg", "Relu"]
    assert record["CPUExecutionProvider"] == ["Softmax"]
    x = np.random.default_rng(8).standard_normal((5, 8)).astype(np.float32)
    np.testing.assert_allclose(made.run(None, {"x": x})[0], on_cpu(mixed, {"x": x})[0], rtol=1e-5)


def test_one_node_beside_others_is_left_alone():
    from onnxruntime_plugin import assigned
    mixed = model_of([helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
                     {"x": (FLOAT, ["n", 8])}, {"y": (FLOAT, ["n", 8])})
    made = session(mixed, {"nv_op_types_to_exclude": "Softmax"}, whole=False,
                   entries={"session.record_ep_graph_assignment_info": "1"})
    assert list(assigned(made)) == ["CPUExecutionProvider"]
    with pytest.raises(Exception, match="fallback to CPU EP has been explicitly disabled"):
        session(mixed, {"nv_op_types_to_exclude": "Softmax"})


@pytest.mark.parametrize("precision, least, most", [("fp16", 1e-7, 2e-2), ("bf16", 1e-5, 2e-1)])
def test_precision_computes_a_float_model_in_half(precision, least, most):
    rng = np.random.default_rng(9)
    wide = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (FLOAT, [4, 256])},
                    {"y": (FLOAT, [4, 256])}, {"w": rng.standard_normal((256, 256)).astype(np.float32)})
    x = rng.standard_normal((4, 256)).astype(np.float32)
    want = on_cpu(wide, {"x": x})[0]
    got, = session(wide, {"ingot_precision": precision}).run(None, {"x": x})
    error = np.abs(got - want).max() / np.abs(want).max()
    assert got.dtype == np.float32 and least < error < most


def test_runtime_cache_has_a_file_for_each_engine_after_the_session(tmp_path):
    folder = tmp_path / "a" / "cache"
    for _ in range(2):
        made = session(model(), {"nv_runtime_cache_path": str(folder)})
        run(made)
        assert folder.is_dir()
        del made
        assert len(list(folder.iterdir())) == 1
    made = session(model(), {"nv_runtime_cache_path": str(tmp_path / "b")})
    assert not list((tmp_path / "b").iterdir())
    del made  # without a run
    assert len(list((tmp_path / "b").iterdir())) == 1


def test_runtime_cache_that_is_damaged_is_replaced(tmp_path):
    del_me = session(model(), {"nv_runtime_cache_path": str(tmp_path)})
    del del_me
    file, = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(b"damaged")
    made = session(model(), {"nv_runtime_cache_path": str(tmp_path)})
    run(made)
    del made
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [whole]


def test_runtime_cache_that_is_no_folder_is_a_warning(tmp_path, capfd):
    (tmp_path / "file").write_text("mine")
    options = session_options({"nv_runtime_cache_path": str(tmp_path / "file")})
    options.log_severity_level = 2
    run(onnxruntime.InferenceSession(model().SerializeToString(), options, enable_fallback=False))
    assert (tmp_path / "file").read_text() == "mine"
    assert "cannot be used" in capfd.readouterr().err


def test_dumped_subgraphs_run_on_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session(model(), {"nv_dump_subgraphs": "1"})
    dumped, = tmp_path.iterdir()
    assert dumped.suffix == ".onnx"
    x = np.ones((2, 8), np.float32)
    np.testing.assert_array_equal(on_cpu(onnx.load(dumped), {"x": x})[0],
                                  on_cpu(model(), {"x": x})[0])


def cut_model():
    """At Softmax, into two parts."""
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("Softmax", ["b"], ["c"]), helper.make_node("Neg", ["c"], ["d"]),
         helper.make_node("Abs", ["d"], ["y"])],
        {"x": (FLOAT, ["n", 8])}, {"y": (FLOAT, ["n", 8])}, {"w": np.eye(8, dtype=np.float32)})


def test_each_part_is_dumped_into_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session(cut_model(), {"nv_dump_subgraphs": "1", "nv_op_types_to_exclude": "Softmax"}, whole=False)
    parts = {tuple(n.op_type for n in onnx.load(p).graph.node): onnx.load(p) for p in tmp_path.iterdir()}
    assert set(parts) == {("MatMul", "Relu"), ("Neg", "Abs")}
    x = np.linspace(-2, 2, 16, dtype=np.float32).reshape(2, 8)
    for part, want in zip(sorted(parts), (np.maximum(x, 0), np.abs(x))):
        name = parts[part].graph.input[0].name
        np.testing.assert_array_equal(on_cpu(parts[part], {name: x})[0], want)


def messages(capfd, made_with, level=1):
    """The log of a session of model() with these options that is made, run and closed."""
    options = session_options(made_with)
    options.log_severity_level = level
    made = onnxruntime.InferenceSession(model().SerializeToString(), options, enable_fallback=False)
    run(made)
    del made
    return "".join(capfd.readouterr())


@pytest.fixture
def talkative_environment():
    """Messages at the end of a session go to the environment's logger."""
    onnxruntime.set_default_logger_severity(1)
    yield
    onnxruntime.set_default_logger_severity(2)


def test_detailed_log_says_what_was_claimed_built_and_cached(talkative_environment, tmp_path, capfd):
    said = messages(capfd, {"nv_detailed_build_log": "1", "nv_runtime_cache_path": str(tmp_path)})
    for text in (r"claimed 2 of 2 nodes in \d+ ms of CPU time", r"TensorRT engine build for \w+ took: \d+ ms",
                 r"the subgraph of 2 nodes from .*: \d+ layers after fusion",
                 r"runtime cache: \d+ bytes to '"):
        assert re.search(text, said), (text, said)
    again = messages(capfd, {"nv_detailed_build_log": "1", "nv_runtime_cache_path": str(tmp_path)})
    assert re.search(r"runtime cache: \d+ bytes from '", again)
    assert "layers after fusion" not in messages(capfd, {})


def test_profile_that_cannot_be_written_is_one_warning(tmp_path, capfd):
    said = messages(capfd, {"nv_enable_profiling": "1", "enable_cuda_graph": "1",
                            "nv_profiling_output_file": str(tmp_path / "none" / "p.json")}, level=2)
    assert said.count("the profile is not written: ") == 1


def test_profile_has_a_name_of_its_own_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(session(model(), {"nv_enable_profiling": "1"}))
    file, = tmp_path.iterdir()
    assert re.fullmatch(r"trt_rtx_profile_\d{8}_\d{6}_\d+\.json", file.name)


def test_profile_file_has_the_layers_of_every_run(tmp_path):
    path = tmp_path / "times.json"
    made = session(model(), {"nv_enable_profiling": "1", "nv_profiling_output_file": str(path)})
    for runs in (1, 2):
        run(made)
        events = json.loads(path.read_text())
        assert [e["ph"] for e in events if e["name"] == "process_name"] == ["M"]
        layers = [e for e in events if e["ph"] == "X"]
        assert {e["tid"] for e in layers} == set(range(runs)) and {e["pid"] for e in layers} == {0}
        assert all(e["cat"] == "nv::trt::layer" and e["dur"] >= 0 and e["args"]["onnx_nodes"]
                   for e in layers)
        assert min(e["ts"] for e in layers) == 0


def test_dynamic_options():
    made = session(model())
    run(made)
    if not hasattr(made, "set_ep_dynamic_options"):
        pytest.skip("this onnxruntime cannot change options of a session from Python: NOT tested")
    for value in ("Efficient", "Default"):
        made.set_ep_dynamic_options({"ep.dynamic.workload_type": value})
        run(made)
    made.set_ep_dynamic_options({"nv_weight_streaming_budget": "50%"})
    run(made)
    with pytest.raises(Exception, match='"ep.dynamic.workload_type" is "Fast", expected Default'):
        made.set_ep_dynamic_options({"ep.dynamic.workload_type": "Fast"})
    with pytest.raises(Exception, match="Invalid nv_weight_streaming_budget: x"):
        made.set_ep_dynamic_options({"nv_weight_streaming_budget": "x"})
    with pytest.raises(Exception, match='Unknown dynamic option: "nv_what"; known are '
                                        '"ep.dynamic.workload_type" and "nv_weight_streaming_budget"'):
        made.set_ep_dynamic_options({"nv_what": "1"})
    run(made)


def with_run_options(**entries):
    options = onnxruntime.RunOptions()
    for key, value in entries.items():
        options.add_run_config_entry(key, value)
    return options


@pytest.mark.parametrize("key", ["gpu_graph_id", "cuda_graph_annotation_id"])
def test_graph_ids_choose_graphs_and_minus_one_none(key):
    made = session(model(), {"enable_cuda_graph": "1", "ingot_max_graphs": "2"})
    for rows in (3, 5):
        for graph in ("0", "1", "-1", "2", "1", "0", "-1"):
            run(made, rows, run_options=with_run_options(**{key: graph}))


@pytest.mark.parametrize("entries, text", [
    ({"cuda_graph_annotation_id": "abc"}, '"cuda_graph_annotation_id": got "abc", expected an integer'),
    ({"cuda_graph_annotation_id": "-2"}, 'run option "cuda_graph_annotation_id" is -2, expected the '
                                         "number of a graph, 0 or more, or -1 for a run without one"),
    ({"gpu_graph_id": "1", "cuda_graph_annotation_id": "2"},
     'run options "gpu_graph_id" and "cuda_graph_annotation_id" are the same option: got 1 and 2'),
    ({"gpu_graph_id": "abc"}, "abc"),  # ONNX Runtime's own text
    ({"nv_profile_index": "x"}, '"nv_profile_index": got "x", expected an integer'),
])
def test_run_options_that_are_wrong(entries, text):
    made = session(model(), {"enable_cuda_graph": "1"})
    with pytest.raises(Exception, match=re.escape(text)):
        run(made, run_options=with_run_options(**entries))
    run(made)


# --- ONNX Runtime's profile ---

HAS_PROFILER = RELEASE >= (1, 25)


def events_of(made, runs):
    for _ in range(runs):
        run(made)
    with open(made.end_profiling(), encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.skipif(not HAS_PROFILER, reason="onnxruntime before 1.25 asks no provider for its profile: "
                                             "that was NOT tested")
def test_profile_of_onnxruntime_has_the_layers_of_our_runs(tmp_path):
    options = session_options()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    made = onnxruntime.InferenceSession(model().SerializeToString(), options, enable_fallback=False)
    events = events_of(made, 3)
    ours = [e for e in events if e.get("args", {}).get("provider") == NAME and e["cat"] == "Kernel"]
    nodes = [e for e in events if e["cat"] == "Node" and e["name"].startswith(NAME)]
    assert ours and len(nodes) == 3 and len(ours) % 3 == 0, events
    for e in ours:
        assert e["args"]["onnx_nodes"] == e["name"] and "subgraph of" in e["args"]["subgraph"]
    # The layers of a run lie inside its node.
    for i, node in enumerate(sorted(nodes, key=lambda e: e["ts"])):
        part = sorted(ours, key=lambda e: e["ts"])[i * len(ours) // 3:(i + 1) * len(ours) // 3]
        assert all(node["ts"] - 1 <= e["ts"] <= node["ts"] + node["dur"] for e in part), (node, part)


@pytest.mark.skipif(not HAS_PROFILER, reason="onnxruntime before 1.25 asks no provider for its profile: "
                                             "that was NOT tested")
def test_runs_after_the_profile_has_ended_are_as_before(tmp_path):
    options = session_options({"enable_cuda_graph": "1"})
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    made = onnxruntime.InferenceSession(model().SerializeToString(), options, enable_fallback=False)
    events_of(made, 1)
    for rows in (3, 4, 3):
        run(made, rows)
