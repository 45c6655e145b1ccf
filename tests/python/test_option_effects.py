# SPDX-License-Identifier: Apache-2.0
"""No option is accepted in silence: each row of src/api/options/*.def has a test that proves what it does, shows here
that it does it, or has a message that says why it has no effect. A new row needs one of these."""
import pathlib
import re

import pytest

import ingot_command as ingot
from test_cli import OF_A_GPU
from test_trtexec import DIGITS, QUICK, run

# The tests that prove an option, and name it: test: fields.
TESTS = """
test_inspect_writes_nothing: inspect
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
test_inspect: dump_after graph layers
test_input_shapes: input_shapes
test_external_data: save_as_external_data
test_table_and_check: model_check
test_every_line_has_stamp_and_severity: verbose
"""

# What trtexec prints with an option, and does not without.
SHOWS = {
    "monitor_memory": (["--monitorMemory"], r"Peak host memory after building: [\d.]+ MiB"),
    "runtime_platform": (["--runtimePlatform=WindowsAMD64"], "Skipped inference phase since --runtimePlatform"),
    "optimization_level": (["--builderOptimizationLevel=5"],
                           "--builderOptimizationLevel=5: accepted, no effect, because the CPU has no tactics to time"),
    "layer_precisions": (["--layerPrecisions=linear:fp32"], "change nothing without --precisionConstraints"),
    "layer_output_types": (["--layerOutputTypes=linear:fp32"], "change nothing without --precisionConstraints"),
}

# Other tests of the setting that an option stands for: field: (file, word in it).
UNITS = {
    "direct_io": ("api/io_formats_test.cpp", "kDIRECT_IO (--directIO)"),
    "precision_constraints": ("workflow/layer_types_test.cpp", "LayerTypeRule"),
    "size_threshold": ("workflow/slim_test.cpp", "size_threshold"),
    "keep_initializer_inputs": ("workflow/slim_test.cpp", "keep_initializer_inputs"),
    "no_library": ("engine/context_test.cpp", "use_library"),
    "cpu_threads": ("engine/context_test.cpp", "ThreadPool pool"),
    "no_cuda_graph": ("backends_cuda/streams_test.cpp", "record_graphs"),
    "graph_strategy": ("backends_cuda/streams_test.cpp", "record_graphs"),
    "arch": ("backends_cuda/failures_test.cpp", ".arch = "),
    "nvtx_verbosity": ("backends_cuda/nvtx_test.cpp", "set_ranges"),
    "cache_ratio": ("backends_cuda/streams_test.cpp", "set_cache_limit"),
    "pools": ("api/memory_strategies_test.cpp", "workspace"),
    "workspace_mebibytes": ("api/memory_strategies_test.cpp", "workspace"),
    "kernels": ("python/test_kernels.py", "--kernels=90"),
    "disable_passes": ("conformance/passes_test.cpp", "disabled_passes"),
}

# Only known to be taken: whoever touches one of these proves it first.
TAKEN = {"mark_all_debug", "static_plugins", "serialized_plugins", "no_compilation_cache", "layout", "sleep_time",
         "idle_time", "include_transfers", "avg_runs", "nvrtc", "full", "skip_optimizations", "fp8", "int4"}

ROWS = re.findall(r'^INGOT_OPTION\((\w+), .*\n\s*\.commands[^.]*\.names = "(-[^"]+)"',
                  "".join(path.read_text() for path in sorted((ingot.REPOSITORY / "src/api/options").glob("*.def"))),
                  re.MULTILINE)
NAMES = {field: names.split(",") for field, names in ROWS}
PROVED = {field: line.split(":")[0] for line in TESTS.strip().splitlines() for field in line.split(":")[1].split()}


def of_a_gpu():
    given = {option.split("=")[0] for option in OF_A_GPU}
    return {field for field, names in NAMES.items() if given & set(names)}


def test_no_option_is_without_an_effect_or_a_message():
    known = set(PROVED) | set(SHOWS) | set(UNITS) | of_a_gpu() | TAKEN
    assert set(NAMES) - known == set(), "give each a test, or a message, and a row here"
    assert known - set(NAMES) == set()
    assert not TAKEN & (set(PROVED) | set(SHOWS) | set(UNITS) | of_a_gpu())


def test_each_claim_has_a_test_that_names_the_option():
    source = "\n".join(path.read_text() for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py"))
                       if path.name != "test_option_effects.py")
    for field, test in PROVED.items():
        found = re.search(rf"^def {test}\(.*?(?=^\S|\Z)", source, re.DOTALL | re.MULTILINE)
        assert found, f"{field}: there is no {test}"
        assert any(re.search(re.escape(name) + r"(?![\w-])", found.group()) for name in NAMES[field]), (field, test)
    for field, (path, word) in UNITS.items():
        assert word in (ingot.REPOSITORY / "tests" / path).read_text(), (field, path, word)


@pytest.mark.parametrize("field", SHOWS)
def test_what_an_option_prints(field):
    arguments, pattern = SHOWS[field]
    assert re.search(pattern, run("--onnx", DIGITS, *QUICK, *arguments))
    assert not re.search(pattern, run("--onnx", DIGITS, *QUICK))
