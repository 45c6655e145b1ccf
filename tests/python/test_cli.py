# SPDX-License-Identifier: Apache-2.0
"""The command line: its output, its files, and its error messages."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
from gpu_options import OF_A_GPU
from ingot_command import fails
from small_models import model_file, value

DIGITS = ingot.DIGITS / "digits.onnx"


@pytest.fixture(name="engine", scope="module")
def fixture_engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("engine") / "digits.engine"
    ingot.build(DIGITS, path, ["--minShapes=image:1x1x8x8", "--optShapes=image:4x1x8x8", "--maxShapes=image:9x1x8x8"])
    return path


def test_same_input_gives_same_engine_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ingot.build(DIGITS, tmp_path / name / "x.engine")
    assert (tmp_path / "a" / "x.engine").read_bytes() == (tmp_path / "b" / "x.engine").read_bytes()


def test_performance_summary_has_every_line(engine, tmp_path):
    text = ingot.call("bench", f"--loadEngine={engine}", "--iterations=50", "--duration=0", "--warmUp=10",
                      "--percentile=50,99", "--dumpProfile", f"--exportTimes={tmp_path}/times.json",
                      f"--exportProfile={tmp_path}/profile.json", f"--exportOutput={tmp_path}/out.json",
                      f"--exportLayerInfo={tmp_path}/layers.json")
    number = r"[0-9.e+-]+"
    fields = rf"min = {number} ms, max = {number} ms, mean = {number} ms, median = {number} ms, " \
             rf"percentile\(50%\) = {number} ms, percentile\(99%\) = {number} ms"
    prefix = r"^\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[I\] "
    for line in (r"Engine deserialized in .* sec\.", r"Using random values for input image",
                 r"Created execution context with device memory size: .* MiB", r"Starting inference",
                 rf"Warmup completed \d+ queries over {number} ms", rf"Timing trace has 50 queries over {number} s",
                 r"=== Trace details ===", r"Trace averages of 10 runs:",
                 rf"Average on 10 runs - GPU latency: {number} ms - Host latency: {number} ms \(enqueue {number} ms\)",
                 r"=== Performance summary ===", rf"Throughput: {number} qps", rf"Latency: {fields}",
                 rf"Enqueue Time: {fields}", rf"H2D Latency: {fields}", rf"GPU Compute Time: {fields}",
                 rf"D2H Latency: {fields}", rf"Total Host Walltime: {number} s", rf"Total GPU Compute Time: {number} s",
                 r"=== Profile \(50 iterations \) ===", r"   Time\(ms\)     Avg.\(ms\)   Median\(ms\)   Time\(%\)   Layer"):
        assert re.search(prefix + line + "$", text, re.MULTILINE), f"no line {line!r} in\n{text}"
    times = json.loads((tmp_path / "times.json").read_text())
    assert len(times) == 50 and set(times[0]) == {
        "startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs", "endComputeMs", "startD2hMs", "endD2hMs",
        "h2dMs", "computeMs", "d2hMs", "latencyMs"}
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile[0]["count"] == 50 and abs(sum(layer["percentage"] for layer in profile[1:]) - 100) < 0.1
    out = json.loads((tmp_path / "out.json").read_text())
    assert out[0]["name"] == "scores" and out[0]["dimensions"] == "4x10" and len(out[0]["values"]) == 40
    assert set(json.loads((tmp_path / "layers.json").read_text())) == {"Layers", "I/O Tensors"}


def test_percentile_formula(engine, tmp_path):
    text = ingot.call("bench", f"--loadEngine={engine}", "--iterations=37", "--duration=0", "--warmUp=0",
                      "--percentile=90", f"--exportTimes={tmp_path}/times.json")
    latency = sorted(t["latencyMs"] for t in json.loads((tmp_path / "times.json").read_text()))
    n = len(latency)
    expected = latency[max(n - 1 - int((1 - 90 / 100) * n), 0)]
    shown = float(re.search(r"\] Latency: .*percentile\(90%\) = ([0-9.e+-]+) ms", text).group(1))
    assert shown == pytest.approx(expected, rel=1e-4)


def test_missing_inputs_are_random_with_a_fixed_seed(engine, tmp_path):
    results = []
    for seed, folder in ((0, "a"), (0, "b"), (1, "c")):
        text = ingot.call("run", engine, f"--seed={seed}", "--save-outputs", tmp_path / folder)
        assert f"Using random values for input image (seed {seed})" in text
        results.append(np.load(tmp_path / folder / "scores.npy"))
    assert np.array_equal(results[0], results[1]) and not np.array_equal(results[0], results[2])


def test_check_lists_every_unsupported_node(tmp_path):
    path = model_file(tmp_path / "m.onnx", [
        helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NoSuchOp", ["a"], ["b"], name="first"),
        helper.make_node("StringNormalizer", ["a"], ["c"], name="second"),
        helper.make_node("Custom", ["a"], ["d"], name="third", domain="my.domain"),
        helper.make_node("Add", ["b", "c"], ["y"])], [value("x", [2])], [value("y", [2])])
    code, text = fails("check", path)
    assert code == 1
    for word in ("first: NoSuchOp (opset 17)", "second: StringNormalizer (opset 17)", "third: my.domain.Custom"):
        assert word in text
    assert "Add" not in text and "3 unsupported" in text
    data = json.loads(fails("check", path, "--json")[1])
    assert not data["supported"] and len(data["refused"]) == 3


def test_inspect(engine, tmp_path):
    data = json.loads(ingot.call("inspect", engine, "--json"))
    assert data["inputs"] == [{"name": "image", "type": "f32[batch,1,8,8]", "format": "chw"}]
    assert data["profiles"] == [[{"input": "image", "min": "1x1x8x8", "opt": "4x1x8x8", "max": "9x1x8x8"}]]
    assert data["operators"]["conv"] >= 1
    assert "= conv(" in ingot.call("inspect", DIGITS, "--dump-after=import")
    ingot.call("inspect", DIGITS, "--graph", tmp_path / "g.svg")
    ingot.call("inspect", DIGITS, "--graph", tmp_path / "g.dot")
    assert (tmp_path / "g.svg").read_text().startswith("<svg") and "digraph" in (tmp_path / "g.dot").read_text()
    assert ingot.call("inspect", engine, "--layers").count("\n") >= 3
    assert "--dump-after: there is no pass 'simplifi', did you mean 'simplify'?" in fails("inspect", DIGITS, "--dump-after=simplifi")[1]
    listed = ingot.call("inspect", DIGITS, "--dump-after=list").split()
    assert listed[0] == "import" and listed.index("fold_constants") < listed.index("fuse_epilogues")
    assert listed.count("dead_code") == 1
    for model, gpu in ((DIGITS, []), (engine, []), (DIGITS, ["--for=90"]), (engine, ["--for=90"])):
        for extra in ([], ["--verify-passes"]):
            assert "fused(" in ingot.call("inspect", model, "--dump-after=fuse_epilogues", *gpu, *extra)
        text = ingot.call("inspect", model, "--dump-after=dead_code", "--disablePass=fuse_epilogues", *gpu)
        assert "graph " in text and "fused(" not in text
        assert "merge_dots" in ingot.call("inspect", model, "--dump-after=list", *gpu) or not gpu


def test_inspect_prints_the_plan(engine, monkeypatch):
    on_cpu = ingot.call("inspect", engine, "--plan", "--shapes=image:3x1x8x8")
    assert "input b0 'image' f32[3,1,8,8]" in on_cpu and "  step 0: conv " in on_cpu
    assert "bytes at " in on_cpu and "constant f32" in on_cpu
    assert "f32[4,1,8,8]" in ingot.call("inspect", engine, "--plan"), "what the profile expects"
    on_gpu = {cc: ingot.call("inspect", engine, "--plan", f"--for={cc}") for cc in (80, 90)}
    assert on_gpu[80] != on_cpu and "  step 0: conv " in on_gpu[80]
    for text in (on_cpu, *on_gpu.values()):
        assert text.startswith("1 segment\n") and "output b1 'scores'" in text
    fewer = ingot.call("inspect", engine, "--plan", "--disablePass=fuse_epilogues")
    assert fewer.count("  step ") > on_cpu.count("  step ")
    assert "there is no input 'x', expected one of [image]" in fails("inspect", engine, "--plan", "--shapes=x:3")[1]
    own_loops = ingot.call("inspect", engine, "--plan", "--noCpuLibrary")
    assert "(own)" in own_loops and "onednn" not in own_loops
    plans = {ingot.call("inspect", engine, "--plan", f"--threads={n}") for n in (1, 8)}
    assert len(plans) == 2, "kernels of the library take scratch memory for each thread"
    assert ingot.call("inspect", engine, "--plan", "--verify-passes") == ingot.call("inspect", engine, "--plan")
    assert "onednn" in on_cpu
    monkeypatch.setenv("INGOT_NO_LIBRARY", "1")
    assert ingot.call("inspect", engine, "--plan") == own_loops


def test_compare_agrees_with_both_references():
    text = ingot.call("compare", DIGITS, "--shapes=image:3x1x8x8", "--layers")
    assert "against float64 evaluator" in text and text.rstrip().endswith("agrees")
    assert "first wrong" not in text and "\n  not compared, as no step writes them alone (fused or folded): " in text
    assert "layer" not in ingot.call("compare", DIGITS, "--shapes=image:3x1x8x8"), "without --layers"


def test_layers_are_compared_in_the_order_of_steps(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("INGOT_PYTHON", "")
    arguments = ("compare", DIGITS, "--layers", "--atol=0", "--rtol=0", "--device=cpu")
    text = fails(*arguments)[1]
    steps = re.findall(r"  step \d+: \w+ '([^']*)'", ingot.call("inspect", DIGITS, "--plan"))
    listed = re.findall(r"^  (?:ok  |FAIL) layer (\S+) \(node '([^']*)', (f32\[[\d,]+\])\): ", text, re.MULTILINE)
    assert len(listed) >= 2 and [node for _, node, _ in listed] == [step for step in steps if step in {n for _, n, _ in listed}]
    name, node, shape = listed[0]
    first = re.search(r"^first wrong: layer (\S+) \(node '([^']*)', (\S+)\), (\d+) of (\d+) elements from index (\d+) on$", text,
                      re.MULTILINE)
    assert first and first.groups()[:3] == (name, node, shape), text
    reference = json.loads(fails(*arguments, "--json")[1])["references"][-1]
    layer = reference["layers"][0]
    assert (layer["name"], layer["node"], layer["type"]) == (name, node, "f32")
    assert (layer["wrong"], layer["elements"], layer["firstWrong"]) == tuple(int(n) for n in first.groups()[3:])
    assert steps[layer["step"]] == node and layer["shape"][1:] and reference["firstWrong"] == first.group()
    assert set(reference["notCompared"]).isdisjoint(entry["name"] for entry in reference["layers"])


def test_compare_finds_a_difference(tmp_path, monkeypatch):
    """A tolerance of zero against float64 cannot hold for a real network in f32, and no rounding excuses it."""
    monkeypatch.setenv("PATH", str(tmp_path))  # no ONNX Runtime, whose own difference would do
    monkeypatch.setenv("INGOT_PYTHON", "")
    code, text = fails("compare", DIGITS, "--atol=0", "--rtol=0")
    assert code == 1 and "FAIL output scores" in text and text.endswith("DIFFERS; how to find the reason: docs/inspecting.md, Wrong results\n")


@pytest.mark.parametrize("arguments, told", [
    (["run"], "model is required"),
    (["build", DIGITS], "where should the engine go? give -o FILE"),
    (["build", DIGITS, "-o", "/nowhere/at/all.engine"], "/nowhere/at/all.engine"),
    (["build", DIGITS, "-o", "x.engine", "--fp16", "--bf16"], "--fp16 and --bf16 exclude each other; give one"),
    (["build", DIGITS, "-o", "x.engine", "--optShape=image:1x1x8x8"], "did you mean --optShapes?"),
    (["run", DIGITS, "--dumpProfile"], "(--dumpProfile is an option of ingot bench)"),
    (["build", DIGITS, "-o", "x.engine", "--optShapes=imge:1x1x8x8"], "there is no input 'imge', did you mean 'image'?"),
    (["build", DIGITS, "-o", "x.engine", "--optShapes=image:1x1x8"], "input 'image' has rank 4 [batch,1,8,8], got 1x1x8"),
    (["build", DIGITS, "-o", "x.engine", "--disablePass=simplifi"], "did you mean 'simplify'"),
    (["run", DIGITS, "--device=tpu"], "--device tpu: expected cpu, cuda or auto"),
    (["run", DIGITS, "--input", "image"], "--input image: expected NAME=FILE"),
    (["run", DIGITS, "--input", "imag=x.npy"], "there is no input 'imag', did you mean 'image'?"),
    (["run", DIGITS, "--shapes=image:1x2x8x8"], "input 'image' dimension 1 is 2, expected 1"),
    (["run", "no_such_file.onnx"], "no_such_file.onnx"),
    (["bench"], "give one model"),
    (["bench", DIGITS, "--percentile=101"], "--percentile=101: expected 0 to 100"),
    (["inspect", DIGITS, "--graph", "g.pdf"], "expected a name ending in .svg or .dot"),
    (["inspct", DIGITS], "there is no command 'inspct', did you mean 'inspect'? Commands: build"),
])
def test_misuse_is_explained(arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, text = fails(*arguments)
    assert told in text, text
    assert list(tmp_path.iterdir()) == [], "a failed command left files behind"


@pytest.mark.parametrize("arguments", [(), ("build",), ("trtexec",), ("perf-test",)])
def test_the_command_help_prints_what_the_option_does(arguments):
    text = ingot.call("help", *arguments)
    assert text == ingot.call(*arguments, "--help")
    assert "inspect" in text if not arguments else "--" in text
    assert fails("help", "biuld") == fails("biuld", "--help")


def test_inputs_of_the_wrong_type_or_shape_are_refused(engine, tmp_path):
    np.save(tmp_path / "f64.npy", np.zeros((1, 1, 8, 8)))
    np.save(tmp_path / "big.npy", np.zeros((10, 1, 8, 8), np.float32))
    (tmp_path / "junk.npy").write_bytes(b"\x93NUMPY junk")
    for name, told in (("f64", "holds f64, input 'image' is f32; convert it"),
                       ("big", "dimension 0 is 10, allowed 1 to 9"), ("junk", "npy")):
        assert told in fails("run", engine, "--input", f"image={tmp_path}/{name}.npy")[1]


def endless(tmp_path):
    """A model whose loop never ends by itself."""
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Identity", ["v"], ["v2"])],
                             "body", [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("v", [1])],
                             [value("c2", [], TensorProto.BOOL), value("v2", [1])])
    return model_file(tmp_path / "loop.onnx", [helper.make_node("Loop", ["", "go", "x"], ["y"], body=body)],
                      [value("x", [1]), value("go", [], TensorProto.BOOL)], [value("y", [1])])


def test_an_endless_loop_ends_at_the_time_limit(tmp_path):
    np.save(tmp_path / "go.npy", np.array(True))
    code, text = fails("run", endless(tmp_path), "--input", f"go={tmp_path}/go.npy", "--timeout=1")
    assert code == 130 and "stopped after the time limit of 1000 ms" in text


def wait_until_caught(child, number):
    """Until a process has a handler for a signal."""
    status = pathlib.Path(f"/proc/{child.pid}/status")
    while not int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.M)[1], 16) >> (number - 1) & 1:
        assert child.poll() is None
        time.sleep(0.01)


def test_an_endless_loop_ends_at_ctrl_c(tmp_path):
    np.save(tmp_path / "go.npy", np.array(True))
    child = subprocess.Popen([str(ingot.binary()), "run", str(endless(tmp_path)), "--input", f"go={tmp_path}/go.npy"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's jobs ignore it
    try:
        wait_until_caught(child, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=1)
        child.send_signal(signal.SIGINT)
        text, _ = child.communicate(timeout=20)
    finally:
        child.kill()
    assert child.returncode == 130 and "interrupted" in text


def test_a_run_has_written_its_lines_before_it_is_killed(tmp_path):
    np.save(tmp_path / "go.npy", np.array(True))
    with subprocess.Popen([str(ingot.binary()), "run", str(endless(tmp_path)), "--input", f"go={tmp_path}/go.npy"],
                          stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline().startswith("Device: ")
        finally:
            child.kill()


@pytest.mark.parametrize("command", [
    ["run", "ENGINE"], ["inspect", "ENGINE"], ["inspect", "ENGINE", "--layers"],
    ["bench", "--loadEngine=ENGINE", "--duration=0"], ["trtexec", "--loadEngine=ENGINE", "--duration=0"],
    ["trtexec", "--loadEngine=ENGINE", "--skipInference"], ["trtexec", "--loadEngine=ENGINE", "--timeDeserialize"],
    ["trtexec", "--loadEngine=ENGINE", "--saveEngine=OTHER"]], ids=lambda c: " ".join(c))
def test_damaged_weights_are_refused_by_every_command(command, engine, tmp_path):
    bytes_ = bytearray(engine.read_bytes())
    bytes_[4096 + 7] ^= 0x40  # the weights are the first section
    damaged, other = tmp_path / "damaged.engine", tmp_path / "other.engine"
    damaged.write_bytes(bytes_)
    command = [a.replace("ENGINE", str(damaged)).replace("OTHER", str(other)) for a in command]
    for flag in ([], ["--verify"]):
        code, text = fails(*command, *flag)
        assert code == 1
        assert f"{damaged}: section weights: chunk 0 of 1, bytes 4096 to " in text
        assert "does not match its hash: the file is damaged, copy it again or rebuild the engine" in text
        assert not other.exists()
    ingot.call(*command, "--noVerifyWeights")
    code, text = fails(*command, "--noVerifyWeights", "--verify")
    assert code == 1 and "--verify and --noVerifyWeights are given: leave one of them out" in text


def test_environment_sets_options_and_the_command_line_wins(engine, tmp_path, monkeypatch):
    def output(name, *arguments):
        ingot.call("run", engine, "--shapes=image:2x1x8x8", f"--save-outputs={tmp_path / name}", *arguments)
        return [np.load(path) for path in sorted((tmp_path / name).glob("*.npy"))]

    def same(a, b):
        return len(a) == len(b) > 0 and all(np.array_equal(x, y) for x, y in zip(a, b))

    seven, eight = output("seven", "--seed=7"), output("eight", "--seed=8")
    assert not same(seven, eight)
    monkeypatch.setenv("INGOT_SEED", "7")
    monkeypatch.setenv("INGOT_DURATION", "of another command")
    assert same(output("variable"), seven)
    assert same(output("both", "--seed=8"), eight)
    monkeypatch.setenv("INGOT_SEED", "seven")
    code, text = fails("run", engine)
    assert code == 2 and "seven" in text


def test_cache_in_one_file(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_RUNTIME_CACHE", str(tmp_path / "folder"))
    kernels = f"--runtimeCacheFile={tmp_path / 'kernels'}"
    assert "0 kernels" in ingot.call("cache", "ls", kernels)
    assert "0 kernels removed" in ingot.call("cache", "clear", kernels)
    other = tmp_path / "model.onnx"
    other.write_bytes(b"the only copy")
    code, text = fails("cache", "verify", f"--runtimeCacheFile={other}")
    assert code == 1 and "not a file of kernels" in text
    assert "0 kernels removed" in ingot.call("cache", "clear", f"--runtimeCacheFile={other}")
    assert other.read_bytes() == b"the only copy"


@pytest.mark.parametrize("command, option, expected", [
    ("run", "--tune=sometimes", "off, background or full"), ("run", "--specialisation=soon", "lazy, eager or none"),
    ("run", "--priority=urgent", "low, normal or high"), ("run", "--tuneBudget=-1", "0 or more"),
    ("run", "--memoryLimit=-1", "0 or more"), ("bench", "--iterations=ten", "a whole number"),
    ("bench", "--iterations=-1", "0 or more"), ("bench", "--duration=-2", "0 or more, or -1"),
    ("bench", "--percentile=50,101", "0 to 100"), ("bench", "--profilingVerbosity=some", "layer_names_only, detailed or none"),
    ("slim", "--size-threshold=-1", "0 or more"), ("calibrate", "--batches=-1", "0 or more"),
    ("calibrate", "--quantile=2", "0 to 1"),
])
def test_values_are_checked_with_the_command_line(command, option, expected, engine):
    code, text = fails(command, engine, option)
    assert (code, text) == (2, f"ingot: error: {option}: expected {expected}\nRun 'ingot {command} --help'.\n")


@pytest.mark.parametrize("option", OF_A_GPU)
def test_options_of_a_gpu_say_on_a_cpu_that_they_have_no_effect(option, engine):
    told = f"{option.split('=')[0]}: accepted, no effect, because {OF_A_GPU[option]}"
    text = ingot.call("run", engine, "--device=cpu", option)
    assert text.count(told) == 1, text
    assert "accepted, no effect" not in ingot.call("run", engine, "--device=cpu")


def test_hidden_files_are_read_when_allowed_by_name(tmp_path):
    weights = numpy_helper.from_array(np.arange(1024, dtype=np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", [1024])],
                              [value("y", [1024])], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, location=".secret", size_threshold=0)
    code, text = fails("build", tmp_path / "m.onnx", "-o", tmp_path / "e")
    assert code == 1 and "external data '.secret': the name is that of a hidden file" in text
    code, text = fails("build", tmp_path / "m.onnx", "-o", tmp_path / "e", "--allowHiddenFile", "secret")
    text = ingot.call("build", tmp_path / "m.onnx", "-o", tmp_path / "e", "--allowHiddenFile=.secret")
    assert f"external data is read from {tmp_path}/.secret, 4096 bytes" in text


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    name = "a\x1b[31mred\x9b\x07"
    broken = tmp_path / f"{name}.onnx"
    broken.write_bytes(b"no model")
    code, text = fails("inspect", broken)
    assert code == 1 and "a\\x1b[31mred\\xc2\\x9b\\x07.onnx" in text and "\x1b" not in text
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], [name])], [value("x", [2])],
                       [value(name, [2])])
    for command in (["inspect"], ["run", "--device=cpu"], ["check"], ["slim", "-o", tmp_path / "o.onnx"]):
        text = ingot.call(command[0], model, *command[1:])
        assert "\x1b" not in text and "\x07" not in text, command
    assert "a\\x1b[31mred" in ingot.call("inspect", model)


def test_a_pipe_is_no_calibration_cache(tmp_path, engine):
    os.mkfifo(tmp_path / "pipe")
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])],
                       [value("y", [2])])
    code, text = fails("run", model, "--device=cpu", "--int8", "--calib", tmp_path / "pipe")
    assert code == 1 and f"cannot read '{tmp_path}/pipe': it is not a regular file" in text


@pytest.mark.parametrize("count", ["-1", "1025", "9999999999"])
def test_numbers_of_threads_are_checked(count, engine):
    code, text = fails("run", engine, f"--threads={count}")
    assert code == 2 and f"--threads={count}: expected 0 to 1024" in text


def test_a_full_stdout_is_an_error(engine):
    for command in (["inspect", engine], ["run", engine, "--device=cpu"], ["trtexec", f"--loadEngine={engine}"], ["--help"],
                    ["--version"], ["build", "--help"], ["trtexec", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(ingot.binary()), *map(str, command)], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=120, check=False)
        assert done.returncode == 1, command
        assert "cannot write to stdout: No space left on device" in done.stderr, command


def test_the_shapes_of_a_run_are_known_to_the_importer(tmp_path):
    # Without axes a Squeeze needs to know which sizes are 1.
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Squeeze", ["x"], ["y"])], [value("x", ["n", 1, "m"])],
                       [value("y", None)])
    code, text = fails("run", model, "--device=cpu")
    assert code == 1 and "holds a 1 in this run" in text
    assert "y: f32[2]" in ingot.call("run", model, "--device=cpu", "--shapes=x:2x1x1")
    assert "y: f32[3,2]" in ingot.call("run", model, "--device=cpu", "--shapes=x:3x1x2")
    profile = [f"--{which}Shapes=x:2x1x1" for which in ("min", "opt", "max")]
    assert "y: f32[2]" in ingot.call("run", model, "--device=cpu", *profile)


def test_the_shapes_of_arrays_are_known_to_the_importer(tmp_path):
    model = model_file(tmp_path / "m.onnx", [helper.make_node("Squeeze", ["x"], ["y"]), helper.make_node("Squeeze", ["z"], ["w"])],
                       [value("x", ["n", 1, "m"]), value("z", ["m", 4])], [value("y", None), value("w", None)])
    np.save(tmp_path / "x.npy", np.ones((2, 1, 1), np.float32))
    np.save(tmp_path / "long.npy", np.ones((3, 1, 2), np.float32, order="F"))
    given = f"--input=x={tmp_path / 'x.npy'}"
    text = ingot.call("run", model, "--device=cpu", given)
    assert "y: f32[2]" in text and "w: f32[4]" in text  # z has a size of x
    assert "agrees" in ingot.call("compare", model, "--device=cpu", given, "--full")
    text = ingot.call("bench", model, "--device=cpu", f"--loadInputs=x:{tmp_path / 'long.npy'}", "--iterations=1",
                      "--duration=0", "--warmUp=0")
    assert "Throughput" in text
    # A shape that was given by name wins, and an array that contradicts it is refused.
    code, text = fails("run", model, "--device=cpu", given, "--shapes=x:3x1x2")
    assert code == 1 and "input 'x' dimension 0 is 2, expected 3" in text
    code, text = fails("run", model, "--device=cpu", f"--input=y={tmp_path / 'x.npy'}")
    assert code == 1 and "there is no input 'y'" in text
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:40])
    code, text = fails("run", model, "--device=cpu", f"--input=x={tmp_path / 'cut.npy'}")
    assert code == 1 and "cut.npy: the npy header is truncated" in text


def test_pages_in_docs_are_current():
    docs = ingot.REPOSITORY / "docs"
    status = ingot.REPOSITORY / "tests" / "onnx" / "status.txt"
    assert (docs / "options.md").read_text() == ingot.call("options-page"), "./dev pages writes it anew"
    assert (docs / "operators.md").read_text() == ingot.call("operators-page", status), "./dev pages writes it anew"


def test_constant_weights_of_integer_products_are_summed_when_the_engine_is_built(tmp_path):
    """The zero points' share of each sum is one number per column, not a pass over the weights
    in each run."""
    w = np.random.default_rng(3).integers(-128, 128, (768, 1024)).astype(np.int8)
    model = model_file(tmp_path / "m.onnx", [helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])],
                       [value("x", ["n", 768], TensorProto.UINT8), value("zero", [1], TensorProto.UINT8)],
                       [value("y", ["n", 1024], TensorProto.INT32)],
                       initializers=[onnx.numpy_helper.from_array(w, "w")])
    operators = dict(reversed(line.split()) for line in re.findall(r"^ +\d+ \w+$", ingot.call("inspect", model), re.M))
    assert operators["dot"] == "1" and "reduce" not in operators, operators
    x = np.random.default_rng(4).integers(0, 256, (3, 768)).astype(np.uint8)
    zero = np.array([131], np.uint8)
    for name, array in (("x", x), ("zero", zero)):
        np.save(tmp_path / f"{name}.npy", array)
    ingot.call("run", model, "--input", f"x={tmp_path}/x.npy", "--input", f"zero={tmp_path}/zero.npy",
               "--save-outputs", tmp_path)
    expected = (x.astype(np.int32) - zero.astype(np.int32)) @ w.astype(np.int32)
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)
