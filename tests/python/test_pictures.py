# SPDX-License-Identifier: Apache-2.0
"""Pictures as inputs: compressed files that grow beyond measure are refused by their numbers."""
import struct
import subprocess
import zlib

import pytest

import ingot_command as ingot

DIGITS = ingot.DIGITS / "digits.onnx"

MIB = 1 << 20


def png(width, height, data, kind=2):
    """A PNG file with this compressed data; kind 2 is RGB, 0 gray."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def zeros(count):
    """`count` zeros, compressed about a thousand times."""
    packer = zlib.compressobj(9)
    piece = bytes(MIB)
    parts = [packer.compress(piece[:min(MIB, count - at)]) for at in range(0, count, MIB)]
    return b"".join(parts) + packer.flush()


def black(width, height):
    return png(width, height, zeros((3 * width + 1) * height))


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """Runs an engine on a picture, with an address space that holds no bomb."""
    folder = tmp_path_factory.mktemp("pictures")
    ingot.build(DIGITS, folder / "digits.engine")

    def run(content, name="bomb.png"):
        (folder / name).write_bytes(content)
        command = (f"ulimit -v {1 << 20}; exec {ingot.binary()} run {folder}/digits.engine --device=cpu "
                   f"--input image={folder}/{name}")
        done = subprocess.run(["sh", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=120, check=False)
        return done.returncode, done.stdout.replace(str(folder) + "/", "")
    return run


def test_plain_pictures_of_any_ratio_are_read(run):
    content = black(1920, 1080)
    assert 1920 * 1080 * 3 > 500 * len(content)
    code, text = run(content, "black.png")
    assert code == 0, text


def test_a_picture_a_thousand_times_its_file_is_refused(run):
    content = png(16000, 16000, zeros(16001 * 16000), kind=0)
    pixels = 16000 * 16000
    assert pixels > 900 * len(content)
    code, text = run(content)
    assert code == 1
    assert (f"bomb.png: the picture has 16000x16000 pixels, {pixels} bytes, which is {pixels // len(content)} times the "
            f"{len(content)} bytes of its file; above 67108864 bytes at most 100 times are read: scale it down") in text


def test_more_pixels_than_any_picture_has_are_refused(run):
    code, text = run(png(20000, 20000, zeros(10), kind=0))
    assert code == 1
    assert "bomb.png: the picture has 20000x20000 pixels, which is too large" in text
    code, text = run(png(60000, 60000, zeros(10)))
    assert code == 1
    assert "bomb.png: not a PNG or JPEG picture, or one of more than 2^30 values" in text


@pytest.mark.parametrize(("side", "megabytes"), [(1, 600), (28, 600), (1000, 1500)])
def test_compressed_data_beyond_the_picture_is_refused(run, side, megabytes):
    content = png(side, side, zeros(megabytes * MIB))
    allowed = max(16 * (side + 64) ** 2, 2 * len(content)) + (1 << 16)
    code, text = run(content)
    assert code == 1
    assert (f"bomb.png: the compressed data of {len(content)} bytes is for more than the picture's {side}x{side} pixels: "
            "it needs ") in text, text
    assert f" bytes at once, {allowed} are allowed; the file is damaged or hostile" in text


def test_every_shortened_picture_is_an_error(run):
    content = black(16, 16)
    for length in range(0, len(content) - 12, 7):  # the last chunk says only that it is the last
        code, text = run(content[:length])
        assert code == 1, (length, text)
        told = ("not a PNG or JPEG picture, or one of more than 2^30 values", "cannot decode the picture: ")
        assert any(f"bomb.png: {reason}" in text for reason in told), text
