# SPDX-License-Identifier: Apache-2.0
"""Finds the built Python package for tests, and small things that several of them need."""
import os
import pathlib
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
SHIM = pathlib.Path(__file__).resolve().parent
DIGITS = REPOSITORY / "examples" / "digits"
CPU = 2  # of Runtime.set_device and IBuilderConfig.set_device


def folder():
    """Where `import ingot` finds the package: $INGOT_PYTHON_PATH, else build/python."""
    return pathlib.Path(os.environ.get("INGOT_PYTHON_PATH") or REPOSITORY / "build" / "python")


def find():
    """Makes `import ingot`, `tensorrt` and `cuda` find what is under test; skips the module when
    the extension was not built."""
    if not list((folder() / "ingot").glob("_ingot*.so")):
        pytest.skip(f"no Python extension in {folder()}: it is built when .venv has nanobind and "
                    "Python's headers are installed", allow_module_level=True)
    for path in (SHIM, folder()):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))


def python_path(*first):
    """PYTHONPATH of a process that has to find the package, after the folders `first`, and what this
    one finds by its own PYTHONPATH."""
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, first), str(folder()), *([given] if given else [])])


def run(text, timeout=120, **environment):
    """Runs a program in a process of its own, so that a crash is a failed test; its output."""
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", text], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                          env=os.environ | {"PYTHONPATH": python_path(SHIM)} | environment)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}"
    return done.stdout
