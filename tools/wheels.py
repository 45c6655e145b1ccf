#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes wheels of the Python package from built libraries: one for each named Python, and a small
one for the import names tensorrt and tensorrt_rtx.

  wheels.py [PYTHON...]     programs; default: this one, and those of 3.10 to 3.12 that are found

Uses the extension built for a Python, or compiles it with build tools from pip. From Python 3.12
on, one wheel serves all later releases. Platform tags name the glibc that the libraries need. Each
wheel is installed in an environment of its own and recognises digits there (--untried leaves that
out).
"""
import argparse
import base64
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import sbom

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUPPORTED = ("3.10", "3.11", "3.12")
LARGEST = 20_000_000


def interpreters():
    """This Python, and one working interpreter for each release: by name, or from pyenv."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for release in SUPPORTED:
        for program in [f"python{release}", *glob.glob(f"{pyenv}/versions/{release}.*/bin/python")]:
            if release not in found and shutil.which(program) and subprocess.run(
                    [program, "-m", "pip", "--version"], capture_output=True, check=False
            ).returncode == 0:
                found[release] = program
    return [found[release] for release in sorted(found, key=lambda r: int(r.split(".")[1]))]


def glibc_needed(folder):
    """The newest version of glibc symbols in the libraries below a folder: (2, 36)."""
    newest = (2, 17)
    for library in folder.rglob("*.so"):
        symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True)
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols.stdout):
            newest = max(newest, (int(major), int(minor)))
    return newest


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def with_platform(wheel, out):
    """Rewrites a wheel under its true platform tag; its path."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as old:
        old.extractall(folder)
        major, minor = glibc_needed(pathlib.Path(folder))
        tag = f"manylinux_{major}_{minor}_x86_64"
        made = out / wheel.name.replace("linux_x86_64", tag)
        for before in out.glob(wheel.name.replace("linux_x86_64", "*")):
            before.unlink()
        lines = []
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
            for info in sorted(old.infolist(), key=lambda i: i.filename.endswith("/RECORD")):
                data = old.read(info)
                if info.filename.endswith(".dist-info/WHEEL"):
                    data = data.replace(b"linux_x86_64", tag.encode())
                if info.filename.endswith(".dist-info/RECORD"):
                    materials = info.filename.replace("RECORD", "sboms/ingot.cdx.json")
                    lines.append(record_line(materials, sbom.sbom().encode()))
                    new.writestr(zipfile.ZipInfo(materials), sbom.sbom(), zipfile.ZIP_DEFLATED, 9)
                    data = ("".join(lines) + f"{info.filename},,\n").encode()
                lines.append(record_line(info.filename, data))
                info.compress_type = zipfile.ZIP_DEFLATED
                new.writestr(info, data, compresslevel=9)
    return made


def pip_wheel(python, source, out, *options):
    command = [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, *options, source]
    done = subprocess.run([str(part) for part in command], check=False,
                          env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"no wheel for {python}: its output gives the reason")
    return max(out.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def extension_of(python, libraries):
    """The extension in `libraries` for this Python, or None."""
    suffix = subprocess.run([python, "-c", "import sysconfig as s; print(s.get_config_var('EXT_SUFFIX'))"],
                            capture_output=True, text=True, check=True).stdout.strip()
    path = libraries / "python" / "ingot" / f"_ingot{suffix}"
    return path if path.exists() and path.with_name("_ingot.pyi").exists() else None


def package_wheel(python, libraries, out, work, isolated=True):
    """The wheel of ingot for one Python; its path."""
    settings = [f"cmake.define.INGOT_LIBRARIES={libraries}",
                f"build-dir={work}/build-{{wheel_tag}}"]
    extension = extension_of(python, libraries)
    if extension:
        settings.append(f"cmake.define.INGOT_EXTENSION={extension}")
    options = [f"--config-settings={setting}" for setting in settings]
    if not isolated:
        options.append("--no-build-isolation")
    with tempfile.TemporaryDirectory() as made:
        return with_platform(pip_wheel(python, ROOT, pathlib.Path(made), *options), out)


def alias_wheel(python, out, isolated=True):
    """The wheel of ingot-tensorrt; its path."""
    options = [] if isolated else ["--no-build-isolation"]
    return pip_wheel(python, ROOT / "python" / "aliases", out, *options)


TRIAL = """
import sys, ingot, numpy
images, labels = (numpy.load(f"{sys.argv[1]}/held_out_{name}.npy") for name in ("images", "labels"))
model = ingot.compile(f"{sys.argv[1]}/digits.onnx", device="cpu")
assert (model(images.astype(numpy.float32)).argmax(1) == labels).mean() > 0.95
"""


def try_wheel(python, wheel):
    """Installs a wheel as a user does, and runs a model."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "INGOT_"))}
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "bin" / "python"
        for command in ([python, "-m", "venv", folder],
                        [made, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel],
                        [made, "-c", TRIAL, ROOT / "examples" / "digits"]):
            if subprocess.run([str(part) for part in command], cwd=folder, env=kept, check=False).returncode:
                sys.exit(f"wheels.py: {wheel.name} does not work with {python}: its output gives the reason")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--libraries", type=pathlib.Path, default=ROOT / "build",
                        help="the folder with libingot.so (default: build)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist",
                        help="where wheels go (default: dist)")
    parser.add_argument("--untried", action="store_true", help="do not try them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    libraries, work = options.libraries.resolve(), options.libraries.resolve() / "wheels"
    if not (libraries / "libingot.so").exists():
        sys.exit(f"wheels.py: no libingot.so in {libraries}: run './dev build', or name --libraries")
    for python in options.pythons or interpreters():
        print(f"wheel for {python}", flush=True)
        made = package_wheel(python, libraries, options.out, work)
        print(f"  {made.name}: {made.stat().st_size / 1e6:.1f} MB")
        if made.stat().st_size >= LARGEST:
            sys.exit(f"wheels.py: {made.name} is not below {LARGEST / 1e6:.0f} MB")
        if not options.untried:
            try_wheel(python, made)
    print(f"  {alias_wheel(sys.executable, options.out).name}")


if __name__ == "__main__":
    main()
