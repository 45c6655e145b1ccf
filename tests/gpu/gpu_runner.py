# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of gpu_tests.py side by side, each with a time limit, and reads what they
print. Needs tests/python on the path."""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import ingot_command as ingot
from models import MODELS, model_file


class Failed(Exception):
    """A part that could not do its work."""


class Runner:
    """Starts programs, never more at once than there are slots, and ends them at a time limit."""

    def __init__(self, a):
        self.a = a
        self.slots = threading.Semaphore(max(2, a.jobs))
        self.deadline = time.time() + a.limit
        if a.work:
            os.makedirs(a.work, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ingot_gpu_", dir=a.work or None))
        self.engines, self.lock = {}, threading.Lock()
        self.filling = threading.Semaphore(4)  # weights at once

    def program(self, name):
        for folder in (ingot.binary().parent, ingot.binary().parent / "tests"):
            if (folder / name).is_file():
                return folder / name
        raise Failed(f"there is no {name} beside {ingot.binary()}")

    def run(self, command, environment=None, limit=240):
        """(exit code or 'time limit', what it printed, seconds)"""
        with self.slots:
            left = min(limit, self.deadline - time.time())
            if left <= 0:
                return "time limit", "not started: the time for all parts is used up", 0.0
            start = time.time()
            child = subprocess.Popen([str(c) for c in command], text=True, start_new_session=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     errors="replace", env={**os.environ, **(environment or {})})
            try:
                code = child.communicate(timeout=left)
                code, text = child.returncode, code[0]
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                code, text = "time limit", child.communicate()[0]
            return code, text, round(time.time() - start, 1)

    def ingot(self, *arguments, limit=240):
        code, text, _ = self.run([ingot.binary(), *arguments], limit=limit)
        if code != 0:
            raise Failed(f"ingot {arguments[0]}: exit {code}: {text[-600:]}")
        return text

    def gpu(self):
        """The environment and the --device of programs that run kernels."""
        return {"INGOT_TEST_GPU": "0" if self.a.rehearse else "1"}

    def engine(self, name, kind):
        """An engine of one of the models, built once: f32, f16, or f16 without a profile (open)."""
        with self.lock:
            path = self.folder / f"{name}.{kind}"
            future = self.engines.get(path)
            mine = future is None
            if mine:
                future = self.engines[path] = concurrent.futures.Future()
        if mine:
            try:
                flags = [] if kind == "f32" else ["--fp16"]
                flags += [] if kind == "open" else MODELS[name].profile_options()
                with self.filling:
                    model = model_file(name)
                self.ingot("build", model, "-o", path, *flags)
                future.set_result(path)
            except Exception as e:  # pylint: disable=broad-except
                future.set_exception(Failed(str(e)[-600:]))
        return future.result()


def together(function, items, at_once=None):
    """function(item) for all items side by side: {item: (good, values)}; an exception is a failure."""
    def guarded(item):
        try:
            return function(item)
        except (Failed, OSError, RuntimeError, KeyError, ValueError, FileNotFoundError) as e:
            return False, {"error": str(e)[-800:]}
    with concurrent.futures.ThreadPoolExecutor(max_workers=at_once or max(1, len(items))) as pool:
        return dict(zip(items, pool.map(guarded, items)))


def summary(outcomes):
    return all(good for good, _ in outcomes.values()), {k: v for k, (_, v) in outcomes.items()}


def what_failed(text):
    """The failures that GoogleTest printed, shortened."""
    found = re.findall(r"^(.*?: Failure\n(?:(?!\[ ).*\n?)*)", text, re.MULTILINE)
    return [f[:500] for f in found[:6]] or [text[-600:]]


def results_of(text):
    """'RESULT name key=value ...' lines."""
    out = {}
    for line in re.findall(r"^RESULT (.*)$", text, re.MULTILINE):
        name, *pairs = line.split()
        out[name] = {k: number(v) for k, v in (p.split("=", 1) for p in pairs if "=" in p)}
    return out


def number(text):
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


def gtest(r, program, pattern, environment, limit=240, may_be_empty=False):
    """A run of a test program: (good, values)."""
    code, text, seconds = r.run([r.program(program), f"--gtest_filter={pattern}"],
                                {**r.gpu(), **environment}, limit)
    ran = re.search(r"^\[==========\] (\d+) tests? from .* ran", text, re.MULTILINE)
    skipped = len(set(re.findall(r"^\[  SKIPPED \] (\S+\.[^\s,]+)", text, re.MULTILINE)))
    tests = int(ran.group(1)) if ran else 0
    values = {"tests": tests, "skipped": skipped, "seconds": seconds, **results_of(text)}
    if code != 0:
        values |= {"exit": code, "failures": what_failed(text)}
    elif tests <= skipped and not may_be_empty:
        values |= {"exit": code, "failures": [f"no test of {pattern} ran"]}
    return code == 0 and (tests > skipped or may_be_empty), values
