# SPDX-License-Identifier: Apache-2.0
"""Reports skipped tests and their reasons after the last test; fixtures."""
import signal
import subprocess

import pytest

import ingot_command


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"NOT TESTED: {len(skipped)} tests were skipped", sep="!", red=True)
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.line(f"{report.nodeid}: {reason}")


@pytest.fixture
def listens_to_ctrl_c():
    """Python handles SIGINT as in a terminal: a shell starts background work with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Where the build that has the command is installed, with its CMake package."""
    build = ingot_command.binary().parent
    if not (build / "CMakeCache.txt").exists():
        pytest.skip(f"{build} was not built by CMake here: its CMake package was NOT tested")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", build, "--prefix", folder], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def digits_engine(tmp_path_factory):
    """An engine of examples/digits, for tests that only read the file."""
    path = tmp_path_factory.mktemp("digits") / "digits.engine"
    ingot_command.build(ingot_command.DIGITS / "digits.onnx", path)
    return path
