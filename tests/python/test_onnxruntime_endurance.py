# SPDX-License-Identifier: Apache-2.0
"""Many sessions: in processes that are killed while they share a cache folder, and one after the other in one
process, which must not grow. INGOT_CACHE_SESSIONS=8x50 (processes, sessions of each) and
INGOT_SESSIONS=1000 ask for more than a usual run does."""
import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

from onnxruntime_plugin import library

HERE = pathlib.Path(__file__).parent
PROCESSES, SESSIONS = map(int, os.environ.get("INGOT_CACHE_SESSIONS", "3x8").split("x"))
MANY = int(os.environ.get("INGOT_SESSIONS", "150"))
MOST_MB = 8


class Worker:
    """A process that goes on where it was killed."""

    def __init__(self, folder, number):
        self.folder, self.log = folder / "cache", folder / f"worker_{number}.txt"
        self.log.touch()
        self.start()

    def done(self):
        """Sessions that have ended; a line that a kill cut short does not count."""
        return sum(line.endswith("\n") for line in self.log.open())

    def start(self):
        text = self.log.read_text()
        self.log.write_text(text[:text.rfind("\n") + 1])
        with self.log.open("a") as out, open(str(self.log) + ".err", "a") as err:
            self.process = subprocess.Popen([sys.executable, "onnxruntime_sessions.py", "cache", self.folder,
                                             str(self.done()), str(SESSIONS)], cwd=HERE, stdout=out, stderr=err)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()


@pytest.mark.parametrize("cut", [False, True], ids=["fresh", "beside damaged files"])
def test_killed_processes_leave_whole_files_and_right_results(tmp_path, cut):
    """Each worker checks its results; a cache file is the one that an undisturbed process writes."""
    library()
    want = undisturbed(tmp_path / "good")
    (tmp_path / "cache").mkdir()
    if cut:
        for name, content in want.items():
            (tmp_path / "cache" / name).write_bytes(content[:len(content) // 2])
    dice = random.Random(7)
    workers = [Worker(tmp_path, i) for i in range(PROCESSES)]
    kills = 0
    while kills == 0 and workers[0].process.poll() is None:  # however fast the sessions are
        if workers[0].done():
            workers[0].kill()
            kills = 1
        time.sleep(0.005)
    while any(w.process.poll() is None for w in workers):
        time.sleep(dice.uniform(0.05, 0.4))
        chosen = dice.choice(workers)
        if kills < PROCESSES * SESSIONS // 4 and chosen.process.poll() is None and chosen.done() > kills // PROCESSES:
            chosen.kill()
            kills += 1
    for w in workers:
        assert w.process.returncode == 0, pathlib.Path(str(w.log) + ".err").read_text()[-3000:]
        assert w.done() == SESSIONS
    assert kills > 0
    left = {p.name: p.read_bytes() for p in (tmp_path / "cache").iterdir()}
    print(kills, "kills,", PROCESSES * SESSIONS, "sessions, files:", sorted(left))
    assert {name: left.get(name) for name in want} == want
    # A process that is killed between naming a whole file and renaming it leaves that file.
    assert all(name.endswith(".tmp") and left[name] in want.values() for name in set(left) - set(want))


def undisturbed(folder):
    folder.mkdir()
    subprocess.run([sys.executable, "onnxruntime_sessions.py", "cache", folder, "0", "3"], cwd=HERE, check=True,
                   stdout=subprocess.DEVNULL)
    found = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert len(found) == 3
    return found


@pytest.mark.parametrize("simulated", ["0", "1"], ids=["cpu", "simulated gpu"])
def test_sessions_leave_no_memory_behind(simulated):
    """The simulated GPU has so little memory that 8 MiB lost by all sessions together end it."""
    library()
    device = {"INGOT_SIMULATED_GPU": simulated, "INGOT_SIMULATED_GPU_MEMORY": str(MOST_MB << 20)}
    done = subprocess.run([sys.executable, "onnxruntime_sessions.py", "many", str(MANY // 4), str(MANY)], cwd=HERE,
                          text=True, capture_output=True, env={**os.environ, **device}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    print("MB left behind:", done.stdout)
    assert float(done.stdout) <= MOST_MB
