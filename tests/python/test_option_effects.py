# SPDX-License-Identifier: Apache-2.0
"""No option is accepted in silence: each row of src/api/options/*.def has a test of its effect,
shows its effect here, or has a message with the reason why it has none. A new row needs one of
these."""
import ctypes
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import ingot_command as ingot
from gpu_options import OF_A_GPU
from trtexec_command import DIGITS, QUICK, run
from trtexec_flags import SHOWN, WORKS

# The tests that prove an option, and name it: test: fields.
TESTS = """
test_inspect_writes_nothing: inspect
test_hidden_files_are_read_when_allowed_by_name: hidden_files
test_sign_and_trust: trusted_keys trusted_only private_key
test_damaged_weights_are_refused_by_every_command: verify no_verify_weights
test_thresholds_equal_the_published_formulas: output data algorithm
test_minmax_and_legacy: quantile regression_cutoff
test_fixed_batches_are_filled_up: batches
test_pictures_are_read_as_run_reads_them: mean std
test_banner_names_and_exit_codes: onnx help version
test_profiles_and_shapes: load_engine profile_index min_shapes opt_shapes max_shapes use_profile dump_profiles
test_int8_without_calibration_is_refused_unless_asked_for: int8 calib uncalibrated_int8
test_precision_flags: fp16 bf16 best strongly_typed no_tf32
test_types_of_inputs_and_outputs: input_formats output_formats
test_layer_information: profiling_verbosity dump_layer_info export_layer_info
test_kernels_ahead_of_time: compute_capabilities use_gpu skip_inference
test_engines_without_weights_are_refitted_from_a_model: refit strip_weights refit_from time_refit dump_refit
test_other_weights_give_other_results: strip_all_weights
test_weight_streaming_budgets: allow_streaming streaming_budget
test_rows_have_the_same_bits_alone_and_in_any_batch: batch_invariant
test_requests_may_leave_optional_inputs_out: optional_inputs
test_marked_tensors_survive_fusion: mark_debug
test_version_of_plans_and_deserialisation: plan_version time_deserialize
test_tactics_are_kept_in_the_timing_cache: error_on_timing_miss timing_cache_file
test_other_libraries_run_engines: use_runtime lean_path
test_the_other_commands_take_them_too: dynamic_plugins
test_plugins_may_take_the_place_of_what_is_known: plugin_override
test_the_shapes_of_a_run_are_known_to_the_importer: shapes device
test_inputs_of_the_wrong_type_or_shape_are_refused: inputs
test_inputs_outputs_and_raw_files: load_inputs dump_output dump_raw
test_expected_outputs: load_references reference_pair accuracy_algorithm accuracy_threshold
test_compare_finds_a_difference: accuracy_atol accuracy_rtol atol rtol
test_missing_inputs_are_random_with_a_fixed_seed: save_outputs seed
test_percentile_formula: calibration_percentile percentile
test_an_endless_loop_ends_at_the_time_limit: timeout
test_cache_in_one_file: runtime_cache_file
test_performance_summary: iterations warm_up duration
test_streams_run_at_once: threads streams
test_json_exports: dump_profile export_profile export_times export_output
test_debug_tensors: save_debug save_all_debug
test_check_lists_every_unsupported_node: json
test_inspect: dump_after graph layers verify_passes
test_inspect_prints_the_plan: plan no_library
test_compare_agrees_with_both_references: compare_layers
test_kernels_of_an_absent_gpu_and_of_the_cpu: kernels target time
test_forced_tactics_and_sources: source
test_the_page_holds_what_inspect_prints: no_compile
test_two_engines_and_a_timeline_in_a_browser: compare_with drawn_timeline
test_input_shapes: input_shapes
test_external_data: save_as_external_data
test_table_and_check: model_check
test_labels_are_refused_and_cut: cut_strings
test_the_first_layer_and_the_first_nan_are_named: check_finite
test_every_line_has_stamp_and_severity: verbose
test_publishers_at_once_get_a_number_each: repository model_name
test_every_option_is_in_the_configuration: model_version max_batch buckets queue_delay instances server_warm_up on_cpu
test_a_check_needs_no_repository: check_only on_gpus
test_a_changed_interface_is_refused_unless_it_is_allowed: allow_changed_interface
test_the_configuration_of_somebody_else_stays: replace_config
test_old_versions_are_pruned_and_dry_runs_change_nothing: prune dry_run
test_loading_waits_until_ready_and_restores_on_failure: load_urls
test_staging_must_be_in_the_file_system_of_the_repository: staging
test_one_server_for_each_gpu_or_slice_of_one: workers devices write_only tritonserver haproxy
test_options_reach_the_files_that_are_written: address http_port grpc_port metrics_port worker_port retry_bytes drain backends server_options
test_a_worker_that_cannot_start_is_given_up_and_the_last_ends_all: restart_limit restart_window
test_endpoints_open_by_name: open_endpoints
test_a_worker_that_hangs_is_killed_and_its_requests_are_answered: silence
test_no_request_is_lost_when_workers_are_killed: healthy_after
"""

# Output of trtexec with an option that is absent without it.
SHOWS = {
    "monitor_memory": (["--monitorMemory"], r"Peak host memory after building: [\d.]+ MiB"),
    "runtime_platform": (["--runtimePlatform=WindowsAMD64"], "Skipped inference phase since --runtimePlatform"),
    "optimization_level": (["--builderOptimizationLevel=5"],
                           "--builderOptimizationLevel=5: accepted, no effect, because the CPU has no tactics to time"),
    "layer_precisions": (["--layerPrecisions=linear:fp32"], "change nothing without --precisionConstraints"),
    "avg_runs": (["--avgRuns=1"], "Trace averages of 1 runs"),
    "no_compilation_cache": (["--noCompilationCache"],
                             "--noCompilationCache: accepted, no effect, because the CPU has no kernels to compile"),
    "include_transfers": (["--includeDataTransfers"],
                          "--includeDataTransfers: accepted, no effect, because runs on the CPU copy nothing"),
    "idle_time": (["--idleTime=1500"], r"Timing trace has 2 queries over (1\.[5-9]|[2-9]\.)[\d.]* s"),
    "layer_output_types": (["--layerOutputTypes=linear:fp32"], "change nothing without --precisionConstraints"),
}

# Tests of the setting behind an option: field: (file, word in it).
UNITS = {
    "direct_io": ("api/io_formats_test.cpp", "kDIRECT_IO (--directIO)"),
    "precision_constraints": ("workflow/layer_types_test.cpp", "LayerTypeRule"),
    "size_threshold": ("slim/slim_test.cpp", "size_threshold"),
    "keep_initializer_inputs": ("slim/slim_test.cpp", "keep_initializer_inputs"),
    "cpu_threads": ("engine/context_test.cpp", "ThreadPool pool"),
    "no_cuda_graph": ("backends_cuda/streams_test.cpp", "record_graphs"),
    "graph_strategy": ("backends_cuda/streams_test.cpp", "record_graphs"),
    "arch": ("backends_cuda/failures_test.cpp", ".arch = "),
    "nvtx_verbosity": ("backends_cuda/nvtx_test.cpp", ".ranges ="),
    "cache_ratio": ("backends_cuda/streams_test.cpp", "cache_limit ="),
    "pools": ("api/memory_strategies_test.cpp", "workspace"),
    "workspace_mebibytes": ("api/memory_strategies_test.cpp", "workspace"),
    "timeline": ("backends_cuda/timeline_test.cpp", "timeline_file = file"),
    "static_plugins": ("python/test_plugin_libraries.py", "--staticPlugins={REGISTERED}"),
    "skip_optimizations": ("python/test_python_slim.py", 'skip_optimizations=["constant_folding"]'),
    "fp8": ("python/test_quantize.py", '"--fp8": 0.08'),
    "int4": ("python/test_quantize.py", '"--int4": 0.2'),
    "disable_passes": ("conformance/passes_test.cpp", "disabled_passes"),
}

# The tests of these are in this file.
HERE = {"mark_all_debug", "layout", "sleep_time", "nvrtc", "full", "serialized_plugins"}

ROWS = re.findall(r'^INGOT_OPTION\((\w+), .*\n\s*\.commands[^.]*\.names = "(-[^"]+)"',
                  "".join(path.read_text() for path in sorted((ingot.REPOSITORY / "src/api/options").glob("*.def"))),
                  re.MULTILINE)
NAMES = {field: names.split(",") for field, names in ROWS}
PROVED = {field: line.split(":")[0] for line in TESTS.strip().splitlines() for field in line.split(":")[1].split()}


def of_a_gpu():
    given = {option.split("=")[0] for option in OF_A_GPU}
    return {field for field, names in NAMES.items() if given & set(names)}


def test_no_option_is_without_an_effect_or_a_message():
    known = set(PROVED) | set(SHOWS) | set(UNITS) | of_a_gpu() | HERE
    assert set(NAMES) - known == set(), "give each a test, or a message, and a row here"
    assert known - set(NAMES) == set()


def test_each_claim_has_a_test_that_names_the_option():
    source = "\n".join(path.read_text() for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py"))
                       if path.name != "test_option_effects.py")
    for field, test in PROVED.items():
        found = re.findall(rf"^def {test}\(.*?(?=^\S|\Z)", source, re.DOTALL | re.MULTILINE)
        assert len(found) == 1, f"{field}: {len(found)} tests have the name {test}, expected 1: give each its own"
        assert any(re.search(re.escape(name) + r"(?![\w-])", found[0]) for name in NAMES[field]), (field, test)
    for field, (path, word) in UNITS.items():
        assert word in (ingot.REPOSITORY / "tests" / path).read_text(), (field, path, word)


@pytest.mark.parametrize("field", SHOWS)
def test_what_an_option_prints(field):
    arguments, pattern = SHOWS[field]
    assert re.search(pattern, run("--onnx", DIGITS, *QUICK, *arguments))
    assert not re.search(pattern, run("--onnx", DIGITS, *QUICK))


def test_every_working_flag_is_proved():
    """By its output (SHOWN), or by its option's test."""
    proved = set(PROVED) | set(SHOWS) | set(UNITS) | of_a_gpu() | set(HERE)
    options = {name for field in proved for name in NAMES[field]}
    missing = {flag for flag in WORKS if flag not in SHOWN and flag.split("=")[0] not in options}
    assert missing == set(), missing
    assert set(SHOWN) - set(WORKS) == set()


def debug_tensors(*flags):
    return set(re.findall(r"Debug tensor (\w+) ", run("--onnx", DIGITS, *QUICK, "--saveAllDebugTensors=summary", *flags)))


def test_every_tensor_becomes_a_debug_tensor():
    assert debug_tensors("--markDebug=relu1") == {"relu1"}
    assert debug_tensors("--markDebug=relu1", "--markUnfusedTensorsAsDebugTensors") > {"relu1", "pool1", "pool2"}


def test_libraries_do_not_travel_in_an_engine():
    text = run("--onnx", DIGITS, *QUICK, "--setPluginsToSerialize=a.so", code=1)
    assert "--setPluginsToSerialize: an engine file holds no host code" in text


def test_a_pause_before_the_measurement():
    started = [ingot.binary().parent / "trtexec", f"--onnx={DIGITS}", *QUICK]
    subprocess.run(started, timeout=300, check=True, capture_output=True)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([*started, "--sleepTime=600000"], timeout=10, check=False, capture_output=True)


def identity(path, shape, nodes=None, inputs=(), constants=()):
    nodes = nodes or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), *inputs],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("layout, shape", [("nhwc", (1, 3, 3, 3)), ("nchw", (1, 3, 3, 3)), ("hwc", (3, 3, 3)),
                                           ("chw", (3, 3, 3))])
def test_pictures_lie_as_the_layout_says(layout, shape, tmp_path):
    # Three sizes of 3: the shape alone does not say which of them are channels.
    pixels = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    model = identity(tmp_path / "m.onnx", shape)
    ingot.call("run", model, "--device=cpu", f"--input=x={tmp_path}/p.png", f"--layout={layout}", "--std=1",
               f"--save-outputs={tmp_path}/{layout}")
    expected = pixels if layout.endswith("hwc") else pixels.transpose(2, 0, 1)
    assert np.array_equal(np.load(tmp_path / layout / "y.npy").reshape(3, 3, 3), expected)


def test_large_models_are_compared_in_float64_only_if_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_PYTHON", sys.executable)
    # 128 GFLOP of a branch that is not taken.
    big = numpy_helper.from_array(np.array([4000, 4000]), "size")
    then = helper.make_graph([helper.make_node("ConstantOfShape", ["size"], ["m"]),
                              helper.make_node("MatMul", ["m", "m"], ["mm"]),
                              helper.make_node("ReduceSum", ["mm"], ["s"], keepdims=0),
                              helper.make_node("Add", ["x", "s"], ["t"])], "then", [],
                             [helper.make_tensor_value_info("t", TensorProto.FLOAT, [2])], [big])
    otherwise = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [],
                                  [helper.make_tensor_value_info("e", TensorProto.FLOAT, [2])])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "most"], ["c"]),
             helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    model = identity(tmp_path / "m.onnx", [2], nodes, constants=[numpy_helper.from_array(np.float32(1e9), "most")])
    assert "the model has 128 GFLOP, above 50; --full runs it anyway" in ingot.call("compare", model, "--device=cpu")
    assert "--full runs it anyway" not in ingot.call("compare", model, "--device=cpu", "--full")


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def kernel_entry(nvrtc):
    """An entry of a kernel cache (src/cache/kernel_entry.cpp), as another NVRTC would have filled it."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = Hash
    rest = struct.pack("<QQ", 1, 2) + b"compiler" + nvrtc + b"binary"
    h = library.XXH3_128bits(rest, ctypes.c_size_t(len(rest)))
    return struct.pack("<8sIIIIQQQ", b"INGOTKRN", 2, 8, len(nvrtc), 0, 6, h.high, h.low) + rest


def test_kernels_of_another_compiler_are_faults_only_if_asked(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    entry = folder / f"{1:016x}{2:016x}.kernel"
    entry.write_bytes(kernel_entry(b"NVRTC 1.0"))
    entry.chmod(0o600)
    assert "0 faulty" in ingot.call("cache", "verify", f"--runtimeCacheDir={folder}")
    done = subprocess.run([ingot.binary(), "cache", "verify", "--nvrtc", f"--runtimeCacheDir={folder}"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1 and "it was compiled by NVRTC 1.0, found here: " in done.stdout + done.stderr
