# SPDX-License-Identifier: Apache-2.0
"""A part of tools/reliability.py, which breaks what surrounds the command; the page has the whole."""
import pathlib
import shutil
import sys

import pytest

import ingot_command as ingot

sys.path.insert(0, str(ingot.REPOSITORY / "tools"))
import reliability  # noqa: E402


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler for the library that breaks calls")
    return reliability.Surroundings(pathlib.Path(ingot.binary()).parent, tmp_path_factory.mktemp("faults"))


def test_each_call_fails_or_kills_once(place):
    build, *_ = reliability.scenarios(place)
    assert place.calls(build.arguments) > 15
    for name, injections, refused, bad in reliability.system_calls(build, 5):
        assert bad == [], name
        assert 0 < refused <= injections, f"{name}: nothing was broken"


def test_what_is_bad_is_found(place):
    build, *_ = reliability.scenarios(place)
    build.prepare()
    assert build.fault(1, "error: no") == ""
    assert "success, with another result" in build.fault(0, "")
    assert "no error's text" in build.fault(1, "")
    assert "ended by -11" in build.fault(-11, "") and "ended by None" in build.fault(None, "")
    assert build.fault(-9, "", killed=True) == ""
    build.output.write_bytes(build.good[:-1])
    assert "neither old nor new" in build.fault(1, "error")
    build.output.write_bytes(build.good)
    left = build.output.with_name(build.output.name + ".1-2.tmp")
    left.write_bytes(b"")
    assert "left behind" in build.fault(0, "")
    left.unlink()
    assert build.fault(0, "") == ""


def test_the_page_shows_nothing_bad():
    rows = [line.split("|")[1:-1] for line in reliability.PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 14
    for name, injections, refused, bad in rows:
        assert int(bad) == 0 and 0 < int(refused) <= int(injections), name
