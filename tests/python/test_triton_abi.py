# SPDX-License-Identifier: Apache-2.0
"""-DTRITON_INCLUDE_DIR: the compiler compares the backend's declarations of Triton's C API with the server's headers.

The backend's own declarations, rewritten as the server writes them, stand in for headers that no package has."""
import re
import subprocess
from pathlib import Path

import pytest

import ingot_command

REPOSITORY = Path(__file__).resolve().parents[2]
PLUGIN = REPOSITORY / "plugins/triton"
ENUMS = (PLUGIN / "abi_enums.h").read_text()
FUNCTIONS = re.search(r'extern "C" \{.*', (PLUGIN / "abi.h").read_text(), re.S)[0]


def header():
    enums = re.sub(r"^enum (\w+) (\{.*?\n\});", r"typedef enum \1_enum \2 \1;", ENUMS, flags=re.M | re.S)
    constants = re.sub(r"^inline constexpr uint32_t (\w+) = (\d+);", r"enum { \1 = \2 };", enums, flags=re.M)
    exports = re.findall(r"^(TRITONBACKEND_\w+\([^{]*?\)) INGOT_NOEXCEPT", (PLUGIN / "backend.cpp").read_text(), re.M)
    assert len(exports) == 9
    return ("#pragma once\n#include <cstddef>\n#include <cstdint>\n#define TRITONBACKEND_API_VERSION_MAJOR 1\n"
            "#define TRITONBACKEND_API_VERSION_MINOR 20\n" + constants + FUNCTIONS + 'extern "C" {\n' +
            "".join(f"TRITONSERVER_Error* {e};\n" for e in exports) + "}\n")


def compare(folder, text, source="abi.h"):
    """The compiler's complaints about a source of the backend beside a header that is given as the server's."""
    place = folder / "triton/core"
    place.mkdir(parents=True, exist_ok=True)
    (place / "tritonbackend.h").write_text(text)
    done = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", "-DINGOT_COMPARE_ABI", "-I", folder, "-I", REPOSITORY,
         "-I", REPOSITORY / "src", "-I", REPOSITORY / "include", "-x", "c++", PLUGIN / source],
        text=True, capture_output=True, check=False)
    assert (done.returncode == 0) == ("error" not in done.stderr)
    return done.stderr


def test_every_number_of_the_interface_is_compared():
    names = re.findall(r"^    (TRITON\w+) = \d+,$", ENUMS, re.M)
    names += re.findall(r"^inline constexpr uint32_t (\w+) =", ENUMS, re.M)
    text = (PLUGIN / "abi.h").read_text()
    assert len(names) > 40 and re.findall(r"^INGOT_VALUE\((\w+)\);", text, re.M) == names
    assert re.findall(r"^INGOT_SIZE\((\w+)\);", text, re.M) == re.findall(r"^enum (\w+)", ENUMS, re.M)


def test_the_same_declarations_compile(tmp_path):
    assert "error" not in compare(tmp_path, header())
    assert "error" not in compare(tmp_path, header(), "backend.cpp")


CHANGES = {
    "number": ("TRITONSERVER_TYPE_BF16 = 14", "TRITONSERVER_TYPE_BF16 = 15",
               "Triton's header has another TRITONSERVER_TYPE_BF16"),
    "flag": ("TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1", "TRITONSERVER_RESPONSE_COMPLETE_FINAL = 2",
             "Triton's header has another TRITONSERVER_RESPONSE_COMPLETE_FINAL"),
    "size": ("typedef enum TRITONSERVER_LogLevel_enum {", "typedef enum TRITONSERVER_LogLevel_enum : int64_t {",
             "Triton's header has another size of TRITONSERVER_LogLevel"),
    "parameter": ("uint32_t* rank,", "uint64_t* rank,", "TRITONBACKEND_InputProperties"),
    "one more parameter": ("TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state)",
                           "TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state, bool now)",
                           "TRITONBACKEND_StateUpdate"),
    "result": ("void TRITONSERVER_ErrorDelete(", "int TRITONSERVER_ErrorDelete(", "TRITONSERVER_ErrorDelete"),
    "older minor version": ("VERSION_MINOR 20", "VERSION_MINOR 18", "another version than this library needs"),
    "newer major version": ("VERSION_MAJOR 1", "VERSION_MAJOR 2", "another version than this library needs"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_declaration_that_differs_does_not_compile(tmp_path, change):
    old, new, expected = CHANGES[change]
    text = header()
    assert text.count(old) == 1
    said = compare(tmp_path, text.replace(old, new))
    assert expected in "".join(line for line in said.splitlines() if "error:" in line)


def symbols(kind):
    """The names that libtriton_ingot.so defines for others, or needs of them."""
    library = ingot_command.binary().parent / "libtriton_ingot.so"
    text = subprocess.run(["nm", "-D", f"--{kind}-only", library], text=True, capture_output=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def test_the_library_exports_its_functions_alone_and_links_no_server_and_no_driver():
    exports = set(re.findall(r"^(TRITONBACKEND_\w+)\([^{]*?\) INGOT_NOEXCEPT", (PLUGIN / "backend.cpp").read_text(), re.M))
    assert symbols("defined") == exports
    declared = set(re.findall(r"\b(TRITON(?:SERVER|BACKEND)_\w+)\(", FUNCTIONS))
    needed = symbols("undefined")
    assert {name for name in needed if name.startswith("TRITON")} <= declared  # of the process that opens it
    assert not any(re.match(r"cu[A-Z]|cuda|nvrtc", name) for name in needed)
    dynamic = subprocess.run(["readelf", "-d", ingot_command.binary().parent / "libtriton_ingot.so"], text=True,
                             capture_output=True, check=True).stdout
    linked = re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic)
    assert "libingot.so" in [name[:11] for name in linked]
    assert not [name for name in linked if re.search("triton|cuda|nvrtc|nvidia", name)]
