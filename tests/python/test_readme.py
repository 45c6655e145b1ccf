# SPDX-License-Identifier: Apache-2.0
"""README.md and the pages of docs/ are correct: their code blocks run unchanged, by a user with
a clone, the built command and the built package; their links have targets."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import ingot_command as ingot
from shim import package

ROOT = package.REPOSITORY
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md",
         *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*/README.md"))]


def blocks(page, kind):
    """The blocks of code of a page that are marked as `kind`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder like a clone after `./dev build`: written files stay out of this one."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "build").symlink_to(ingot.binary().parent)
    return folder


def shell(text, folder, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          env=kept | variables, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_python(text, folder):
    package.find()
    return shell(f"{sys.executable} - <<'END'\n{text}\nEND\n", folder, PYTHONPATH=package.python_path())


def test_the_command(clone):
    command, _ = blocks("README.md", "bash")
    assert len(command.splitlines()) == 4
    said = shell(command, clone)
    assert "=== Performance summary ===" in said and "&&&& PASSED" in said
    assert (clone / "digits.engine").exists() and (clone / "out" / "scores.npy").exists()


def test_cpp(clone, prefix, tmp_path):
    shell(f"build/ingot build {ROOT}/examples/digits/digits.onnx -o {tmp_path}/digits.engine", clone)
    program, = blocks("README.md", "cpp")
    assert len(program.splitlines()) < 50
    (tmp_path / "main.cpp").write_text(program)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
        "find_package(ingot REQUIRED)\nadd_executable(program main.cpp)\n"
        "target_compile_features(program PRIVATE cxx_std_17)\n"
        "target_compile_options(program PRIVATE -Wall -Wextra -Werror)\n"
        "target_link_libraries(program ingot::ingot)\n")
    said = shell(f"cmake -S . -B build -DCMAKE_PREFIX_PATH={prefix} >log && cmake --build build >>log "
                 "&& build/program", tmp_path)
    assert re.fullmatch(r"score of 0: -?\d+(\.\d+)?\n", said), said


def test_python(clone):
    first, second = blocks("README.md", "python") + [None]
    assert second is None and len(first.splitlines()) < 10
    numbers = list(map(int, re.findall(r"\d+", run_python(first, clone))))
    assert len(numbers) == 360 and set(numbers) == set(range(10))


@pytest.mark.parametrize("page", ["docs/python.md", "docs/migrating.md"])
def test_the_pages_on_python(page, tmp_path):
    for name in ("digits.onnx", "held_out_images.npy"):
        shutil.copy(ROOT / "examples" / "digits" / name, tmp_path)
    for text in blocks(page, "yaml"):
        (tmp_path / "tensorrt.yaml").write_text(text)
    programs = blocks(page, "python")
    assert programs
    for program in programs:
        run_python(program, tmp_path)
    assert (tmp_path / "digits.engine").read_bytes()[:5] == b"INGOT"


def test_custom_layers(clone, prefix, tmp_path):
    """docs/custom_layers.md: the layer of its first listing runs on the CPU by its second one, in a program of C++;
    the function of its third runs in Python."""
    text_layer, function = blocks("docs/custom_layers.md", "python")
    host, = blocks("docs/custom_layers.md", "cpp")
    run_python(text_layer + """
network.mark_output(layer.get_output(0))
builder = ingot.Builder(ingot.Logger())
plan = builder.build_serialized_network(network, builder.create_builder_config())
open("rows.engine", "wb").write(plan)
""", tmp_path)
    *lines, registration = host.rstrip().splitlines()
    assert registration == 'ingot::registerHostKernel("RowSum", row_sum);'
    program, = blocks("README.md", "cpp")
    for old, new in (("struct Logger", "\n".join(lines) + "\nstruct Logger"), ("#include <vector>", "#include <numeric>\n#include <vector>"),
                     ("int main() {", f"int main() {{\n{registration}"), ("digits.engine", "rows.engine"),
                     ("image(64, 0.5F), scores(10)", "x(12, 0.5F), y(4)"),
                     ('setInputShape("image", nvinfer1::Dims4{1, 1, 8, 8})', 'setInputShape("x", nvinfer1::Dims2{4, 3})'),
                     ('setTensorAddress("image", image.data())', 'setTensorAddress("x", x.data())'),
                     ('"scores", scores.data()', f'"{output_of(tmp_path / "rows.engine")}", y.data()'),
                     ("score of 0: %g\\n\", scores[0]", 'sum: %g\\n", y[3]')):
        assert old in program, old
        program = program.replace(old, new)
    (tmp_path / "rows.cpp").write_text(program)
    shell(f"g++ -std=c++17 -Wall -Wextra -Werror -I {prefix}/include rows.cpp -L {prefix}/lib -lingot "
          f"-Wl,-rpath,{prefix}/lib -o rows", tmp_path)
    assert shell("./rows", tmp_path) == "sum: 1.5\n"
    said = run_python(function + """
layer.get_output(0).name = "y"
network.mark_output(layer.get_output(0))
builder = trt.Builder(trt.Logger())
plan = builder.build_serialized_network(network, builder.create_builder_config())
print(trt.compile(plan, device="cpu")(np.arange(4, dtype=np.float32)).tolist())
""", tmp_path)
    assert said.splitlines()[-1] == "[0.0, 2.0, 4.0, 6.0]"


def output_of(engine):
    return json.loads(ingot.call("inspect", engine, "--json"))["outputs"][0]["name"]


def test_the_operator_of_contributing_compiles(tmp_path):
    """The file that CONTRIBUTING.md gives whole is one that the tree takes as it stands."""
    source, = blocks("CONTRIBUTING.md", "cpp")
    (tmp_path / "example.cpp").write_text(source)
    shell(f"g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I {ROOT}/src example.cpp", tmp_path)


def test_commands_of_dev_are_there():
    usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r"^\./dev ([\w-]+)", usage, re.MULTILINE))
    assert len(there) >= 10
    for page in PAGES + [ROOT / "Dockerfile", ROOT / "pixi.toml"]:
        used = set(re.findall(r"\./dev ([\w-]+)", page.read_text(encoding="utf-8"))) - {"help"}
        assert used <= there, page.name


def test_commands_of_the_table_are_there():
    rows = re.findall(r"^\| `(.+?)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    used = {row.split()[1] for row in rows if row.startswith("ingot ")}
    assert len(used) > 8
    there = set(re.findall(r"^  ([\w-]+) ", ingot.call("--help"), re.MULTILINE))
    assert used <= there


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\[[^\]]*\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    for link in links:
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


# The pages with listings, and the tests that run them.
RUN_BY = {"README.md": "test_readme.py", "CONTRIBUTING.md": "test_readme.py", "docs/custom_layers.md": "test_readme.py",
          "docs/python.md": "test_readme.py", "docs/migrating.md": "test_readme.py",
          "docs/inspecting.md": "test_report.py", "docs/kubernetes.md": "test_kubernetes_docs.py",
          "docs/onnxruntime.md": "test_onnxruntime_module.py", "docs/ray.md": "test_ray_docs.py",
          "docs/serving.md": "test_serve_deploy.py"}
# Blocks without a language are not run: the commands of `./dev` in README, a diagram.
NOT_RUN = {"README.md": 1, "ARCHITECTURE.md": 1}


def test_every_listing_is_run():
    """A page with a listing names the test that runs it, and each block has a language, by which it is found."""
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        kinds = re.findall(r"^```(\w*)\n(?:.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        assert set(kinds) <= {"", "bash", "sh", "cpp", "python", "yaml"}, name
        assert kinds.count("") == NOT_RUN.get(name, 0), name
        if any(kinds):
            test = (ROOT / "tests" / "python" / RUN_BY[name]).read_text(encoding="utf-8")
            assert page.name in test, f"{RUN_BY[name]} does not run {name}"
