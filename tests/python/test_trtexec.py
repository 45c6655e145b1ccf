# SPDX-License-Identifier: Apache-2.0
"""trtexec's command line: users' lines, every flag, banner, sections, and errors."""
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import ingot_command as ingot
from trtexec_command import (  # noqa: F401
    DIGITS, NUMBER, QUICK, STAMP, calibration_cache, command, has_lines, lines_of, run, small_network, fixture_engine)
from trtexec_flags import ALREADY, IGNORED, SHOWN, USERS_LINES, WORKS, WRONG


@pytest.mark.parametrize("line", USERS_LINES)
def test_lines_of_users_run_as_they_stand(line, tmp_path):
    (tmp_path / "models").mkdir()
    shapes = "Shapes=" in line
    small_network(tmp_path / "model.onnx", ["batch", 3, "height", "width"] if shapes else [1, 3, 64, 64])
    shutil.copy(tmp_path / "model.onnx", tmp_path / "models" / "model.onnx")
    calibration_cache(tmp_path / "calibration_cache.bin")
    environment = {**os.environ, "PATH": f"{command().parent}:{os.environ['PATH']}", "INGOT_DURATION": "0"}
    if "--loadEngine" in line:
        run("--onnx=model.onnx", "--saveEngine=models/model.engine", "--skipInference", folder=tmp_path)
    done = subprocess.run(line.replace(" --", " \\\n    --"), shell=True, cwd=tmp_path, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    assert done.returncode == 0, done.stdout
    assert f"&&&& PASSED TensorRT.trtexec [TensorRT v110100] # {line}\n" in done.stdout
    assert re.search(rf"Throughput: {NUMBER} qps", done.stdout)
    saved = re.search(r"--saveEngine=(\S+)", line)
    assert not saved or (tmp_path / saved.group(1)).read_bytes()[:5] == b"INGOT"
    if "--int8" in line:
        assert "Precision: FP32+INT8" in done.stdout
        operators = ingot.call("inspect", tmp_path / saved.group(1))
        assert re.search(r"^ +\d+ quantize$", operators, re.MULTILINE), operators


def test_the_lines_of_users_are_those_of_the_workflow():
    shared = pathlib.Path(os.environ.get("INGOT_SHARED") or ingot.REPOSITORY.parent / "shared")
    documents = list((shared / "spec").glob("003*"))
    if not documents:
        pytest.skip(f"no description of the workflow in {shared}")
    text = documents[0].read_text().replace("\\\n", " ")
    found = [" ".join(line.split()) for line in re.findall(r"trtexec +--[^\"\n]*", text)]
    assert found == USERS_LINES


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flags")
    np.save(folder / "image.npy", np.zeros((1, 1, 8, 8), np.float32))
    shutil.copy(DIGITS, folder / "model.onnx")
    return folder


@pytest.mark.parametrize("flag", WORKS)
def test_flags_that_work(flag, engine, folder):
    model = ["--loadEngine", engine] if flag in ("--getPlanVersionOnly", "--timeDeserialize") else ["--onnx", DIGITS]
    name = flag.split("=")[0]
    quick = [q for q in QUICK if not q.startswith(name + "=")]
    def behind_options(*flags):
        for path in folder.iterdir():
            if path.name not in ("image.npy", "model.onnx"):
                path.unlink()
        text = run(*model, *flags, folder=folder)
        assert "&&&& PASSED" in text
        return text[max(text.find("=== Device Information ==="), 0):], {path.name for path in folder.iterdir()}

    text, files = behind_options(*quick, flag)
    told = [line for line in lines_of(text, "[IW]") if re.match(rf"{name}\S* (is ignored|changes nothing)", line)]
    assert not told
    if flag in SHOWN:
        plain, before = behind_options(*(() if flag == "--getPlanVersionOnly" else QUICK))
        proof = SHOWN[flag]
        if proof.startswith("file:"):
            assert proof[5:] in files - before
        else:
            assert re.search(proof, text, re.MULTILINE), text
            assert not re.search(proof, plain, re.MULTILINE), "a run without the flag says so too"


@pytest.mark.parametrize("flag", ALREADY + IGNORED)
def test_flags_without_effect_say_why(flag, folder):
    text = run("--onnx", DIGITS, *QUICK, flag, folder=folder)
    severity, words = ("I", "changes nothing: ") if flag in ALREADY else ("W", "is ignored: ")
    name = re.escape(re.sub(r"(:.*|(?<!memPoolSize)=.*)", "", flag))
    told = [line for line in lines_of(text, severity) if re.match(rf"{name} {words}\S.*", line)]
    assert len(told) == 1 and "&&&& PASSED" in text, text


def test_every_flag_of_the_table_is_tested():
    text = run("--help")
    listed = {f for line in text.splitlines() if line.startswith("  -")
              for f in re.findall(r"--?[A-Za-z][\w-]*", line.split("  ")[1])}
    tested = {flag.split("=")[0] for flag in WORKS + ALREADY + IGNORED}
    tested |= {flag.split("=")[0] for line in USERS_LINES for flag in line.split()[1:]}
    elsewhere = {"-o", "--output", "-h", "--help", "--version", "--useGpu", "--useGPU", "--computeCapabilities",
                 "--loadRefOutputs", "--refPair", "--staticPlugins", "--plugins", "--dynamicPlugins",
                 "--setPluginsToSerialize", "--leanDLLPath"}
    own = {"--disablePass", "--seed", "--cpuThreads", "--verify", "--noVerifyWeights", "--timeout", "--noCpuLibrary",
           "--forceTactic", "--arch", "--memoryLimit", "--nvtx", "--runtimeCacheDir", "--tune", "--tuneBudget",
           "--specialisation", "--priority", "--trustedKeys", "--trusted-keys", "--trustedOnly", "--trusted-only",
           "--allowEngineCode", "--allowHiddenFile", "--timeline"}
    assert listed - tested - elsewhere - own == set()
    assert (tested | elsewhere | own) - listed == set()


@pytest.mark.parametrize("flag", ["--disablePass=raise_gelu", "--seed=3", "--cpuThreads=1", "--verify", "--noVerifyWeights",
                                  "--timeout=100",
                                  "--noCpuLibrary", "--forceTactic=a", "--arch=80", "--memoryLimit=1000000000",
                                  "--nvtx", "--runtimeCacheDir=none", "--tune=off", "--tuneBudget=10",
                                  "--specialisation=none", "--priority=low", "--allowEngineCode",
                                  "--allowHiddenFile=.weights"])
def test_flags_of_our_own(flag):
    assert "&&&& PASSED" in run("--onnx", DIGITS, *QUICK, flag)


@pytest.mark.parametrize("flag, message", [
    ("--disablePass=raise_gelo", "there is no pass 'raise_gelo', did you mean 'raise_gelu'?"),
    ("--seed=many", "--seed=many: expected a whole number"),
    ("--cpuThreads=many", "--cpuThreads=many: expected a whole number"),
    ("--verify=yes", "--verify=yes: expected no value: this is a flag"),
    ("--timeout=soon", "--timeout=soon: expected a number"),
    ("--noCpuLibrary=yes", "--noCpuLibrary=yes: expected no value: this is a flag"),
    ("--arch=nine", "--arch=nine: expected a whole number"),
    ("--memoryLimit=-1", "--memoryLimit=-1: expected 0 or more"),
    ("--nvtx=yes", "--nvtx=yes: expected no value: this is a flag"),
    ("--tune=sometimes", "--tune=sometimes: expected off, background or full"),
    ("--tuneBudget=-1", "--tuneBudget=-1: expected 0 or more"),
    ("--specialisation=soon", "--specialisation=soon: expected lazy, eager or none"),
    ("--priority=urgent", "--priority=urgent: expected low, normal or high"),
])
def test_flags_of_our_own_are_looked_at(flag, message):
    errors = lines_of(run("--onnx", DIGITS, *QUICK, flag, code=1), "E")
    assert len(errors) == 1 and errors[0].endswith(message), errors


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_errors(arguments, message, tmp_path):
    text = run(*(a.replace("DIGITS", str(DIGITS)) for a in arguments), folder=tmp_path, code=1, INGOT_DURATION="0")
    errors = lines_of(text, "E")
    assert len(errors) == 1 and errors[0].replace(f"{DIGITS}: ", "").endswith(message), text
    assert "&&&& RUNNING" in text and "&&&& FAILED" in text and "PASSED" not in text


def test_banner_names_and_exit_codes(engine):
    arguments = [f"--loadEngine={engine}", *QUICK]
    text = run(*arguments)
    line = f"TensorRT.trtexec [TensorRT v110100] # trtexec {' '.join(arguments)}\n"
    assert text.startswith(f"&&&& RUNNING {line}") and text.endswith(f"&&&& PASSED {line}")
    text = run(*arguments, name="tensorrt_rtx")
    assert text.startswith(f"&&&& RUNNING TensorRT.trtexec [TensorRT v10600] # tensorrt_rtx {' '.join(arguments)}\n")
    text = run("trtexec", *arguments, name="ingot")
    assert text.startswith(f"&&&& RUNNING {line}")
    assert all("&&&& PASSED" in run(flag) for flag in ("--help", "-h", "--version"))
    text = run("--loadEngine", engine, "--nothing", code=1)
    assert text.splitlines()[-1].startswith("&&&& FAILED TensorRT.trtexec [TensorRT v110100] # trtexec --loadEngine ")
    assert "--onnx=FILE" in run("--help")


def test_every_line_has_stamp_and_severity(engine):
    text = run(f"--loadEngine={engine}", "--dumpProfile", "--dumpLayerInfo", "--dumpOutput", "--verbose",
               "--useDLACore=0", *QUICK)
    for line in text.splitlines()[1:-1]:
        assert re.match(rf"{STAMP} \[[IWEV]\] ", line), line


def test_sections_of_options(tmp_path):
    small_network(tmp_path / "model.onnx", ["batch", 3, 64, 64])
    text = run("--onnx=model.onnx", "--saveEngine=e.engine", "--fp16", "--minShapes=input:1x3x64x64",
               "--optShapes=input:2x3x64x64", "--maxShapes=input:4x3x64x64", "--memPoolSize=tacticSharedMem:48K",
               "--avgRuns=3", "--percentile=50", "--shapes=input:3x3x64x64", "--exportTimes=t.json", *QUICK,
               folder=tmp_path)
    has_lines(text, [
        "=== Model Options ===", "Format: ONNX", "Model: model.onnx", "Output:", "=== Build Options ===",
        "Memory Pools: workspace: default, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, "
        r"tacticSharedMem: 0\.046875 MiB", "avgTiming: 8", r"Precision: FP32\+FP16", "Calibration: ", "Refit: Disabled",
        "Save engine: e.engine", "Load engine: ", "Profiling verbosity: 0", "timingCacheMode: local",
        r"Input\(s\)s format: fp32:CHW", r"Output\(s\)s format: fp32:CHW",
        r"Input build shape \(profile 0\): input=1x3x64x64\+2x3x64x64\+4x3x64x64", "=== System Options ===",
        "Device: cpu", "=== Inference Options ===", "Batch: Explicit", "Input inference shape : input=3x3x64x64",
        "Iterations: 2", r"Duration: 0s \(\+ 0ms warm up\)", "Sleep time: 0ms", "Idle time: 0ms",
        "Inference Streams: 1", "Data transfers: Disabled", "CUDA Graph: Enabled", "Optimization Profile Index: 0",
        "Inputs:", "=== Reporting Options ===", "Verbose: Disabled", "Averages: 3 inferences", "Percentiles: 50",
        "Dump output: Disabled", "Profile: Disabled", "Export timing to JSON file: t.json",
        "=== Device Information ===", "Selected Device: .+",
        "Set shape of input tensor input for optimization profile 0 to: MIN=1x3x64x64 OPT=2x3x64x64 MAX=4x3x64x64",
        rf"Finished parsing network model\. Parse time: {NUMBER}", rf"Engine built in {NUMBER} sec\.",
        rf"Created engine with size: {NUMBER} MiB", rf"Engine deserialized in {NUMBER} sec\."])
    loaded = run("--loadEngine=e.engine", "--fp16", *QUICK, folder=tmp_path)
    chosen = run("--onnx=model.onnx", "--optShapes=input:2x3x64x64", "--maxShapes=input:4x3x64x64", "--skipInference",
                 folder=tmp_path)
    has_lines(chosen, ["Input inference shape : input=2x3x64x64"])
    has_lines(loaded, [r"Format: \*", "Model: ", "=== System Options ==="])
    assert "=== Build Options ===" not in loaded
    assert "--fp16 has no effect with --loadEngine: that was decided when the engine was built" in lines_of(loaded, "W")


def test_environment_fills_in(engine):
    text = run(f"--loadEngine={engine}", INGOT_ITERATIONS="3", INGOT_DURATION="0", INGOT_WARM_UP="0")
    assert "Timing trace has 3 queries" in text
    text = run(f"--loadEngine={engine}", "--duration=0", INGOT_ITERATIONS="x", code=1)
    assert lines_of(text, "E") == ["INGOT_ITERATIONS=x: expected a whole number"]
    text = run(f"--loadEngine={engine}", "--iterations=4", "--duration=0", INGOT_ITERATIONS="3")
    assert "Timing trace has 4 queries" in text


def test_warnings_go_to_stderr_and_the_rest_to_stdout(engine):
    done = subprocess.run([command(), f"--loadEngine={engine}", "--useDLACore=0", "--device=cpu", *QUICK], text=True,
                          capture_output=True, timeout=120, check=True)
    assert "[W] --useDLACore is ignored: Ingot runs on GPUs and CPUs, not on a DLA" in done.stderr
    assert "[W]" not in done.stdout and "[I]" not in done.stderr and "&&&&" not in done.stderr


def test_time_limit_stops_it(engine):
    text = run(f"--loadEngine={engine}", "--duration=-1", "--timeout=0.3", "--warmUp=0", code=130)
    [error] = lines_of(text, "E")  # a slow machine is stopped while it loads, and says in which file
    assert error.endswith("stopped after the time limit of 300 ms") and "&&&& FAILED" in text
