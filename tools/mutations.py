#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the product in one place at a time, and reports which tests notice.

  mutations.py [--only TEXT] [--build FOLDER] [--check] [--table FILE]

Each row of ROWS replaces one text of a source by another, builds a test program and runs the tests
that should fail; the source is restored, also after Ctrl-C. A row whose tests pass has survived: a
test is missing or weak. --check only checks that each text occurs once and each test exists. Use a
separate checkout: its builds are broken meanwhile.
"""
import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

# Source, text, replacement, test program, tests (as --gtest_filter).
ROWS = [
    ("src/backends/cpu/matmul.cpp", "chunk_elements = 1 << 20", "chunk_elements = 1 << 30",
     "test_backends_cpu", "CpuDot.LargeOperandsGoInChunks"),
    ("src/backends/cpu/matmul.cpp", "if (row == 0 || b_.chunk < b_.size) {", "if (row == 0) {",
     "test_backends_cpu", "CpuDot.LargeOperandsGoInChunks"),
    ("src/run/loop.cpp", "return trips_ && (!has_run_ || runner_.recordable());", "return false;",
     "test_kernels", "Loops.KnownTripsAreRecorded"),
    ("src/run/loop.cpp", "bool stays = next == body.inputs()[1] ||", "bool stays = true ||",
     "test_kernels", "Loops.ConditionsOnDataAreLookedAt"),
    ("src/kernels/copy/pad.cpp", "int64_t v = 128 / bit_width(p.out[0].dtype);", "int64_t v = 1;",
     "test_kernels", "Pad.KeepsVectorsWhereSizesAllow"),
    ("src/kernels/pointwise/map_job.cpp", "l.count >= (1 << 16)", "l.count >= (1 << 30)",
     "test_kernels", "Pointwise.UnrollsLargeScalarLoops"),
    ("src/kernels/gather/gather.cpp", ".in_place = true", ".in_place = false",
     "test_kernels", "Scatter.WritesInPlace"),
    ("src/lower/fuse_moves.cpp", "return is_roll(n)      ? fuse_roll", "return is_roll(n) && n.outputs.empty() ? fuse_roll",
     "test_lower", "FuseMoves.*"),
    ("src/kernels/rope/rope.cpp", ".strided_results = true", ".strided_results = false",
     "test_kernels", "Rope.ReadsHeadsOfAProductAndWritesIntoACache"),
    ("src/backends/cuda/tune/tuner.cpp", "return cache_->by_layer() || cache_->find(device_, own) ? own : problem;",
     "return problem;", "test_api", "EditableTiming.*"),
    ("src/api/tensorrt/builder/build_timings.cpp", "timings.listen(log);", "",
     "test_api", "EditableTiming.*"),
    ("src/api/tensorrt/builder/builder_config.cpp",
     "make_cache(static_cast<const TimingCacheObject&>(cache).timings());", "make_cache();\n        static_cast<void>(cache);",
     "test_api", "EditableTiming.*:TimingCacheTest.*"),
    ("src/cache/timing_cache.cpp", "it->second = *t;", "it->second.us = t->us;",
     "test_api", "EditableTiming.*:TimingCacheTest.*"),
    ("src/api/tensorrt/builder/build_limits.cpp", 'log_bytes(report, "Max Scratch Memory", use.scratch);', "",
     "test_api", "BuilderMemory.*"),
    ("src/onnx/ops/recurrent.cpp", "if (lengths.valid() && hides_ended) {", "if (false) {",
     "test_onnx", "*DynamicQuantizeLSTM*"),
    ("src/onnx/ops/recurrent.cpp", "lengths.valid() ? steps_that_count(g, x, lengths) : x",
     "(static_cast<void>(&steps_that_count), x)",
     "test_onnx", "*DynamicQuantizeLSTM*"),
    ("src/onnx/ops/recurrent.cpp", "ops::sub(g, w.sums, ops::mul(g, count, w.zero))",
     "ops::add(g, w.sums, ops::mul(g, count, w.zero))",
     "test_onnx", "*DynamicQuantizeLSTM*"),
    ("src/onnx/ops/recurrent.cpp", "Quantized q = quantized_now(g, h, true);",
     "Quantized q = quantized_now(g, h, true);\n    q.zero = ops::full(g, DType::U8, ops::dims(g, q.zero), 0);",
     "test_onnx", "*DynamicQuantizeLSTM*"),
    ("src/onnx/ops/support/quantized.cpp", "ops::sub(g, high, low), 255.0)", "ops::sub(g, high, low), 256.0)",
     "test_onnx", "*DynamicQuantize*"),
    ("src/onnx/ops/contrib_blocks.cpp", "int64_t{1} << (b.bits - 1)", "int64_t{1} << b.bits",
     "test_onnx", "*GatherBlockQuantized*"),
    ("src/onnx/ops/support/experts.cpp", "ops::mul(g, ops::widen(g, h), gates)", "ops::widen(g, h)",
     "test_onnx", "*QMoE*"),
    ("src/onnx/ops/contrib_group_query.cpp", "ops::sub(g, total, ops::dim_scalar(g, Dim(window)))",
     "ops::sub(g, total, ops::dim_scalar(g, capacity))", "test_onnx", "*cache_of_window*"),
    ("src/plan/placement.cpp", "std::all_of(a.high.begin(), a.high.end(), none)", "true", "test_plan", "Placement.*"),
    ("src/onnx/ops/contrib_blocks.cpp", "ops::reverse(g, codes, 1)", "codes",
     "test_onnx", "*MatMulBnb4*"),
    ("src/onnx/ops/contrib.cpp", "c.in(i + 6), c.in(i + 11)", "c.in(i + 6), c.in(13)",
     "test_onnx", "*QEmbedLayerNormalization*"),
    ("src/backends/cuda/jit/program_cache.cpp", "claim = claim_on_disk(key);", "", "test_backends_cuda", "CompileOnce.*"),
    ("src/cache/kernel_entry.cpp", "if (hash.high != h.hash_high || hash.low != h.hash_low) {", "if (hash.high == 0) {",
     "test_cache", "*"),
    ("src/cache/runtime_cache.cpp", "e.key != key.hash ", "false ", "test_cache", "*"),
    ("src/cache/timing_cache.cpp", "if (line != first_line(text)) {", "if (false) {", "test_cache", "*"),
    ("src/base/checked.h", "return first >= 0 && first < limit && last && *last >= 0 && *last < limit;",
     "return first >= 0 && first < limit && last && *last >= 0;", "test_base", "checked.*"),
    ("src/ir/dim.cpp", "? q - 1 : q;", "? q : q;", "test_ir", "*"),
    ("src/ir/profile.cpp", "r.min[i] >= 0 && r.min[i] <= r.opt[i] &&", "r.min[i] >= 0 &&", "test_engine", "Profile.*"),
    ("src/engine/container.cpp", "constexpr uint64_t hashed_header_bytes = 48;",
     "constexpr uint64_t hashed_header_bytes = 40;", "test_engine", "*"),
    ("src/backends/cpu/kernels/pool.cpp", "c.start + (c.last - 1) * a.dilation >= a.in", "c.start + (c.last - 1) > a.in",
     "test_backends_cpu", "*Pool*"),
    ("src/backends/cpu/kernels/reduce.cpp", 'bool lowest = fn == "max";', 'bool lowest = fn == "min";',
     "test_backends_cpu", "*Reduc*"),
    ("src/base/thread_pool.cpp", "return (a - 1) / b + 1;", "return a / b + 1;", "test_base", "thread_pool.*"),
    ("src/backends/cuda/run/kept_launches.cpp", "{o.buffer, o.view.offset}", "{o.buffer, 0}",
     "test_backends_cuda", "KeptLaunches*"),
    ("src/backends/cuda/run/kept_launches.cpp", "backwards(problem.backwards)", "backwards(false)",
     "test_backends_cuda", "KeptLaunchesTest.*"),
    ("src/backends/cuda/run/kept_launches.cpp", "plan + few_plans <= plan_", "plan > plan_",
     "test_backends_cuda", "KeptLaunchesTest.*"),
    ("src/backends/cuda/run/launch_list.cpp", "std::exchange(item.has_run, true)", "true",
     "test_backends_cuda", "Specialise.AShapeThatRunsOnceAsksForNoVariant"),
    ("src/backends/cuda/tune/kernel_reuse.cpp", "str(' ', i, '~', first(shares))", "std::string()",
     "test_backends_cuda", "KernelReuse.*"),
    ("plugins/onnxruntime/kept_blocks.cpp", "waits = out.number > waited_;", "waits = false;",
     "test_onnxruntime", "KeptBlocks.*"),
    ("plugins/onnxruntime/kept_blocks.cpp", "kept_bytes_ + size > most_bytes", "size > most_bytes",
     "test_onnxruntime", "KeptBlocks.*"),
]


def killers(output):
    """Names of failed tests, parameters merged."""
    found = re.findall(r"^\[  FAILED  \] ([\w/]+\.\w+)", output, re.MULTILINE)
    return sorted(set(found)) or ["the program ended"]


def missing_tests(row):
    """The parts of a row's filter that no test of its program has."""
    _, _, _, program, filters = row
    folder = REPOSITORY / "tests" / program.removeprefix("test_")
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.cpp")))
    names = [".".join(found) for found in re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text)]
    parts = [part for part in filters.split(":") if not part.startswith("*")]  # those are of parameters
    return [part for part in parts if not any(fnmatch.fnmatchcase(name, part) for name in names)]


def stale_rows(rows):
    """One line for each row whose text does not occur once, and for each test that does not exist."""
    out = [f"{source}: this text does not occur once: {old!r}"
           for source, old, *_ in rows if (REPOSITORY / source).read_text().count(old) != 1]
    return out + [f"{row[0]}: {row[3]} has no test {name}" for row in rows for name in missing_tests(row)]


def try_row(row, build):
    source, old, new, program, tests = row
    path = REPOSITORY / source
    text = path.read_text()
    try:
        path.write_text(text.replace(old, new))
        made = subprocess.run(["ninja", "-C", build, program], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return "does not compile: " + made.stdout[-300:]
        done = subprocess.run([build / "tests" / program, f"--gtest_filter={tests}"], cwd=REPOSITORY, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800, check=False)
        if "[==========] Running 0 tests" in done.stdout:
            return "SURVIVED: there is no test of that name"
        return "SURVIVED" if done.returncode == 0 else ", ".join(killers(done.stdout))
    except subprocess.TimeoutExpired:
        return "killed by the time limit"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--build", type=pathlib.Path, default=REPOSITORY / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    stale = stale_rows(ROWS)
    if stale:
        sys.exit("mend ROWS:\n" + "\n".join(stale))
    if options.check:
        return
    survived, lines = 0, ["| source | broken | noticed by |", "|---|---|---|"]
    for row in ROWS:
        if options.only not in " ".join(row):
            continue
        start = time.monotonic()
        result = try_row(row, options.build)
        survived += result.startswith(("SURVIVED", "does not compile"))
        print(f"{row[0]}: {row[1]!r} -> {row[2]!r}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
        old, new = (text.replace("\n", " ").replace("|", "\\|") for text in row[1:3])
        lines.append(f"| {row[0]} | `{old}` → `{new}` | {result} |")
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    sys.exit(survived != 0)


if __name__ == "__main__":
    main()
