# SPDX-License-Identifier: Apache-2.0
"""A part of tools/reliability.py, which breaks what surrounds the command; the page has the whole."""
import pathlib
import shutil
import sys

import pytest

import ingot_command as ingot

sys.path.insert(0, str(ingot.REPOSITORY / "tools"))
import reliability  # noqa: E402
import reliability_builds  # noqa: E402
import reliability_tests  # noqa: E402


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


def test_a_kill_at_a_random_moment_leaves_the_old_or_the_new(place):
    build, *_ = reliability.scenarios(place)
    [(name, kills, killed, bad)] = reliability.random_kills(build, 50)
    assert kills == 20 and 0 < killed and bad == [], name


def test_builds_are_repeated_exactly(place):
    [(name, builds, _, bad)] = reliability_builds.rows(place, [reliability.MODEL], 20)
    assert builds == 4 * len(reliability_builds.ENVIRONMENTS) and bad == [], name


def test_builds_on_another_host_are_the_same(place):
    why = reliability_builds.no_hosts()
    if why:
        pytest.skip(f"no other host can be had here: {why}")
    failed, text = reliability_builds.on_host(place, reliability.MODEL, "elsewhere", ("sh", "-c", "uname -n; echo /*; exit 3", "sh"))
    name, folders = text.splitlines()
    assert failed is None and name == "elsewhere", text
    assert set(folders.split()) <= {f"/{f}" for f in ("bin", "dev", "etc", "lib", "lib64", "models", "opt", "out", "proc", "usr")}
    [(_, builds, _, bad)] = reliability_builds.host_rows(place, [reliability.MODEL])
    assert builds == 16 and bad == []


def test_builds_on_another_cpu_are_the_same(place):
    if reliability_builds.emulator() is None:
        pytest.skip("there is no qemu-x86_64 (qemu-user), which emulates other CPUs")
    [(_, builds, _, bad)] = reliability_builds.cpu_rows(place, [reliability.MODEL])
    assert builds == 12 and bad == []


def test_other_bytes_of_another_host_are_found(place, monkeypatch):
    made = iter(range(1000))
    monkeypatch.setattr(reliability_builds, "no_hosts", lambda: "")
    monkeypatch.setattr(reliability_builds, "build", lambda *_: (b"same", ""))
    monkeypatch.setattr(reliability_builds, "on_host", lambda *_: [(b"same", ""), (b"other", ""), (None, "no such host")][min(next(made), 2)])
    [(_, builds, _, bad)] = reliability_builds.host_rows(place, [reliability.MODEL])
    assert builds == 16 and len(bad) == 15
    assert bad[:2] == [f"{reliability.MODEL.name} on elsewhere: other bytes", f"{reliability.MODEL.name} on {reliability_builds.HOSTS[1]}: no such host"]


def test_other_bytes_are_found(place, monkeypatch):
    made = iter(range(1000))
    monkeypatch.setattr(reliability_builds, "build", lambda *_: (b"same" if next(made) != 5 else b"other", ""))
    [(_, _, _, bad)] = reliability_builds.rows(place, [reliability.MODEL], 20)
    assert bad == [f"{reliability.MODEL.name}, build 4: other bytes"]


def test_counts_come_from_the_tests_reports(place):
    """A program that stands for a test program: what it reports is what the page gets."""
    folder = place.folder / "tests"
    folder.mkdir()
    report = """{"testsuites": [{"testsuite": [
        {"name": "counts", "result": "COMPLETED", "injections": "70", "refused": "60"},
        {"name": "tells_nothing", "result": "COMPLETED"}, {"name": "skipped", "result": "SKIPPED"},
        {"name": "fails", "result": "COMPLETED", "failures": [{"failure": "no"}]}]}]}"""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\nfor a; do case $a in --gtest_output=json:*) cat > \"${{a#*json:}}\" <<'E'\n{report}\nE\nesac; done\n")
    program.chmod(0o700)
    c = reliability_tests.Class("title", "program", "*")
    assert reliability_tests.google_row(c, place.folder, place.folder, True) == ("title", 72, 62, ["fails: no"])
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    title, injections, refused, bad = reliability_tests.google_row(c, place.folder, place.folder, True)
    assert (injections, refused) == (1, 0) and bad[0].startswith("program ended by -9")


def test_parts_of_a_class_are_added(place):
    folder = place.folder / "parts" / "tests"
    folder.mkdir(parents=True)
    report = '{"testsuites": [{"testsuite": [{"name": "x", "result": "COMPLETED", "injections": "%s", "refused": "%s"}]}]}'
    program = folder / "program"
    program.write_text("#!/bin/sh\nn=${INGOT_EVERY_ALLOCATION%/3}\nfor a; do case $a in --gtest_output=json:*) "
                       f"printf '{report}' 10$n $n > \"${{a#*json:}}\";; esac; done\n")
    program.chmod(0o700)
    c = reliability_tests.Class("title", "program", "*", every_allocation=True, parts=3)
    row = reliability_tests.google_row(c, place.folder / "parts", place.folder, True)
    assert row == ("title", 101 + 102 + 103, 1 + 2 + 3, [])


def test_rows_take_their_places_on_the_page(monkeypatch):
    monkeypatch.setattr(reliability_tests, "CLASSES", [reliability_tests.Class(t, "p", "*") for t in ("first", "new", "last")])
    page = ("# Title\n\n| class | n |\n|---|---:|\n| `ingot build`: x | 1 | 1 | 0 |\n| first | 2 | 2 | 0 |\n"
            "| gone | 3 | 3 | 0 |\n| last | 4 | 4 | 0 |\n\nText.\n")
    assert reliability.replaced([("new", 5000, 6, []), ("last", 7, 7, [])], page) == (
        "# Title\n\n| class | n |\n|---|---:|\n| `ingot build`: x | 1 | 1 | 0 |\n| first | 2 | 2 | 0 |\n"
        "| new | 5,000 | 6 | 0 |\n| last | 7 | 7 | 0 |\n\nText.\n")


def test_the_page_shows_every_class_and_nothing_bad():
    rows = [line.split("|")[1:-1] for line in reliability.PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    counts = {name.strip(): [int(n.replace(",", "")) for n in numbers] for name, *numbers in rows}
    assert set(counts) >= {c.title for c in reliability_tests.CLASSES}
    assert sum("`ingot " in name for name in counts) == 8 * 3 + 2
    for name, (injections, refused, bad) in counts.items():
        assert bad == 0 and 0 <= refused <= injections and injections > 0, name
    assert "each 9th" not in reliability.PAGE.read_text()


def test_the_page_counts_as_much_as_was_promised():
    """The numbers of the classes with a goal: kills, locks, processes, sampled bits, contexts."""
    text = reliability.PAGE.read_text()
    for title, least in (("killed at a random moment", 1000), ("hold a kernel's lock", 500), ("compiled once", 8 * 200 * 50),
                         ("sampled bit of the rest", 100_000), ("nothing is left", 20_000), ("less of the CPU: the same bytes", 100),
                         ("built on other hosts", 16), ("built on other CPUs", 12),
                         ("40 ONNX models cut", 10_000), ("change places while", 40_000), ("outputs of commands", 24),
                         ("misuse of the Python API", 60), ("malformed ONNX files", 80)):
        counts = [int(line.split("|")[2].replace(",", "")) for line in text.splitlines() if title in line]
        assert counts and min(counts) >= least, title
