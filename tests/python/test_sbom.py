# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names all that sources include from others, with versions."""
import json
import re
import subprocess
import sys

import ingot_command as ingot

TOOL = ingot.REPOSITORY / "tools" / "sbom.py"
OF_THE_SYSTEM = {"cuda", "sys", "linux", "gtest", "benchmark", "Python.h", "arpa", "netinet"}


def bill(tmp_path):
    subprocess.run([sys.executable, TOOL, tmp_path / "sbom.json"], check=True)
    return json.loads((tmp_path / "sbom.json").read_text())


def test_every_third_party_is_named_with_its_version(tmp_path):
    made = bill(tmp_path)
    assert made["bomFormat"] == "CycloneDX" and made["specVersion"] == "1.5"
    names = {c["name"] for c in made["components"]}
    for c in [*made["components"], made["metadata"]["component"]]:
        assert re.fullmatch(r"\d+(\.\d+)+", c["version"]), c
        assert c["purl"].endswith("@" + c["version"]) and c["licenses"], c
    assert bill(tmp_path) == made
    sys.path.insert(0, str(TOOL.parent))
    import sbom
    used = set()
    for folder in ("src", "tools", "python", "plugins"):
        for path in (ingot.REPOSITORY / folder).rglob("*"):
            if path.suffix in (".cpp", ".h"):
                used |= {name.split("/")[0] for name in re.findall(r"#include <([\w.]+/[^>]+|xxhash\.h|zstd\.h)>",
                                                                    path.read_text(errors="replace"))}
    for name in used - OF_THE_SYSTEM - {"cxxabi.h"}:
        assert name in sbom.INCLUDES, f"<{name}/..> is included: add what it belongs to to tools/sbom.py"
        assert sbom.INCLUDES[name] in names
    assert {"oneDNN", "libstdc++ and libgcc"} <= names


def test_static_libraries_are_named(tmp_path):
    """Those that CMake links whole."""
    text = (ingot.REPOSITORY / "cmake" / "options.cmake").read_text()
    linked = set(re.findall(r"NAMES lib(\w+)\.a", text))
    assert linked == {"xxhash", "zstd", "crypto"}, "name a new one in tools/sbom.py, then here"
    names = " ".join(c["name"].lower() for c in bill(tmp_path)["components"])
    assert "xxhash" in names and "zstandard" in names and "libcrypto" in names

