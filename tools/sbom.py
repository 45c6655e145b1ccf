#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials of Ingot's libraries, in CycloneDX 1.5: what others wrote that is
linked into them, with the versions that this machine builds with.

  sbom.py [FILE]     default: standard output

A wheel has it as <name>.dist-info/sboms/ingot.cdx.json (PEP 770)."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADERS = pathlib.Path("/usr/include")

# Name, licence, package URL without its version, header, and what in it gives the version: one text, or
# the numbers in a row.
OF_HEADERS = [
    ("OpenSSL libcrypto", "Apache-2.0", "pkg:generic/openssl", "openssl/opensslv.h",
     r'define OPENSSL_VERSION_STR "([\d.]+)"'),
    ("xxHash", "BSD-2-Clause", "pkg:github/Cyan4973/xxHash", "xxhash.h", r"define XXH_VERSION_(?:MAJOR|MINOR|RELEASE) +(\d+)"),
    ("Zstandard", "BSD-3-Clause", "pkg:github/facebook/zstd", "zstd.h", r"define ZSTD_VERSION_(?:MAJOR|MINOR|RELEASE) +(\d+)"),
    ("protozero", "BSD-2-Clause", "pkg:github/mapbox/protozero", "protozero/version.hpp",
     r'define PROTOZERO_VERSION_STRING "([\d.]+)"'),
    ("JSON for Modern C++", "MIT", "pkg:github/nlohmann/json", "nlohmann/detail/abi_macros.hpp",
     r"define NLOHMANN_JSON_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)"),
    ("stb_image", "MIT", "pkg:github/nothings/stb", "stb/stb_image.h", r"stb_image - v([\d.]+)"),
    ("CLI11", "BSD-3-Clause", "pkg:github/CLIUtils/CLI11", "CLI/Version.hpp", r'define CLI11_VERSION "([\d.]+)"'),
]
# Where headers lie, and what they belong to.
INCLUDES = {"openssl": "OpenSSL libcrypto", "xxhash.h": "xxHash", "zstd.h": "Zstandard", "protozero": "protozero",
            "oneapi": "oneDNN", "nlohmann": "JSON for Modern C++", "stb": "stb_image", "CLI": "CLI11", "nanobind": "nanobind"}


def component(name, version, licence, url):
    return {"type": "library", "name": name, "version": version, "purl": f"{url}@{version}",
            "licenses": [{"expression": licence}]}


def version_in(header, pattern):
    found = re.findall(pattern, (HEADERS / header).read_text(errors="replace"))
    if not found:
        raise ValueError(f"{header}: no version, expected {pattern}")
    return ".".join(found[:3])


def components():
    out = [component(name, version_in(header, pattern), licence, url)
           for name, licence, url, header, pattern in OF_HEADERS]
    nanobind = re.search(r"^nanobind==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE).group(1)
    out.append(component("nanobind", nanobind, "BSD-3-Clause", "pkg:pypi/nanobind"))
    onednn = re.search(r'^onednn_version="onednn-cpu-gomp==(\S+)', (ROOT / "dev").read_text(), re.MULTILINE).group(1)
    out.append(component("oneDNN", onednn, "Apache-2.0", "pkg:pypi/onednn-cpu-gomp"))
    gcc = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    out.append(component("libstdc++ and libgcc", gcc, "GPL-3.0-or-later WITH GCC-exception-3.1", "pkg:generic/gcc"))
    return sorted(out, key=lambda c: c["name"].lower())


def sbom():
    """The same text for the same versions."""
    version = re.search(r"^project\(ingot VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": component("ingot", version, "Apache-2.0", "pkg:pypi/ingot")},
        "components": components(),
    }, indent=1) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(sbom())
    else:
        sys.stdout.write(sbom())
