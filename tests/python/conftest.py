# SPDX-License-Identifier: Apache-2.0
"""Says loudly, after the last test, what was skipped and why; fixtures."""
import signal

import pytest


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
