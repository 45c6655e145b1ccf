# SPDX-License-Identifier: Apache-2.0
"""Says loudly, after the last test, what was skipped and why."""


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section(f"NOT TESTED: {len(skipped)} tests were skipped", sep="!", red=True)
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.line(f"{report.nodeid}: {reason}")
