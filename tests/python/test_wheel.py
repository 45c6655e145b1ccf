# SPDX-License-Identifier: Apache-2.0
"""The wheels that `./dev wheel` makes, here around what the build has compiled already: their names,
contents and sizes; and their use in an environment of their own, without this checkout."""
import base64
import csv
import email
import fnmatch
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy
import pytest

from shim import package

package.find()
sys.path.insert(0, str(package.REPOSITORY / "tools"))

import wheels  # noqa: E402

LIBRARIES = package.folder().resolve().parent
# Libraries of every Linux; the extension finds libingot.so beside itself.
SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libingot.so"}
PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"

if not wheels.extension_of(sys.executable, LIBRARIES):
    pytest.skip(f"{LIBRARIES} has no finished extension and stub for {sys.executable}: wheels were "
                "NOT tested", allow_module_level=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The two wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    return (wheels.package_wheel(sys.executable, LIBRARIES, folder, folder, isolated=False),
            wheels.alias_wheel(sys.executable, folder, isolated=False))


@pytest.fixture(scope="module")
def installed(made, tmp_path_factory):
    """A Python with the wheels installed and numpy, and nothing that finds the build."""
    folder = tmp_path_factory.mktemp("user") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index",
                    "--no-deps", *made], check=True)
    site, = folder.glob("lib/python*/site-packages")
    # numpy of the tests' environment: pip would fetch it.
    (site / "numpy.pth").write_text(str(pathlib.Path(numpy.__file__).resolve().parents[1]) + "\n")
    return python


def run(python, text, folder, **variables):
    """The output of a program that a user runs in `folder`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "INGOT_"))}
    done = subprocess.run([python, "-c", text], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, env=kept | variables, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_names_and_sizes(made):
    ingot, aliases = made
    stable = sys.version_info >= (3, 12)
    abi = "cp312-abi3" if stable else f"{PYTHON}-{PYTHON}"
    assert re.fullmatch(rf"ingot-0\.1\.0-{abi}-manylinux_2_\d+_x86_64\.whl", ingot.name)
    assert aliases.name == "ingot_tensorrt-0.1.0-py3-none-any.whl"
    assert 1_000_000 < ingot.stat().st_size < 20_000_000
    assert aliases.stat().st_size < 10_000


def test_the_readme_names_it(made):
    """`pip install dist/ingot-*-cp311-*.whl` there, for the Python of Debian 12."""
    text = (package.REPOSITORY / "README.md").read_text(encoding="utf-8")
    pattern, = re.findall(r"pip install dist/(\S+)", text)
    assert fnmatch.fnmatch(made[0].name.replace(PYTHON, "cp311"), pattern)
    assert not fnmatch.fnmatch(made[1].name, pattern)


def test_contents(made):
    names = set(zipfile.ZipFile(made[0]).namelist())
    extension, = [name for name in names if re.fullmatch(r"ingot/_ingot\.[\w-]+\.so", name)]
    folder = package.REPOSITORY / "python"
    sources = {str(path.relative_to(folder)) for path in (folder / "ingot").rglob("*")
               if path.suffix in (".py", ".pyi", ".typed")}
    information = {f"ingot-0.1.0.dist-info/{name}" for name in
                   ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "licenses/NOTICE", "sboms/ingot.cdx.json")}
    libraries = {"ingot/libingot.so", extension, "ingot/_ingot.pyi"}
    onednn = {"ingot/libingot_cpu.so", "ingot/libingot_cpu.licenses.txt"}
    plugin = "ingot/libingot_onnxruntime.so"
    assert names - onednn - {plugin} == sources | information | libraries
    assert (plugin in names) == (LIBRARIES / "libingot_onnxruntime.so").exists()
    assert (names & onednn == onednn) == (LIBRARIES / "libingot_cpu.so").exists()
    assert "ingot/py.typed" in names and {"ingot/config.py", "ingot/ray/__init__.py"} <= names


def test_metadata(made):
    with zipfile.ZipFile(made[0]) as wheel:
        data = email.message_from_bytes(wheel.read("ingot-0.1.0.dist-info/METADATA"))
        tags = wheel.read("ingot-0.1.0.dist-info/WHEEL").decode()
    assert data["Name"] == "ingot" and data["Version"] == "0.1.0"
    assert data["Requires-Python"] == ">=3.10" and data["License-Expression"] == "Apache-2.0"
    assert [r for r in data.get_all("Requires-Dist") if "extra" not in r] == ["numpy>=1.23"]
    assert data.get_all("Provides-Extra") == ["cuda", "config", "ray"]
    assert "```python" in data.get_payload()  # docs/python.md
    assert f"Tag: {made[0].stem.split('-', 2)[2]}\n" in tags
    with zipfile.ZipFile(made[1]) as wheel:
        data = email.message_from_bytes(wheel.read("ingot_tensorrt-0.1.0.dist-info/METADATA"))
    assert data.get_all("Requires-Dist") == ["ingot==0.1.0"]


def test_record_has_every_file(made):
    for path in made:
        with zipfile.ZipFile(path) as wheel:
            record, = [name for name in wheel.namelist() if name.endswith("/RECORD")]
            rows = {row[0]: row[1:] for row in csv.reader(wheel.read(record).decode().splitlines())}
            assert rows.keys() == set(wheel.namelist())
            for name, (digest, size) in rows.items():
                if name != record:
                    found = hashlib.sha256(wheel.read(name)).digest()
                    assert digest == "sha256=" + base64.urlsafe_b64encode(found).rstrip(b"=").decode()
                    assert int(size) == len(wheel.read(name))


def test_libraries_need_what_every_linux_has(made, tmp_path):
    zipfile.ZipFile(made[0]).extractall(tmp_path)
    libraries = list(tmp_path.rglob("*.so"))
    assert len(libraries) >= 2
    for library in libraries:
        text = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True)
        assert set(re.findall(r"NEEDED +(\S+)", text.stdout)) <= SYSTEM, library.name
        paths = re.findall(r"R(?:UN)?PATH +(\S+)", text.stdout)
        assert all(part.startswith("$ORIGIN") for path in paths for part in path.split(":"))
    glibc = re.search(r"manylinux_(\d+)_(\d+)", made[0].name)
    assert wheels.glibc_needed(tmp_path) == tuple(map(int, glibc.groups()))


def test_a_new_user_compiles_and_runs(installed, tmp_path):
    for name in ("digits.onnx", "held_out_images.npy", "held_out_labels.npy"):
        shutil.copy(package.DIGITS / name, tmp_path)
    text = run(installed, """
import ingot
import numpy as np
model = ingot.compile("digits.onnx", fp16=True, save="digits.engine")
images = np.load("held_out_images.npy").astype(np.float32)
labels = np.load("held_out_labels.npy")
print((model(images).argmax(1) == labels).mean() > 0.95)
print((ingot.compile("digits.engine")(images).argmax(1) == labels).mean() > 0.95)
print(ingot.__file__)
""", tmp_path).split()
    assert text[:2] == ["True", "True"]
    assert pathlib.Path(text[2]).parents[4] == installed.parents[1]


@pytest.mark.parametrize("name, version", [("tensorrt", "11.1.0.0"), ("tensorrt_rtx", "1.6.0.0")])
def test_the_import_names_of_tensorrt(installed, tmp_path, name, version):
    text = run(installed, f"""
import ingot
import {name} as trt
builder = trt.Builder(trt.Logger(trt.Logger.WARNING))
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
network.mark_output(network.add_softmax(network.add_input("x", trt.float32, (2, 3))).get_output(0))
engine = builder.build_serialized_network(network, builder.create_builder_config())
print(trt.__version__, trt.Builder is ingot.Builder, bytes(engine)[:5])
""", tmp_path)
    assert text == f"{version} True b'INGOT'\n"


@pytest.mark.parametrize("name", ["tensorrt_lean", "tensorrt_dispatch"])
def test_the_import_names_of_runtimes(installed, tmp_path, name):
    text = run(installed, f"""
import ingot, tensorrt.plugin
import {name} as trt
print(trt.__version__, trt.Runtime is ingot.Runtime, hasattr(trt, "Builder"))
print(tensorrt.plugin.register is ingot.plugin.register)
""", tmp_path)
    assert text == "11.1.0.0 True False\nTrue\n"


def test_pydantic_is_asked_for_by_name(installed, tmp_path):
    """Only ingot.config needs it; a module of that name that cannot be imported stands for none."""
    (tmp_path / "pydantic.py").write_text("raise ImportError('none here')")
    text = run(installed, "import ingot\ntry:\n    import ingot.config\nexcept ImportError as e:\n"
                          "    print(e)", tmp_path)
    assert text == "ingot.config needs the package pydantic: pip install ingot[config]\n"


def test_nvrtc_of_pip_is_found(installed, tmp_path):
    """Where nvidia-cuda-nvrtc is installed, as an ahead-of-time build shows."""
    nvrtc = package.REPOSITORY / ".deps" / "nvrtc" / "lib"
    if not nvrtc.exists():
        pytest.skip(f"no NVRTC in {nvrtc}: run ./dev setup")
    (tmp_path / "nvidia" / "cu13").mkdir(parents=True)
    (tmp_path / "nvidia" / "cu13" / "lib").symlink_to(nvrtc)
    program = "import ingot, os; print(os.environ.get('INGOT_NVRTC'))"
    found = str(tmp_path / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13") + "\n"
    assert run(installed, program, tmp_path, PYTHONPATH=str(tmp_path)) == found
    assert run(installed, program, tmp_path) in ("None\n", found)
    chosen = run(installed, program, tmp_path, PYTHONPATH=str(tmp_path), INGOT_NVRTC="mine.so")
    assert chosen == "mine.so\n"


def test_stubs_are_those_of_the_extension(made, tmp_path):
    zipfile.ZipFile(made[0]).extractall(tmp_path)
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_ingot", "-i",
                    tmp_path / "ingot", "-p", package.REPOSITORY / "python" / "stubs.txt",
                    "-o", tmp_path / "again.pyi"], check=True)
    assert (tmp_path / "again.pyi").read_text() == (tmp_path / "ingot/_ingot.pyi").read_text()
