# SPDX-License-Identifier: Apache-2.0
"""Every public name of the Python package has words in its docstring beside the signature; its stubs,
which type checkers read, have every name and no other; mypy is strict with the package and takes the
listings of the guide, the pages and the examples."""
import ast
import enum
import os
import pathlib
import re
import subprocess
import sys

import pytest

from shim import package

package.find()

import ingot  # noqa: E402

STUB = package.folder() / "ingot" / "_ingot.pyi"
# A line that nanobind makes of a signature.
SIGNATURE = re.compile(r"(\d+\. )?`{0,2}[\w.]*\(.*\)( -> .*?)?`{0,2}|Overloaded function\.")
ALIASES = {"BuilderConfig", "OptimizationProfile", "PluginFieldCollection_", "RuntimeCache", "RuntimeConfig"}


def words(thing):
    """A docstring without its signatures."""
    lines = (getattr(thing, "__doc__", None) or "").splitlines()
    return " ".join(line for line in lines if line.strip() and not SIGNATURE.fullmatch(line.strip()))


def members(kind):
    """Public members that the class itself has, but for values of enumerations and constants."""
    for name, value in vars(kind).items():
        is_value = value is None or isinstance(value, (int, float, str, enum.Enum))
        if not name.startswith("_") and not is_value:
            yield name, value


def public_things():
    """(path, object) of everything in `import ingot`, and of ingot.config if it can be imported."""
    modules = [("ingot", ingot, ingot.__all__)]
    try:
        from ingot import config
        modules.append(("ingot.config", config, ["BuildConfig", "InferenceConfig"]))
    except ImportError:
        pass
    for prefix, module, names in modules:
        for name in names:
            value = getattr(module, name)
            if isinstance(value, ingot.DataType):  # trt.float32 and its like
                continue
            yield f"{prefix}.{name}", value
            if isinstance(value, type) and not issubclass(value, enum.Enum):
                for member, inner in members(value):
                    if not (prefix == "ingot.config" and member.startswith("model_")):
                        yield f"{prefix}.{name}.{member}", inner


def test_every_public_name_has_a_docstring():
    things = dict(public_things())
    assert len(things) > 800
    assert not [path for path, thing in things.items() if not words(thing)]
    assert words(ingot) and words(ingot.CompiledModel.__call__)


def stub_names(body):
    """Public name -> the node that defines it, of a module or class in the stub."""
    found = {}
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            found.update({target.id: node for target in node.targets})
    return {name: node for name, node in found.items() if not name.startswith("_")}


def test_the_stub_has_every_name_and_no_other():
    stub = stub_names(ast.parse(STUB.read_text(encoding="utf-8")).body)
    module = {name: value for name, value in vars(ingot._ingot).items() if not name.startswith("_")}
    assert stub.keys() == module.keys()
    for name, value in module.items():
        if isinstance(value, type) and name not in ALIASES:
            there = {member for member in vars(value) if not member.startswith("_")}
            if issubclass(value, enum.Enum):
                there = {member for member in vars(value) if member[0] != "_"
                         and isinstance(getattr(value, member), value)}
            if name == "DataType":
                there.add("itemsize")
            assert stub_names(stub[name].body).keys() == there, name


def test_the_packages_stub_has_every_name_and_no_other():
    text = (package.REPOSITORY / "python/ingot/__init__.pyi").read_text(encoding="utf-8")
    tree = ast.parse(text)
    given = set(stub_names(tree.body))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            given |= {alias.asname for alias in node.names if alias.asname and alias.asname[0] != "_"}
    extension = {name for name in vars(ingot._ingot) if not name.startswith("_")}
    assert given | extension == set(ingot.__all__)


def test_stubs_are_generated_of_this_extension(tmp_path):
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_ingot", "-i",
                    STUB.parent.resolve(), "-p", package.REPOSITORY / "python/stubs.txt",
                    "-o", tmp_path / "_ingot.pyi"], check=True)
    assert (tmp_path / "_ingot.pyi").read_text() == STUB.read_text()


def test_the_package_is_typed_strictly(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: the package was NOT tried with it")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir",
                           tmp_path / "cache", "-p", "ingot"], text=True, cwd=tmp_path,
                          env=os.environ | {"MYPYPATH": str(package.folder())},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def test_type_checkers_take_programs_of_users(tmp_path):
    """The listings of the guide (those that are whole), the pages' programs, the examples."""
    pytest.importorskip("mypy", reason="mypy is not installed: the stubs were NOT tried with it")
    shared = pathlib.Path(os.environ.get("INGOT_SHARED") or package.REPOSITORY.parent / "shared")
    pages = [*shared.glob("spec/003*"), *(package.REPOSITORY / "docs" / name
                                          for name in ("python.md", "migrating.md"))]
    programs = []
    for page in pages:
        for text in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            if "trt." in text or "ingot." in text:
                if "cudart." in text and "import cudart" not in text:
                    text = "from cuda import cudart\n" + text
                programs.append(tmp_path / f"program_{len(programs)}.py")
                programs[-1].write_text(text)
    assert len(programs) >= 6
    programs += (package.REPOSITORY / "examples/python").glob("*.py")
    # Methods may return None, which programs of the guide do not check.
    done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir",
                           tmp_path / "cache", "--check-untyped-defs", "--no-strict-optional",
                           "--disable-error-code=override", "--disable-error-code=import-untyped",
                           *programs], text=True, cwd=tmp_path,
                          env=os.environ | {"MYPYPATH": str(package.folder())},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    (tmp_path / "wrong.py").write_text("import tensorrt as trt\ntrt.Builder(3).build_engine()\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache",
                           "--follow-imports=silent", "wrong.py"], text=True, cwd=tmp_path,
                          env=os.environ | {"MYPYPATH": str(package.folder())},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert len(re.findall(r"wrong\.py:2: error: ", done.stdout)) == 2, done.stdout
