#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the tree that no compiler checks: file length, direction of includes, licence line,
no paths of one machine, no notes to self, the mark that each kernel begins with, no test that cannot
fail (check_tests.py), comments that are plain statements (check_language.py).

  check_tree.py [ROOT]      prints violations, one a line; exit code 1 when there is one
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_language  # noqa: E402
import check_tests  # noqa: E402

LONGEST = 800
LONG = 500
LONGEST_SUBJECT = 70
SUBJECTS_SINCE = "2026-11-22T14:00:00Z"
INCLUDING_SUFFIXES = (".cpp", ".h", ".cuh", ".inl", ".def")
SOURCE_SUFFIXES = (".cpp", ".h", ".cuh", ".inl", ".py")
LICENSED_SUFFIXES = SOURCE_SUFFIXES + (".def", ".cmake", ".sh")
SPDX = "SPDX-License-Identifier: Apache-2.0"

ROW = re.compile(r"\| `(?:src/)?(\w+)` \|.*\| ([^|]*) \|$|\| `(?:src/)?(\w+)` \|.*\| \|$")


def read_rooms(text):
    """{folder: folders, and single headers, that it may include besides itself and base}, from
    ARCHITECTURE.md's table."""
    rows = {}
    for line in text.splitlines():
        if found := ROW.match(line):
            names = [name.strip() for name in (found.group(2) or "").split(",") if name.strip()]
            # "x.h" in the row means x/x.h alone, "x/y/z.h" that header.
            names = [f"{name[:-2]}/{name}" if name.endswith(".h") and "/" not in name else name
                     for name in names]
            rows[found.group(1) or found.group(3)] = names
    rooms = {}
    for folder, names in rows.items():  # a row may name only rows above it
        unknown = [name for name in names if name.split("/")[0] not in rooms]
        if unknown:
            sys.exit(f"ARCHITECTURE.md: the row of {folder} names {', '.join(unknown)}, which no row "
                     "above it has")
        rooms[folder] = set(names).union(*(rooms.get(name, ()) for name in names))
    return rooms


def read_kernels(text):
    """{folder of src/kernels: folders there that it may include besides itself and common}, from
    the sentence of ARCHITECTURE.md that begins with "Kernels:"."""
    found = re.search(r"\bKernels: ([^.]+)\.", text)
    if not found:
        sys.exit("ARCHITECTURE.md: no sentence 'Kernels: folder; folder, folder: folders it includes; "
                 "...' says which folder of src/kernels may include which")
    rooms = {}
    for clause in " ".join(found.group(1).split()).split("; "):
        folders, _, included = clause.partition(": ")
        included = set(included.split(", ")) if included else set()
        for folder in folders.split(", "):
            if folder in rooms:
                sys.exit(f"ARCHITECTURE.md: src/kernels/{folder} stands twice before a colon")
            if unknown := sorted(included - rooms.keys()):
                sys.exit(f"ARCHITECTURE.md: src/kernels/{folder} includes {', '.join(unknown)}, which "
                         "no clause before its own has")
        rooms |= dict.fromkeys(folders.split(", "), included)
    return rooms


ARCHITECTURE = (pathlib.Path(__file__).resolve().parents[1] / "ARCHITECTURE.md").read_text()
# A folder of src without a row in the table may not exist.
ALLOWED = read_rooms(ARCHITECTURE)
KERNELS = read_kernels(ARCHITECTURE)
# The public headers: they include each other only, and of src only api knows them.
PUBLIC = re.compile(r"((impl/)?Nv\w+\.h|ingot(_onnxruntime)?\.h|ingot/\w+\.h)")
USES_PUBLIC = ("api", "tools", "plugins")
# Backends do not know each other.
BACKENDS = ("cpu", "cuda")

# Split, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:wo" + r"rk|ho" + r"me|ro" + r"ot|tm" + r"p)/")
# Rules of slim see unchecked models: input() and set_input() allow for missing operands.
BARE_OPERAND = re.compile(r"\.inputs\[")
OWN_OPERANDS = ("onnx_node.cpp", "edit.cpp", "analysis.cpp")
NOTE = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
USING = re.compile(r"\s*using\s+namespace\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*("[^"]+"|<[^>]+>|\w+)')
COMMENT = re.compile(r"/\*.*?\*/")
BUILD_FOLDERS = re.compile(r"(^|/)(build(-[^/]*)?|\.venv|\.deps|\.git|dist|__pycache__)(/|$)")


def folder_of(path):
    """The layer that a file belongs to: its folder below src, "tools" or "plugins"; None for the
    others."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] == "tools" and len(parts) > 2 or parts[0] == "plugins":
        return parts[0]
    return None


def backend_of(parts):
    return parts[1] if len(parts) > 2 and parts[0] == "backends" and parts[1] in BACKENDS else None


def plugin_include_allowed(path, included):
    """Plugins know the public API, base and plugins/common, and not each other; headers of no
    folder here are their hosts'."""
    target, _, rest = included.partition("/")
    if target == "plugins":
        return rest.split("/")[0] in ("common", path.parts[1])
    return target == "base" or target not in ALLOWED


def kernels_room(parts):
    """The folder of src/kernels, of a path below src; None for its own files."""
    return parts[1] if len(parts) > 2 and parts[0] == "kernels" else None


def kernels_include_allowed(path, included):
    """The same within src/kernels, whose own files know no family."""
    room, target = kernels_room(path.parts[1:]), kernels_room(tuple(included.split("/")))
    return target is None or target == room or (
        room is not None and (target == "common" or target in KERNELS.get(room, ())))


def include_allowed(path, included):
    """Whether the file at `path` may include the project header `included`; its own folder, too, is
    named without dots."""
    folder = folder_of(path)
    if PUBLIC.fullmatch(included):
        return folder is None or folder in USES_PUBLIC
    if path.parts[0] == "include":
        return False
    if folder is None or "/" not in included:
        return True
    if {".", ".."}.intersection(included.split("/")):
        return False
    if folder == "plugins":
        return plugin_include_allowed(path, included)
    target = included.split("/", 1)[0]
    if folder == "backends" and target == "backends":
        own = backend_of(path.parts[1:])
        other = backend_of(tuple(included.split("/")))
        return other is None or other == own
    if folder == "kernels" and target == "kernels":
        return kernels_include_allowed(path, included)
    allowed = ALLOWED.get(folder, ())
    return target in ("base", folder) or target in allowed or included in allowed


def is_foreign(included):
    """Whether a header in angle brackets is none of this repository's."""
    return included.split("/")[0] not in (*ALLOWED, "..", ".") and not PUBLIC.fullmatch(included)


def check_includes(path, lines):
    folder = folder_of(path)
    if path.parts[0] == "src" and folder not in ALLOWED:
        yield f"{path}: src/{folder} has no row in the table of ARCHITECTURE.md"
        return
    room = kernels_room(path.parts[1:]) if path.parts[0] == "src" else None
    if room is not None and room not in KERNELS:
        yield f"{path}: src/kernels/{room} has no place in the sentence 'Kernels: ...' of ARCHITECTURE.md"
        return
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(COMMENT.sub(" ", line))
        header = found.group(1) if found else ""
        included = header.strip('"<>')
        if found and header == included and folder is not None:
            yield (f"{path}:{number}: the header of an include stands in a macro, where the table of "
                   "ARCHITECTURE.md cannot be checked: name the header")
        elif found and not (header[0] == "<" and is_foreign(included)) and not include_allowed(path, included):
            yield (f"{path}:{number}: {folder or path.parts[0]} may not include \"{included}\" "
                   "(includes go one way: see the table in ARCHITECTURE.md)")


def check_kernels(path, lines):
    """Kernels of device text without the mark that timelines need."""
    begin = None  # the line of a kernel whose body has not begun
    for number, line in enumerate(lines, 1):
        if line.startswith("KERNEL "):
            begin = number
        if begin and line.endswith("{"):
            if lines[number:number + 1] != ["    begin_kernel();"]:
                yield f"{path}:{begin}: a kernel's first statement is begin_kernel();"
            begin = None


def check_file(path, text):
    """Violations of one file; `path` is relative to the root."""
    lines = text.splitlines()
    if path.suffix in SOURCE_SUFFIXES and len(lines) > LONGEST:
        yield f"{path}: {len(lines)} lines, at most {LONGEST} are allowed: split it"
    if is_checked(path) and not any(SPDX in line for line in lines[:3]):
        yield f"{path}: no line '{SPDX}' among the first three"
    if path.suffix in INCLUDING_SUFFIXES:
        yield from check_includes(path, lines)
    if path.suffix == ".cuh":
        yield from check_kernels(path, lines)
    if path.suffix in SOURCE_SUFFIXES + (".def",):
        yield from check_language.check_language(path, lines)
    for number, line in enumerate(lines, 1):
        if path.parts[0] != "tests" and MACHINE_PATH.search(line):
            yield f"{path}:{number}: absolute path of one machine: {line.strip()}"
        if path.suffix in (".h", ".cuh") and USING.match(line):
            yield f"{path}:{number}: 'using namespace' in a header: {line.strip()}"
        if (path.parts[:2] == ("src", "slim") and path.name not in OWN_OPERANDS
                and BARE_OPERAND.search(line)):
            yield f"{path}:{number}: an operand that may be missing: use input() of slim/onnx_node.h"
        if NOTE.search(line):
            yield f"{path}:{number}: note to self: {line.strip()}"


def is_checked(path):
    return (path.suffix in LICENSED_SUFFIXES or path.name in ("CMakeLists.txt", "dev")
            or path.parts[0] == ".ci")


def list_files(root):
    """Files that are, or could be, committed; without git, all that are not build products."""
    git = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                         capture_output=True, text=True, check=False)
    if git.returncode == 0:
        names = [name for name in git.stdout.split("\0") if name]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    for name in sorted(names):
        if not BUILD_FOLDERS.search(name) and (root / name).is_file():
            yield pathlib.Path(name)


def check_subjects(root):
    """Subjects that are too long, of commits made since the rule exists."""
    git = subprocess.run(["git", "-C", str(root), "log", f"--since={SUBJECTS_SINCE}", "--no-merges",
                          "--format=%h %s"], capture_output=True, text=True, check=False)
    for line in git.stdout.splitlines() if git.returncode == 0 else ():
        name, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield (f"commit {name}: its subject has {len(subject)} characters, at most "
                   f"{LONGEST_SUBJECT} are allowed: {subject}")


def check_tree(root):
    """(violations, warnings) of all files below root."""
    violations, warnings, tests = [], [], {}
    for path in list_files(root):
        if path.suffix == ".md":
            page = (root / path).read_text(encoding="utf-8", errors="replace")
            violations += check_language.check_page(path, page.splitlines())
        if not is_checked(path):
            continue
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        violations += check_file(path, text)
        if path.parts[0] == "tests" and path.suffix in SOURCE_SUFFIXES:
            tests[path] = text
        length = text.count("\n")
        if path.suffix in SOURCE_SUFFIXES and LONG < length <= LONGEST:
            warnings.append(f"{path}: {length} lines; above {LONG} a file should be split")
    violations += check_tests.check_tests(tests)
    violations += check_subjects(root)
    return violations, warnings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    violations, warnings = check_tree(root)
    for line in warnings:
        print(f"warning: {line}")
    for line in violations:
        print(line)
    print(f"{len(violations)} violations, {len(warnings)} warnings")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
