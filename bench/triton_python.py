# SPDX-License-Identifier: Apache-2.0
"""The packaged python backend of Triton Inference Server, in which the peers of benchmarks run."""
import json
import os
import pathlib
import sys
import sysconfig

import triton_server


def python_library():
    """The folder of this Python's shared library, which the backend's stub needs; None where there is none."""
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    places = [sysconfig.get_config_var("LIBDIR"), pathlib.Path(sys.base_prefix, "lib"),
              pathlib.Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")]
    return next((str(place) for place in places if place and pathlib.Path(place, name).is_file()), None)


def add_python_backend(server):
    """Adds the backend with the stub of this Python to a server that is not started yet. Returns the environment that it
    needs."""
    home = triton_server.SERVER.parent.parent
    folder = server.folder / "backends" / "python"
    folder.mkdir(parents=True)
    for file in (home / "backends" / "python").iterdir():
        (folder / file.name).symlink_to(file)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = folder / "triton_python_backend_stub"
    stub.write_bytes((home / "python_backend_stubs" / version / stub.name).read_bytes())
    stub.chmod(0o755)
    libraries = [str(triton_server.DEPS / "nvidia_pytriton.libs"), python_library(), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, libraries))}


def configuration_of(server, model):
    """The inputs and outputs of a configuration that the backend has completed, as text."""
    found = server.config(model)
    return "".join(f'{kind} {{ name: "{t["name"]}" data_type: {t["data_type"]} dims: {json.dumps(t["dims"])} }}\n'
                   for kind in ("input", "output") for t in found[kind])


def add_source(server, name, source, packages=()):
    """Puts model.py there, which finds the packages of this Python behind those of `packages`."""
    paths = f"import sys\nsys.path[:0] = {[*map(str, packages), *(path for path in sys.path if path)]!r}\n"
    (server.repository / name / "1" / "model.py").write_text(paths + source.read_text(encoding="utf-8"), encoding="utf-8")


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n' if value else ""
