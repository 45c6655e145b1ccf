# SPDX-License-Identifier: Apache-2.0
"""A worker that breaks each call on files and memory while a model is compiled, and while a session
ends that writes its runtime cache: onnxruntime_faults.py FOLDER, with tests/faults/fault_shim.c
preloaded. Prints a row of JSON for each kind: how many faults, how many of them ended in an error,
and what is bad. Bad: a crash, a hang, an error without a text, a file of ours that is neither what it
was nor the whole new one, a compiled model that loads and is wrong."""
import ctypes
import errno
import faulthandler
import json
import os
import pathlib
import signal
import sys
import traceback

import numpy as np
import onnx

import onnxruntime_plugin as plugin

SHIM = ctypes.CDLL(None)
BEFORE = b"what was there before"
ERRORS = [errno.ENOSPC, errno.EROFS, errno.EIO]
KILL = -1
LIMIT_S = 80
X = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)


def source():
    rng = np.random.default_rng(0)
    return plugin.model_of(
        [plugin.helper.make_node("MatMul", ["x", "w"], ["a"]), plugin.helper.make_node("Relu", ["a"], ["y"])],
        {"x": (1, ["n", 16])}, {"y": (1, ["n", 24])},
        {"w": rng.standard_normal((16, 24)).astype(np.float32)})


class Broken:
    """Counts calls inside, and breaks number `at`."""

    def __init__(self, at, error):
        self.at, self.error = at, error

    def __enter__(self):
        SHIM.ingot_fault_arm(ctypes.c_long(self.at), self.error)
        return self

    def __exit__(self, *_):
        self.calls = SHIM.ingot_fault_disarm()


class Compiling:
    """The engine beside a compiled model. ONNX Runtime itself writes the model."""
    name = "compiling"

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.model, self.target = folder / "m.onnx", folder / "m_ctx.onnx"
        self.file = folder / "m_ctx_0.engine"
        onnx.save(source(), self.model)

    def prepare(self):
        self.file.write_bytes(BEFORE)
        self.compiler = plugin.onnxruntime.ModelCompiler(
            plugin.session_options(), str(self.model), embed_compiled_data_into_model=False)

    def act(self):
        self.compiler.compile_to_file(str(self.target))

    def check(self, wanted):
        """The model and the engine that are there: an error, or the right result."""
        try:
            got, = plugin.session(self.target).run(None, {"x": X})
        except Exception as e:
            return "" if str(e) else f"an error without a text: {e!r}"
        return "" if np.array_equal(got, wanted) else "another result"


class Caching:
    """The runtime cache that a session writes when it ends. It is never in the way."""
    name = "caching"

    def __init__(self, folder):
        self.folder = folder
        if not folder.exists():
            plugin.session(source(), self.options())
        self.file, = (p for p in folder.iterdir() if not p.name.endswith(".tmp"))

    def options(self):
        return {"nv_runtime_cache_path": str(self.folder)}

    def prepare(self):
        self.file.write_bytes(BEFORE)
        self.session = plugin.session(source(), self.options())

    def act(self):
        del self.session

    def check(self, wanted):
        got, = plugin.session(source(), self.options()).run(None, {"x": X})
        return "" if np.array_equal(got, wanted) else "another result"


def fault_in(scenario, good, killed, wanted):
    """The fault in the files; "" for none."""
    found = scenario.file.read_bytes() if scenario.file.exists() else None
    if found not in (good, BEFORE):
        return f"{scenario.file.name} is neither old nor new"
    left = [p.name for p in scenario.file.parent.iterdir() if p.name.endswith(".tmp")]
    for name in left:
        (scenario.file.parent / name).unlink()
    if left and not killed:
        return f"left behind: {left}"
    return scenario.check(wanted)


def failing(scenario, good, calls, wanted):
    row = {"what": f"{scenario.name}: a call fails", "faults": 0, "refused": 0, "bad": []}
    for at in range(1, calls + 1):
        for error in ERRORS:
            faulthandler.dump_traceback_later(LIMIT_S, exit=True)  # it hangs
            scenario.prepare()
            text = None
            with Broken(at, error):
                try:
                    scenario.act()
                except Exception as e:
                    text = str(e)
            row["faults"] += 1
            row["refused"] += text is not None
            bad = "an error without a text" if text == "" else fault_in(scenario, good, False, wanted)
            if bad:
                row["bad"].append(f"call {at}, {errno.errorcode[error]}: {bad}; {text}")
    faulthandler.cancel_dump_traceback_later()
    return row


def forked(work):
    """The exit code of a child that runs work(report), and what it reported. Sessions are made in
    children alone: a child inherits the locks that other threads hold, and here none works."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            signal.alarm(LIMIT_S)
            with os.fdopen(write, "w") as out:
                work(lambda value: print(json.dumps(value), file=out, flush=True))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as lines:
        reported = [json.loads(line) for line in lines]
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), reported


def killing(kind, folder, good, calls, wanted):
    """Each child first looks at what the one before has left."""
    row = {"what": f"{kind.name}: the process is killed", "faults": 0, "refused": 0, "bad": []}

    def work(report, at):
        scenario = kind(folder)
        if at > 1:
            report(fault_in(scenario, good, True, wanted))
        if at <= calls:
            scenario.prepare()
            with Broken(at, KILL):
                scenario.act()
            os._exit(0)

    for at in range(1, calls + 2):
        code, reported = forked(lambda report, at=at: work(report, at))
        if at > 1 and reported != [""]:
            row["bad"].append(f"call {at - 1}, kill: {reported}")
        if at <= calls:
            row["faults"] += 1
            row["refused"] += code == -9
        if code not in (0, -9):
            row["bad"].append(f"call {at}, kill: ended by {code}")
    return row


def examine(kind, folder, report):
    """Reports [the calls, the right result], then the row of failing calls."""
    wanted, = plugin.session(source()).run(None, {"x": X})
    scenario = kind(folder)
    scenario.prepare()
    with Broken(0, 0) as counted:
        scenario.act()
    good = scenario.file.read_bytes()
    assert good != BEFORE, f"{scenario.name} writes nothing"
    (folder.parent / f"good_{kind.name}").write_bytes(good)
    report([counted.calls, wanted.tolist()])
    signal.alarm(0)  # failing() has limits of its own
    report(failing(scenario, good, counted.calls, wanted))
    os._exit(0)


if __name__ == "__main__":
    where = pathlib.Path(sys.argv[1])
    for each in (Compiling, Caching):
        place = where / each.name
        ended, found = forked(lambda report, each=each, place=place: examine(each, place, report))
        assert ended == 0, (ended, found)
        (count, right), failed = found
        print(json.dumps(failed), flush=True)
        whole = (where / f"good_{each.name}").read_bytes()
        print(json.dumps(killing(each, place, whole, count, np.array(right, np.float32))), flush=True)
