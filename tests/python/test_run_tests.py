# SPDX-License-Identifier: Apache-2.0
"""tools/run_tests.py: a failed C++ program's tests stand at the end of the stage's log, which shows
commands in short."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402

LOG = """\
      Start  1: api
1/3 Test  #1: api .......   Passed    2.43 sec
      Start  2: base
2/3 Test  #2: base ......***Failed    1.00 sec
[ RUN      ] File.IsRead
[       OK ] File.IsRead (1 ms)
[ RUN      ] File.IsWritten
file_test.cpp:3: Failure
[  FAILED  ] File.IsWritten (1 ms)
[==========] 2 tests from 1 test suite ran. (3 ms total)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] File.IsWritten
      Start  3: cache
3/3 Test  #3: cache .....***Exception: SegFault  1.00 sec
[ RUN      ] Cache.IsFound
33% tests passed, 2 tests failed out of 3
"""


def failures_of(name):
    return run_tests.failures_of(name, LOG)


def test_failed_tests_are_shown_with_their_messages():
    assert failures_of("base") == ["[ RUN      ] File.IsWritten", "file_test.cpp:3: Failure",
                                   "[  FAILED  ] File.IsWritten (1 ms)"]


def test_a_program_that_died_shows_its_last_lines():
    assert failures_of("cache") == ["[ RUN      ] Cache.IsFound"]


def test_what_is_not_there_has_no_failures():
    assert failures_of("ops") == []


def test_a_log_shows_long_commands_in_short(tmp_path):
    names = [f"a{i}.cpp" for i in range(1000)]
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        assert run_tests.run(log, ["true", *names]) == 0
        assert run_tests.run(log, ["echo", "all", tmp_path]) == 0
    long, *short = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert long.startswith("$ true a0.cpp a1.cpp ") and long.endswith(" a22.cpp ... (977 more)")
    assert short == [f"$ echo all {tmp_path}", f"all {tmp_path}"]
