# SPDX-License-Identifier: Apache-2.0
"""ingot.onnxruntime: the provider by its name in Python's usual spellings. Each test runs a program of
its own, with a package folder as a wheel has it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import RELEASE, REPOSITORY, library, model_of, onnxruntime

PRELUDE = """
import numpy as np, onnxruntime
import ingot.onnxruntime
x = np.array([[-1.0, 2.0]], np.float32)
def check(session):
    assert session.run(None, {"x": x})[0].tolist() == [[0.0, 4.0]]
    assert session.get_providers()[0].lower() == "nvtensorrtrtxexecutionprovider"
def whole():
    made = onnxruntime.SessionOptions()
    made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return made
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder for PYTHONPATH with ingot/onnxruntime.py and the libraries beside it; the rest of the
    package is not needed for it."""
    folder = tmp_path_factory.mktemp("site") / "ingot"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    shutil.copy(REPOSITORY / "python" / "ingot" / "onnxruntime.py", folder)
    for path in library().parent.glob("libingot*.so"):
        (folder / path.name).symlink_to(path)
    model = model_of([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "r"], ["y"])],
                     {"x": (TensorProto.FLOAT, ["n", 2])}, {"y": (TensorProto.FLOAT, ["n", 2])})
    onnx.save(model, folder.parent / "model.onnx")
    return folder.parent


def run(package, text, allow_cpu="1", **more):
    paths = [str(package), str(pathlib.Path(onnxruntime.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
    environment.pop("INGOT_ALLOW_CPU", None)
    if allow_cpu is not None:
        environment["INGOT_ALLOW_CPU"] = allow_cpu
    return subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(text)], cwd=package,
                          env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def passes(package, text, **more):
    done = run(package, text, **more)
    assert done.returncode == 0, done.stdout


def test_names_and_paths(package):
    passes(package, """
        assert ingot.onnxruntime.get_ep_name() == "NvTensorRTRTXExecutionProvider"
        assert ingot.onnxruntime.get_ep_names() == ["NvTensorRTRTXExecutionProvider"]
        import os
        assert os.path.isfile(ingot.onnxruntime.get_library_path())
    """)


@pytest.mark.parametrize("name", ["NvTensorRTRTXExecutionProvider", "NvTensorRtRtxExecutionProvider"])
def test_providers_by_name(package, name):
    passes(package, f"""
        ingot.onnxruntime.register()
        check(onnxruntime.InferenceSession("model.onnx", whole(), providers=["{name}"]))
        check(onnxruntime.InferenceSession("model.onnx", providers=["{name}", "CPUExecutionProvider"]))
        check(onnxruntime.InferenceSession("model.onnx", whole(), ["{name}"], [{{"device_id": 0}}]))
    """)


def test_options_as_python_values(package):
    passes(package, """
        ingot.onnxruntime.register()
        options = {'device_id': 0, 'nv_dump_subgraphs': False, 'nv_detailed_build_log': True,
                   'enable_cuda_graph': True, 'user_compute_stream': 0}
        check(onnxruntime.InferenceSession("model.onnx", sess_options=whole(),
                                           providers=[('NvTensorRTRTXExecutionProvider', options)]))
    """)


def test_add_provider_and_options_used_twice(package):
    passes(package, """
        ingot.onnxruntime.register()
        options = whole()
        options.add_provider("NvTensorRTRTXExecutionProvider", {"enable_cuda_graph": "0"})
        for _ in range(2):
            check(onnxruntime.InferenceSession("model.onnx", options))
        again = whole()
        for _ in range(2):
            check(onnxruntime.InferenceSession("model.onnx", again,
                                               providers=["NvTensorRTRTXExecutionProvider"]))
        try:
            onnxruntime.InferenceSession("model.onnx", again, providers=[
                ("NvTensorRTRTXExecutionProvider", {"enable_cuda_graph": True})])
        except ValueError as e:
            assert "already" in str(e), e
        else:
            raise AssertionError("other options were taken")
    """)


def test_compiling_by_name(package, tmp_path):
    passes(package, f"""
        ingot.onnxruntime.register()
        options = onnxruntime.SessionOptions()
        options.add_provider("NvTensorRTRTXExecutionProvider", {{}})
        onnxruntime.ModelCompiler(options, "model.onnx").compile_to_file({str(tmp_path / "c.onnx")!r})
        check(onnxruntime.InferenceSession({str(tmp_path / "c.onnx")!r}, whole(),
                                           providers=["NvTensorRTRTXExecutionProvider"]))
    """)


def test_a_provider_that_fails_raises(package):
    done = run(package, """
        ingot.onnxruntime.register()
        onnxruntime.InferenceSession("model.onnx", providers=[
            ("NvTensorRTRTXExecutionProvider", {"enable_cuda_grph": True})])
    """)
    assert done.returncode != 0
    assert 'Unknown provider option: "enable_cuda_grph". Did you mean "enable_cuda_graph"?' in done.stdout
    assert "Falling back" not in done.stdout
    done = run(package, """
        ingot.onnxruntime.register()
        onnxruntime.InferenceSession("model.onnx", enable_fallback=True, providers=[
            ("NvTensorRTRTXExecutionProvider", {"enable_cuda_grph": True})])
    """)
    if RELEASE < (1, 32):
        assert done.returncode == 0 and "Falling back" in done.stdout, done.stdout
    else:  # this release itself raises an invalid argument, whatever is asked
        assert done.returncode != 0 and "Unknown provider option" in done.stdout, done.stdout


def test_without_a_device_it_says_what_to_do(package):
    done = run(package, """
        ingot.onnxruntime.register()
        onnxruntime.InferenceSession("model.onnx", providers=["NvTensorRTRTXExecutionProvider"])
    """, allow_cpu=None)
    if "has no device here" not in done.stdout and done.returncode == 0:
        pytest.skip("there is a GPU here: a machine without a device was NOT tested")
    assert "has no device here: there is no GPU of compute capability 8.0" in done.stdout
    passes(package, """
        import os
        ingot.onnxruntime.register(allow_cpu=True)
        assert "INGOT_ALLOW_CPU" not in os.environ
        check(onnxruntime.InferenceSession("model.onnx", providers=["NvTensorRTRTXExecutionProvider"]))
    """, allow_cpu=None)


def test_register_twice_and_unregister(package):
    passes(package, """
        before = onnxruntime.InferenceSession.__init__
        for _ in range(3):
            ingot.onnxruntime.register()
            ingot.onnxruntime.register()
            session = onnxruntime.InferenceSession("model.onnx", providers=["NvTensorRTRTXExecutionProvider"])
            check(session)
            del session
            ingot.onnxruntime.unregister()
            ingot.onnxruntime.unregister()
        assert onnxruntime.InferenceSession.__init__ is before
    """)


@pytest.mark.skipif(RELEASE < (1, 25), reason="onnxruntime 1.24 knows no names of plugins in providers=: "
                                              "other registrations were NOT tested")
@pytest.mark.parametrize("name", ["IngotExecutionProvider", "NvTensorRtRtxExecutionProvider"])
def test_registered_under_another_name_it_has_that_name(package, name):
    passes(package, f"""
        onnxruntime.register_execution_provider_library("{name}", ingot.onnxruntime.get_library_path())
        session = onnxruntime.InferenceSession("model.onnx", whole(), providers=["{name}"],
                                               enable_fallback=False)
        assert session.get_providers()[0] == "{name}"
        assert session.run(None, {{"x": x}})[0].tolist() == [[0.0, 4.0]]
    """)


def test_one_file_registered_twice_and_unregistered_with_a_session_alive(package):
    passes(package, """
        path = ingot.onnxruntime.get_library_path()
        sessions = []
        for name in ("one", "two"):
            onnxruntime.register_execution_provider_library(name, path)
        devices = [d for d in onnxruntime.get_ep_devices()
                   if d.ep_name == "NvTensorRTRTXExecutionProvider"]
        assert len(devices) == 2
        for device in devices:
            options = whole()
            options.add_provider_for_devices([device], {})
            sessions.append(onnxruntime.InferenceSession("model.onnx", options, enable_fallback=False))
        for session in sessions:
            check(session)
        for name in ("one", "two"):
            onnxruntime.unregister_execution_provider_library(name)
        for session in sessions:
            check(session)
        del session
        sessions.clear()
    """)


def test_command_says_what_is_found(package):
    environment = {**os.environ, "INGOT_ALLOW_CPU": "1", "PYTHONPATH": os.pathsep.join(
        [str(package), str(pathlib.Path(onnxruntime.__file__).parents[1])])}
    done = subprocess.run([sys.executable, "-m", "ingot.onnxruntime"], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert f"onnxruntime: {onnxruntime.__version__} at " in done.stdout
    assert "libingot_onnxruntime.so" in done.stdout and "device 0: CPU" in done.stdout


@pytest.mark.parametrize("embed", ["True", "False"])
def test_sample_prints_its_four_times(package, tmp_path, embed):
    paths = [str(package), str(pathlib.Path(onnxruntime.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, REPOSITORY / "examples" / "ep_context" / "sample_compile.py", "-i",
         package / "model.onnx", "-o", tmp_path / "model_ctx.onnx", "-p",
         "NvTensorRTRTXExecutionProvider", "-e", embed],
        env={**os.environ, "INGOT_ALLOW_CPU": "1", "PYTHONPATH": os.pathsep.join(paths)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    for line in ("Original session load time", "Compile time", "Context model session load time",
                 "Context model session load time with runtime cache"):
        assert re.search(rf"^> {line}: [\d.e-]+ sec$", done.stdout, re.MULTILINE), done.stdout
    assert "Program finished successfully." in done.stdout
    assert (tmp_path / "model_ctx_0.engine").exists() == (embed == "False")


def listings_of_the_page():
    page = (REPOSITORY / "docs" / "onnxruntime.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_first_result_in_five_lines(package):
    """The first listing of docs/onnxruntime.md as it stands, in the folder of this clone."""
    first, *_ = listings_of_the_page()
    assert len(first.splitlines()) == 5
    done = run(package, f"import os; os.chdir({str(REPOSITORY)!r})\n" + first, allow_cpu=None)
    label = np.load(REPOSITORY / "examples" / "digits" / "held_out_labels.npy")[0]
    assert (done.returncode, done.stdout) == (0, f"digit {label}\n")


def test_listings_of_the_page(package):
    """The others to the letter, each after the first two lines of the first."""
    first, by_hand, compiled = listings_of_the_page()
    imports, register = first.splitlines(keepends=True)[:2]
    session_runs = 'print(session.run(None, {"x": np.array([[-1.0, 2.0]], np.float32)})[0].tolist())\n'
    for text in (imports + by_hand + 'session = onnxruntime.InferenceSession("model.onnx", options)\n' + session_runs,
                 imports + register + compiled + session_runs):
        done = run(package, text + "print(session.get_providers()[0])\n")
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-2:] == ["[[0.0, 4.0]]", "NvTensorRTRTXExecutionProvider"], done.stdout
    assert (package / "model_ctx.onnx").exists()
