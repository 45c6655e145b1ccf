# SPDX-License-Identifier: Apache-2.0
"""Every command that writes a file, to every kind of place: it is written there, whole and nowhere
else, or the error names the place."""
import os
import subprocess

import numpy as np
import pytest

import ingot_command as ingot

DIGITS = ingot.DIGITS / "digits.onnx"

SECRET = b"nobody's business"


@pytest.fixture(name="given", scope="module")
def fixture_given(tmp_path_factory):
    """The commands by name, each without its output."""
    folder = tmp_path_factory.mktemp("given")
    engine = folder / "digits.engine"
    ingot.build(DIGITS, engine)
    key = folder / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    samples = folder / "samples"
    samples.mkdir()
    for index, picture in enumerate(np.load(DIGITS.parent / "held_out_images.npy")[:2]):
        np.save(samples / f"{index}.npy", picture[None])
    return {"build": ["build", DIGITS, "-o"], "slim": ["slim", DIGITS, "-o"],
            "quantize": ["quantize", "--int8", DIGITS, "-o"],
            "calibrate": ["calibrate", DIGITS, "--device=cpu", "--data", samples, "-o"],
            "sign": ["sign", engine, "--key", key, "-o"],
            "bench": ["bench", engine, "--device=cpu", "--iterations=1", "--duration=0", "--warmUp=0",
                      "--exportTimes="]}


COMMANDS = ["build", "slim", "quantize", "calibrate", "sign", "bench"]


def called(command, output):
    """Exit code and text of the command with this output."""
    line = list(map(str, command))
    line = line[:-1] + [line[-1] + str(output)] if line[-1].endswith("=") else [*line, str(output)]
    done = subprocess.run([str(ingot.binary()), *line], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout


@pytest.fixture(name="outside")
def fixture_outside(tmp_path):
    """A file that no command may touch."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_bytes(SECRET)
    yield folder / "file"
    assert (folder / "file").read_bytes() == SECRET
    assert os.listdir(folder) == ["file"]


def folder(path, outside):
    path.mkdir()


def link_to_folder(path, outside):
    path.symlink_to(outside.parent)


def fifo(path, outside):
    os.mkfifo(path)


def link_to_full(path, outside):
    path.symlink_to("/dev/full")


REFUSED = [folder, link_to_folder, fifo, link_to_full]


@pytest.mark.parametrize("make", REFUSED)
@pytest.mark.parametrize("name", COMMANDS)
def test_places_that_are_no_files_are_refused(given, tmp_path, outside, name, make):
    output = tmp_path / "out"
    make(output, outside)
    code, text = called(given[name], output)
    assert code == 1, text
    assert f"cannot write '{output}': it exists and is not a regular file" in text
    assert sorted(os.listdir(tmp_path)) == ["out", "outside"]


@pytest.mark.parametrize("name", COMMANDS)
def test_devices_and_absent_folders_are_refused(given, tmp_path, outside, name):
    code, text = called(given[name], "/dev/full")
    assert code == 1 and "cannot write '/dev/full': it exists and is not a regular file" in text
    code, text = called(given[name], tmp_path / "none" / "out")
    assert code == 1 and str(tmp_path / "none") in text, text
    assert "No such file or directory" in text
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_links_stay_and_other_names_keep_their_text(given, tmp_path, outside, name):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    assert called(given[name], tmp_path / "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert len((tmp_path / "file").read_bytes()) > 3
    os.link(outside, tmp_path / "hard")  # its text stays under the other name
    assert called(given[name], tmp_path / "hard")[0] == 0
    assert (tmp_path / "hard").read_bytes() != SECRET
    (tmp_path / "dangling").symlink_to(outside.parent / "new")
    assert called(given[name], tmp_path / "dangling")[0] == 0
    assert not (tmp_path / "dangling").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "hard", "link", "outside"]
