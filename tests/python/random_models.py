# SPDX-License-Identifier: Apache-2.0
"""Random ONNX models out of the blocks that exporters write, one a seed, and their comparison with ONNX Runtime's own CPU
provider without its optimisations."""
import dataclasses
import os

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from random_blocks import OTHER, QUANTIZED
from random_builder import Builder, DoesNotApply, normal, on_grid
from random_layers import LAYERS

NOISE = 1e-6  # relative
GROWTH = 10  # noise may grow by so much before a model counts as sensitive to rounding


@dataclasses.dataclass
class RandomModel:
    seed: int
    blocks: list  # their names
    builder: Builder
    made: list  # a value's name for each block
    outputs: list

    def model(self):
        return self.builder.model(self.outputs, self.builder.dynamic)

    def noisy(self, rows_differ):
        """The model with a little noise on what each block makes, where it is not exact; the same for all rows where
        their count is another one."""
        model, random = self.model(), np.random.default_rng(self.seed)
        inner = {name: f"{name}_exact" for name in self.made if name not in self.builder.exact}
        nodes = list(model.graph.node)
        del model.graph.node[:]
        for node in nodes:
            node.output[:] = [inner.get(name, name) for name in node.output]
            model.graph.node.append(node)
            for name in (name for name, other in inner.items() if other in node.output):
                shape = self.builder.shape(name)
                shape = (1, *shape[1:]) if rows_differ and shape else shape
                factor = np.asarray(1 + NOISE * random.uniform(-1, 1, size=shape))
                model.graph.initializer.append(numpy_helper.from_array(factor.astype(np.float32), f"{name}_noise"))
                model.graph.node.append(helper.make_node("Mul", [inner[name], f"{name}_noise"], [name]))
        return model

    def __str__(self):
        form = "dynamic" if self.builder.dynamic else "static"
        return f"seed {self.seed}, opset {self.builder.opset}, {form}, blocks {' '.join(self.blocks)}"


def start(b, values):
    """The first input: a picture, sequence, vector, heads of attention, volume, or a few numbers."""
    batch = b.pick(1, 2, 3)
    kind = b.pick("picture", "picture", "sequence", "sequence", "vector", "heads", "volume", "numbers")
    shape = {"picture": (batch, b.pick(1, 3, 4, 8, 12, 16), b.pick(5, 8, 12, 16, 17), b.pick(4, 8, 13, 16)),
             "sequence": (batch, b.pick(1, 4, 7, 16, 33), b.pick(8, 12, 16, 32)),
             "vector": (batch * b.pick(1, 5), b.pick(4, 9, 32)),
             "heads": (batch, b.pick(2, 4), b.pick(5, 16), b.pick(8, 16)),
             "volume": (batch, b.pick(2, 4), 4, 5, 6),
             "numbers": (b.pick(2, 6),)}[kind]
    return b.input(shape, values=values)


def random_model(seed):
    """Two to nine blocks, each behind the last one or behind another one before it. The first block of some models rounds
    or quantises their input, which is exact there."""
    b = Builder(seed)
    is_exact = b.chance(0.2)
    made, blocks = [start(b, on_grid if is_exact else normal)], []
    wanted = b.integer(2, 10)
    for _ in range(60):
        source = made[-1] if b.chance(0.8) else b.pick(*made)
        block = b.pick(*QUANTIZED) if source in b.exact and b.chance(0.8) else b.pick(*LAYERS, *OTHER)
        try:
            made.append(b.apply(block, source))
        except DoesNotApply:
            continue
        blocks.append(block.__name__)
        if len(blocks) == wanted:
            break
    outputs = [made[-1], *(name for name in made[1:-1] if b.chance(0.15))]
    return RandomModel(seed, blocks, b, made[1:], outputs)


def reference(model, feeds):
    """ONNX Runtime's results, None where it refuses the model or something overflows."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = made.run(None, feeds)
    except Exception:  # each refusal of ONNX Runtime has a type of its own, all below Exception
        return None
    return results if all(np.isfinite(r).all() for r in results) else None


def error(expected, got):
    """The largest difference, relative to the range of what is expected; infinite where shapes or types differ, or
    something is not finite."""
    if expected.shape != got.shape or expected.dtype != got.dtype or not np.isfinite(got).all():
        return np.inf
    largest = np.abs(expected.astype(np.float64) - got).max(initial=0)
    return largest / max(1e-3, np.abs(expected).max(initial=0))


def compare(case, run, tolerance, more_rows=0):
    """Whether there are results to compare with, and the text of a failure, None if there is none. `run(model, feeds)`
    gives the results under test. The tolerance grows for a model that makes more of noise than others do."""
    model, feeds = case.model(), case.builder.feeds(case.seed, more_rows)
    expected = reference(model, feeds)
    if expected is None:
        return False, None
    try:
        got = run(model, feeds)
    except Exception as e:  # any refusal is a failure
        return True, f"{case}: {e}"
    largest = max(map(error, expected, got))
    if largest <= tolerance:
        return True, None
    noisy = reference(case.noisy(bool(more_rows)), feeds)
    growth = max(map(error, expected, noisy)) / NOISE if noisy else 0
    growth = growth if np.isfinite(growth) else 0
    if largest <= tolerance * growth / GROWTH:
        return True, None
    pairs = ", ".join(f"{e.dtype}{e.shape} and {g.dtype}{g.shape}" for e, g in zip(expected, got))
    return True, f"{case}: error {largest:.3g}, noise grows by {growth:.3g}; expected and got {pairs}"


def compare_all(seeds, run, tolerance, more_rows=0):
    """Compares the models of the seeds, those with an open batch alone where it gets more rows; the count of models
    and of those that had results to compare with."""
    total, compared, failures = 0, 0, []
    for seed in seeds:
        case = random_model(seed)
        if not case.blocks or more_rows and not case.builder.dynamic:
            continue
        is_compared, failure = compare(case, run, tolerance, more_rows)
        total, compared = total + 1, compared + is_compared
        failures += [failure] if failure else []
    assert not failures, f"{len(failures)} of {total} models differ:\n" + "\n".join(failures)
    return total, compared


def seed_ranges(count, parts):
    """The seeds from 0 in ranges, or those of INGOT_RANDOM_MODELS=FROM:TO."""
    chosen = os.environ.get("INGOT_RANDOM_MODELS")
    first, last = map(int, chosen.split(":")) if chosen else (0, count)
    parts = max(1, min(parts, last - first))
    edges = [first + (last - first) * i // parts for i in range(parts + 1)]
    return [range(*pair) for pair in zip(edges, edges[1:])]
