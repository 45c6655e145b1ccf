# SPDX-License-Identifier: Apache-2.0
"""ingot perf-test: the command lines of the provider's documentation, its output, and the
effects of its options."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command
from onnxruntime_plugin import NAME, REPOSITORY, SIMULATED, library, model_of, onnxruntime

FLOAT = TensorProto.FLOAT
SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")
ON_US = ["-e", "nvtensorrtrtx", "-C", "session.disable_cpu_ep_fallback|1"]
NUMBER = r"[0-9.e+-]+"
REPORT = "".join(f"{line}\n" for line in [
    rf"Session creation time cost: {NUMBER} s", r"First inference time cost: \d+ ms",
    rf"Total inference time cost: {NUMBER} s", r"Total inference requests: (?P<requests>\d+)",
    r"Average inference time cost total: (?P<average>\d+\.\d{6}) ms",
    rf"Total inference run time: (?P<whole>{NUMBER}) s",
    rf"Number of inferences per second: {NUMBER} ", r"Avg CPU usage: \d+ %",
    r"Peak working set size: (?P<peak>\d+) bytes"])
SUMMARY = "".join(f"{line}\n" for line in [
    r"Avg CPU usage:\d+", r"Peak working set size:\d+", r"Runs:(?P<runs>\d+)"])
PERCENTILES = "".join(f"{name} Latency: (?P<{name}>{NUMBER}) s\n" for name in
                      ("Min", "Max", "P50", "P90", "P95", "P99", "P999"))


def onnxruntime_library():
    folder = pathlib.Path(onnxruntime.__file__).parent / "capi"
    return next(folder.glob("libonnxruntime.so*"))


@pytest.fixture
def model(tmp_path):
    """y = Relu(x W): x is float32 [n, 16]; W is [16, 8]."""
    rng = np.random.default_rng(1)
    made = model_of([helper.make_node("MatMul", ["x", "w"], ["a"]),
                     helper.make_node("Relu", ["a"], ["y"])],
                    {"x": (FLOAT, ["n", 16])}, {"y": (FLOAT, ["n", 8])},
                    {"w": rng.standard_normal((16, 8)).astype(np.float32)})
    path = tmp_path / "model" / "model.onnx"
    path.parent.mkdir()
    onnx.save(made, path)
    return path


def start(words, cwd, **changed):
    """The finished process; stdout and stderr apart. Variables that are None are taken away."""
    environment = {**os.environ, "INGOT_ALLOW_CPU": "0" if SIMULATED else "1",
                   "INGOT_ONNXRUNTIME": str(library()),
                   "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("INGOT_ORT_LIBRARY", None)
    for name, value in changed.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = str(value)
    return subprocess.run([str(w) for w in words], cwd=cwd, env=environment, capture_output=True,
                          text=True, timeout=300, check=False)


def perf(*words, cwd, **changed):
    done = start([ingot_command.binary(), "perf-test", *words], cwd, **changed)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(*words, cwd, code=2, **changed):
    done = start([ingot_command.binary(), "perf-test", *words], cwd, **changed)
    assert done.returncode == code, done.stdout + done.stderr
    return re.split(r"^ingot perf-test: error: ", done.stderr, flags=re.M)[1].strip()


def document_lines():
    """The command lines of the provider's documentation."""
    pages = sorted((SHARED / "spec").glob("000_*")) if SHARED.is_dir() else []
    if not pages:
        return []
    return re.findall(r"^onnxruntime_perf_test.*$", pages[0].read_text(encoding="utf-8"), re.M)


LINES = document_lines()


@pytest.mark.skipif(not LINES, reason=f"no spec/000 in {SHARED}: its command lines were NOT run")
@pytest.mark.parametrize("line", LINES)
def test_line_of_the_documentation_runs(line, model, tmp_path):
    words = shlex.split(line)
    assert words[0] == "onnxruntime_perf_test.exe"
    program = tmp_path / "onnxruntime_perf_test"
    program.symlink_to(ingot_command.binary())
    places = {"model.onnx": model, "/path/to/model.onnx": model,
              "/path/to/model_ctx.onnx": tmp_path / "model_ctx.onnx"}
    done = start([program, *(places.get(w, w) for w in words[1:])], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(REPORT + SUMMARY + PERCENTILES + r"\Z", done.stdout)
    assert found, done.stdout
    if "--compile_ep_context" in words:
        assert found["requests"] == "1"
        assert re.match(rf"\n> Compiling model...\nCompile time cost: {NUMBER} s\nModel compiled "
                        r"successfully to \S+/model_ctx.onnx\n\n> Running EP context model...\nSession",
                        done.stdout)
        nodes = onnx.load(tmp_path / "model_ctx.onnx").graph.node
        assert [n.op_type for n in nodes] == ["EPContext"]
    else:
        seconds = float(words[words.index("-t") + 1])
        assert seconds <= float(found["whole"]) < seconds + 5


@pytest.mark.skipif(not LINES, reason=f"no spec/000 in {SHARED}: its spelling of -e was NOT run")
def test_provider_as_the_documentation_spells_it_at_its_end(model, tmp_path):
    page = next((SHARED / "spec").glob("000_*")).read_text(encoding="utf-8")
    name = re.search(r"use the flag `-e (\w+)`", page)[1]
    text = perf("-I", "-r", "1", "-e", name, "-C", "session.disable_cpu_ep_fallback|1", model,
                cwd=tmp_path)
    assert re.match(REPORT, text)


def test_report_agrees_with_itself(model, tmp_path):
    found = re.fullmatch(REPORT + SUMMARY + PERCENTILES,
                         perf("-I", "-r", "50", *ON_US, model, cwd=tmp_path))
    assert found["requests"] == found["runs"] == "50"
    order = [float(found[name]) for name in ("Min", "P50", "P90", "P95", "P99", "P999", "Max")]
    assert order == sorted(order) and order[0] > 0
    assert order[0] <= float(found["average"]) / 1000 <= order[-1]
    assert int(found["peak"]) > 10_000_000


def test_result_file_grows_by_a_line_for_each_run(model, tmp_path):
    for _ in range(2):
        text = perf("-I", "-m", "times", "-r=3", model, tmp_path / "times.csv", cwd=tmp_path)
        assert re.fullmatch(REPORT, text)
    rows = (tmp_path / "times.csv").read_text().splitlines()
    assert len(rows) == 6
    assert all(re.fullmatch(rf"model,{NUMBER},\d+,\d+,{i % 3}", row) for i, row in enumerate(rows))
    text = perf("-I", "-r", "3", "-s", model, tmp_path / "more.csv", cwd=tmp_path)
    assert re.fullmatch(REPORT + PERCENTILES, text)
    assert re.search(PERCENTILES, (tmp_path / "more.csv").read_text())


def test_runs_beside_each_other_are_as_many_as_asked(model, tmp_path):
    text = perf("-I", "-r", "40", "-c", "4", "-v", *ON_US, model, cwd=tmp_path)
    assert re.search(REPORT, text)["requests"] == "40"
    assert [int(n) for n in re.findall(r"^iteration:(\d+),time_cost:", text, re.M)] == \
        list(range(1, 41))


def test_only_the_session_is_made(model, tmp_path):
    text = perf("-n", "--hold_ms_after_session_creation", "1", *ON_US, model, cwd=tmp_path)
    assert re.fullmatch(rf"\nSession creation time cost: {NUMBER} s\nSESSION_READY\n", text)


def shapes_run(folder):
    """The input shapes of each run of the node MatMul (or what it became), of ONNX Runtime's profile."""
    profile, = folder.glob("shapes_*.json")
    return [list(event["args"]["input_type_shape"][0].values())[0]
            for event in json.loads(profile.read_text())
            if event.get("args", {}).get("op_name") in ("MatMul", "FusedMatMul", "Gemm")]


def test_shapes_take_turns_in_one_session(model, tmp_path):
    perf("-I", "-r", "4", "-p", "shapes", "--data_shape", "x:[2,16][5,16]", model, cwd=tmp_path)
    assert shapes_run(tmp_path) == [[2, 16], [2, 16], [5, 16], [2, 16], [5, 16]]


def test_open_sizes_are_1_or_as_given(model, tmp_path):
    perf("-I", "-r", "1", "-p", "shapes", model, cwd=tmp_path)
    assert shapes_run(tmp_path) == [[1, 16], [1, 16]]
    for found in tmp_path.glob("shapes_*.json"):
        found.unlink()
    text = perf("-I", "-r", "1", "-p", "shapes", "-f", "n:7", model, cwd=tmp_path)
    assert text.startswith("Overriding dimension with name, n, to 7\n")
    assert shapes_run(tmp_path) == [[7, 16], [7, 16]]


def test_data_beside_the_model(model, tmp_path):
    for i, rows in enumerate((3, 6)):
        folder = model.parent / f"test_data_set_{i}"
        folder.mkdir()
        values = numpy_helper.from_array(np.ones((rows, 16), np.float32), "x")
        (folder / "input_0.pb").write_bytes(values.SerializeToString())
    perf("-r", "2", "-p", "shapes", model, cwd=tmp_path)
    assert shapes_run(tmp_path) == [[3, 16], [3, 16], [6, 16]]
    for found in tmp_path.glob("shapes_*.json"):
        found.unlink()
    perf("-r", "2", "-p", "shapes", "--data_shape", "x:[6,16]", model, cwd=tmp_path)
    assert shapes_run(tmp_path) == [[6, 16]] * 3


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_, np.int8, np.uint16, np.int32,
                                   np.int64])
def test_inputs_are_made_of_each_type(dtype, tmp_path):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    onnx.save(model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": (element, [2, "n"])},
                       {"y": (element, [2, "n"])}), tmp_path / "m.onnx")
    assert re.match(REPORT, perf("-I", "-S", "5", "-r", "1", "m.onnx", cwd=tmp_path))


def test_devices_are_listed(tmp_path):
    text = perf("--list_ep_devices", cwd=tmp_path)
    blocks = re.findall(r"===== device id (\d+) ======\nname: (\w+)\nvendor: (\w+)\n", text)
    assert blocks[0] == ("0", "CPUExecutionProvider", "Microsoft")
    assert ("1", NAME, "Ingot") in blocks
    assert "  device_id: 0\n" in text


def test_library_of_a_provider_by_its_flags(model, tmp_path):
    ours = ["--plugin_ep_libs", f"IngotExecutionProvider|{library()}",
            "-C", "session.disable_cpu_ep_fallback|1", "-I", "-r", "2"]
    for more in ([], ["--plugin_eps", "IngotExecutionProvider"], ["--select_ep_devices", "1"],
                 ["--filter_ep_devices", "device_id|0"],
                 ["--plugin_ep_options", "nv_dump_subgraphs|1"]):
        assert re.match(REPORT, perf(*ours, *more, model, cwd=tmp_path))
    assert list(tmp_path.glob("*.onnx")), "nv_dump_subgraphs reached the provider"
    assert refused(*ours, "--plugin_ep_options", "nv_dump_subgraphs|0;a|1;", model, cwd=tmp_path) == (
        "--plugin_ep_options: 'a|1;' is left over; expected options of IngotExecutionProvider only")


def test_options_reach_the_provider(model, tmp_path):
    cache = tmp_path / "a cache"
    perf("-I", "-r", "1", *ON_US, "-i", f'enable_cuda_graph|1 nv_runtime_cache_path|"{cache}"', model,
         cwd=tmp_path)
    assert cache.is_dir()
    assert 'nv_runtime_cache_pat' in refused("-I", "-r", "1", *ON_US, "-i", "nv_runtime_cache_pat|x",
                                             model, cwd=tmp_path, code=1)


@pytest.mark.parametrize("embed", [False, True])
def test_compiles_only(embed, model, tmp_path):
    words = ["--compile_binary_embed"] if embed else []
    text = perf("-I", "-r", "1", "-e", "nvtensorrtrtx", "--compile_ep_context", "--compile_only",
                *words, model, cwd=tmp_path)
    assert re.fullmatch(rf"\n> Compiling model...\nCompile time cost: {NUMBER} s\n"
                        "Model compiled successfully to model_ctx.onnx\n", text)
    assert (tmp_path / "model_ctx.onnx").is_file()
    assert len(list(tmp_path.glob("*.engine"))) == (0 if embed else 1)


@pytest.mark.parametrize("simulated", [None, "1"], ids=["host", "simulated GPU"])
def test_inputs_and_outputs_in_device_memory(simulated, model, tmp_path):
    text = perf("-I", "-r", "3", "-g", "-f", "n:2", *ON_US, model, cwd=tmp_path,
                INGOT_SIMULATED_GPU=simulated, INGOT_ALLOW_CPU="0" if simulated else "1")
    assert re.search(REPORT, text)["requests"] == "3"


def test_saves_the_optimised_model_and_settings_of_threads(model, tmp_path):
    text = perf("-I", "-r", "1", "-l", "-u", "opt.onnx", "-o", "1", "-x", "2", "-y", "2", "-P", "-D",
                "-Z", "-z", "-A", "-M", "-T", "1", "-noI", "-I=true", model, cwd=tmp_path)
    assert text.startswith("Setting intra_op_num_threads to 2\nSetting inter_op_num_threads to 2\n")
    assert onnx.load(tmp_path / "opt.onnx").graph.node


def test_where_the_library_is_found(model, tmp_path):
    words = ("-I", "-r", "1", model)
    nowhere = {"PATH": "/nonexistent"}
    assert perf(*words, cwd=tmp_path, INGOT_ORT_LIBRARY=onnxruntime_library(), **nowhere)
    assert perf(*words, "--ort-library", onnxruntime_library(), cwd=tmp_path, **nowhere)
    said = refused(*words, cwd=tmp_path, code=1, **nowhere)
    assert said.startswith("cannot open ONNX Runtime; pip install onnxruntime, and name the "
                           "libonnxruntime.so.* of its folder capi by INGOT_ORT_LIBRARY:\n")
    assert "libonnxruntime.so.1: cannot open shared object file" in said
    said = refused(*words, "--ort-library", "absent.so", cwd=tmp_path, code=1)
    assert said.startswith("--ort-library: cannot open ONNX Runtime") and "absent.so" in said


def test_without_a_device_it_says_what_is_needed(model, tmp_path):
    assert refused("-I", "-e", "nvtensorrtrtx", model, cwd=tmp_path, code=1, INGOT_ALLOW_CPU="0",
                   INGOT_SIMULATED_GPU=None) == (
        f"{NAME}: no device runs it here; see --list_ep_devices. It needs an NVIDIA GPU of compute "
        "capability 8.0 or higher and its driver, or INGOT_ALLOW_CPU=1 for the CPU")


@pytest.mark.parametrize("words, said", [
    (["-e", "cuda"], "-e: got 'cuda', expected cpu or nvtensorrtrtx; libraries of other providers are "
                     "named by --plugin_ep_libs"),
    (["--plugin_ep_lib", "x"], "there is no option --plugin_ep_lib; did you mean --plugin_ep_libs?"),
    (["-r", "0"], "-r: got '0', expected an integer >= 1"),
    (["-t=5s"], "-t: got '5s', expected an integer"),
    (["-m", "once"], "-m: got 'once', expected duration or times"),
    (["-I=maybe"], "-I: got 'maybe', expected true or false"),
    (["-i", "enable_cuda_graph"], "-i: got 'enable_cuda_graph', expected KEY|VALUE"),
    (["-i", 'a|"b'], '-i: a quote is not closed in a|"b'),
    (["-f", "n"], "-f: got 'n', expected NAME:N"),
    (["-f", "n:0"], "-f: got '0', expected an integer >= 1"),
    (["--data_shape", "x"], "--data_shape: got 'x', expected INPUT:[N,..][N,..]"),
    (["--data_shape", "x:[1,0]"], "--data_shape: got '0', expected an integer >= 1"),
    (["--data_shape", "a:[1][2] b:[1]"], "--data_shape: input 'b' has 1 shapes, 'a' has 2; expected as "
                                         "many for each"),
    (["-g", "-c", "2"], "-g with -c 2: one binding serves one run at a time, expected -c 1"),
    (["-X"], "-X: name the library of onnxruntime-extensions by -R instead"),
    (["other.onnx", "result"], "got 3 files, expected MODEL and RESULT_FILE: other.onnx, result, "
                               "m.onnx"),
    (["-I", "--data_shape", "z:[1]"], "--data_shape: there is no input 'z', expected one of x"),
    (["--select_ep_devices", "7"], "--select_ep_devices: got '7', expected 0 to 0; see "
                                   "--list_ep_devices"),
    (["--filter_ep_devices", "a|b"], "--filter_ep_devices: no device has a|b; see --list_ep_devices"),
])
def test_wrong_words(words, said, model, tmp_path):
    (tmp_path / "m.onnx").symlink_to(model)
    assert refused(*words, "m.onnx", cwd=tmp_path) == said


def test_a_value_is_missing(tmp_path):
    assert refused("-r", cwd=tmp_path) == "-r needs a value: N"
    assert refused("-I", cwd=tmp_path) == "no model: ingot perf-test [options...] MODEL [RESULT_FILE]"


def test_no_data_beside_the_model(model, tmp_path):
    assert refused("-r", "1", model, cwd=tmp_path, code=1) == (
        f"there is no test data for model {model}: expected folders test_data_set_* beside it, or -I, "
        "which makes inputs")


def test_a_failed_run_ends_all_threads(tmp_path):
    onnx.save(model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], {"x": (FLOAT, ["n"])},
                       {"y": (FLOAT, [2, 3])}, {"s": np.array([2, 3])}), tmp_path / "m.onnx")
    # The run before the measured ones has the first shape, which fits.
    assert "Reshape" in refused("-I", "-r", "5000", "-c", "3", "--data_shape", "x:[6][5]", "m.onnx",
                                cwd=tmp_path, code=1)


def test_help_lists_every_option(tmp_path):
    text = perf("--help", cwd=tmp_path)
    table = (REPOSITORY / "tools/ingot/perf_test_options.def").read_text()
    names = re.findall(r'^INGOT_PERF_OPTION\(\w+, \w+, (?:"[^"]*"|\{\}|[\w-]+), "([\w-]+)"', table,
                       re.M)
    assert len(names) > 50
    assert all(f"  {'-' if len(n) == 1 else '--'}{n}" in text for n in names)
