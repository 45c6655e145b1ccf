# SPDX-License-Identifier: Apache-2.0
"""Programs that use ONNX Runtime in processes of their own: what is loaded once in a process, such as the driver or
the plugin, is loaded anew in each."""
import os
import pathlib
import subprocess
import sys
import textwrap

from onnxruntime_plugin import onnxruntime

SECONDS = 400  # far more than any takes
PRELUDE = """
def message(f):
    try:
        f()
    except Exception as e:
        return str(e)
    raise AssertionError("nothing was raised")
"""


def clean_environment():
    """This process's environment without Ingot's variables, and with its packages."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("INGOT_")}
    return kept | {"PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent),
                                                  str(pathlib.Path(onnxruntime.__file__).parents[1])])}


def run_process(folder, prelude, text, environment):
    """Runs message(f), the text of an error that f raises, then the prelude and the text, in a folder; what they
    print."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + prelude + textwrap.dedent(text)], cwd=folder,
                          env=environment, text=True, timeout=SECONDS, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}"
    return done.stdout
