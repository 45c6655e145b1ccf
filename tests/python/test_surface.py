# SPDX-License-Identifier: Apache-2.0
"""The public surface has what the description of TensorRT's (reference/tensorrt.md in the shared
folder) names: every class, method and enumerator stands in tests/api/surface.def, with its number, and
every name of Python's in the package. OUT lists intended omissions, with the reason."""
import os
import pathlib
import re

import pytest

import ingot_command as command
from shim import package

package.find()

import ingot  # noqa: E402

SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or package.REPOSITORY.parent / "shared")
PAGE = SHARED / "reference" / "tensorrt.md"
if not PAGE.exists():
    pytest.skip(f"no reference/tensorrt.md in {SHARED}: the surface was NOT compared", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")

OUT = {
    "setAlgorithmSelector": "of TensorRT 10; the editable timing cache pins choices, tactic by tactic",
    "EngineValidityDiagnostics": "a slip of the documentation for EngineInvalidityDiagnostics",
}
# Entries of the tables besides names: parameters, and words.
PARAMETERS = set("""alignCorners averageCountExcludesPadding axesMask batchAxis blockShape channelAxis cubicCoeff
excludeOutside idxType ignoreMismatch inDesc indicesType keepDims layerName mImpl mLayer maxNames maxPerClass nbElementWiseDims
nbGroups nbOut nbSteps opA opB outDesc outType scaleType sequenceAxis shapeIn writeIndices zeroIsPlaceholder calibBatchSize
getNb getInferLib kernelText modelPath newSize tacticHash timingMSec""".split())


def section(begin, end):
    return TEXT[TEXT.index(begin):TEXT.index(end)]


def rows(kind):
    """(type, name, the rest) of each row of a kind in surface.def."""
    text = (package.REPOSITORY / "tests/api/surface.def").read_text(encoding="utf-8")
    text = re.sub(r"\n\s+", " ", text)
    return re.findall(rf"^{kind}\(([\w:]+), (\w+)(?:, (.*))?\)$", text, re.MULTILINE)


METHODS, ENUMERATORS, FIELDS = rows("METHOD"), rows("ENUMERATOR"), rows("FIELD")
HEADERS = "".join(path.read_text(encoding="utf-8")
                  for path in sorted((package.REPOSITORY / "include").rglob("*.h")))


def test_every_method_of_a_class_is_in_its_class():
    """Tables 1.1 and 1.2: a row is a class and its methods."""
    there = {}
    for kind, name, _ in METHODS:
        there.setdefault(kind.split("::")[-1], set()).add(name)
    checked, missing, current = 0, [], None
    for line in section("### 1.1", "### 1.3").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 3:
            continue
        current = cells[0].split("::")[-1] or current
        if current not in there:
            continue
        bare = re.sub(r"\([^()]*\)", " ", re.sub(r"\([^()]*\)", " ", cells[1]))
        for word in re.findall(r"(?<![\w-])(?!k[A-Z])[a-z]+[A-Z]\w+", bare):
            if word not in OUT and word not in PARAMETERS:
                checked += 1
                if word not in there[current]:
                    missing.append(f"{current}::{word}")
    assert not missing and checked > 220, checked


def test_every_function_and_class_is_declared():
    text = section("### 1.0", "## 3. Python")
    functions = set(re.findall(r"(?<![\w-])[a-z]+[a-z0-9]*[A-Z]\w*", text)) - {
        word for word in re.findall(r"\w+", text) if re.fullmatch(r"k[A-Z0-9_]+\w*", word)}
    classes = set(re.findall(r"\bI[A-Z][a-z]\w+(?:V\d\w*)?", text))
    names = {name for _, name, _ in METHODS + FIELDS}
    missing = [word for word in functions - PARAMETERS - OUT.keys()
               if word not in names and not re.search(rf"\b{word}\b", HEADERS)]
    assert not missing and len(functions) > 400, (missing, len(functions))
    missing = [word for word in classes if not re.search(rf"\b(class|struct|using) {word}\b", HEADERS)]
    assert not missing and len(classes) > 40, (missing, len(classes))


def test_every_layer_method_is_there():
    adds = set(re.findall(r"\badd[A-Z]\w+", section("## 2. INetworkDefinition", "Shape tensors: INT32")))
    there = {name for kind, name, _ in METHODS if kind.split("::")[-1] in ("INetworkDefinition", "ILoop",
                                                                          "IIfConditional")}
    assert adds <= there and len(adds) > 55


def numbers_by_enumeration():
    """Enumeration without its namespace -> (name without k, number) of each enumerator."""
    found = {}
    for kind, name, number in ENUMERATORS:
        found.setdefault(kind.split("::", 1)[-1], []).append((name.removeprefix("k"), number))
    return found


# Words of the reference for an enumeration, where they differ from its name.
ALIASES = {"Activation": "ActivationType", "ElementWise": "ElementWiseOperation", "Unary": "UnaryOperation",
           "Pooling": "PoolingType", "Reduce": "ReduceOperation", "Scale": "ScaleMode", "Gather": "GatherMode",
           "Scatter": "ScatterMode", "TopK": "TopKOperation", "Interpolation": "InterpolationMode",
           "ResizeCoordinate": "ResizeCoordinateTransformation", "Selector": "ResizeSelector",
           "Round": "ResizeRoundMode", "Fill": "FillOperation", "BoundingBox": "BoundingBoxFormat",
           "Cumulative": "CumulativeOperation", "Collective": "CollectiveOperation",
           "Severity": "ILogger::Severity"}


def groups(text):
    """(enumeration, {name: number}) of texts such as `Gather DEFAULT0 ELEMENT1 ND2.`"""
    there = numbers_by_enumeration()
    text = re.sub(r"\((?!\d)[^()]*\)|\*\*R\*\*:|[-–]\s", " ", text)
    for part in re.split(r"[.;]\s|\n- ", text):
        words = part.replace("†", "").replace(",", " ").replace(":", " ").split()
        name, found = None, {}
        for word, after in zip(words, words[1:] + [""]):
            plain = ALIASES.get(word, word)
            if plain in there:
                if found:
                    yield name, found
                name, found = plain, {}
            elif name and (match := re.fullmatch(r"k?([A-Z][A-Z0-9_]*?[A-Z_]?)(\d+)", word)) and not after.isdigit():
                found[match[1]] = int(match[2])
            elif name and re.fullmatch(r"k?[A-Z][A-Z0-9_]+", word) and after.isdigit():
                found[word.removeprefix("k")] = int(after)
        if name and found:
            yield name, found


def test_every_enumerator_has_its_number():
    there = numbers_by_enumeration()
    text = section("### 1.5", "### 1.6") + section("### 1.7", "### 1.8")
    checked, seen, wrong = 0, set(), []
    for name, found in groups(text):
        seen.add(name)
        for enumerator, number in found.items():
            # The page omits common parts of an enumeration's names.
            same = re.compile(rf"(\w+_)?{enumerator.replace('_', '_?')}(_\w+)?")
            ours = {number for ours, number in there[name] if same.fullmatch(ours)}
            checked += 1
            if str(number) not in ours:
                wrong.append((name, enumerator, number, ours))
    assert not wrong, wrong
    assert checked > 230 and len(seen) > 40, (checked, sorted(seen))


def test_flags_have_the_numbers_of_the_newest_generation():
    """Table 1.6: its last column."""
    there, checked = numbers_by_enumeration(), 0
    for line in section("### 1.6", "Trap: old").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] not in there:
            continue
        for name, number in re.findall(r"\bk?([A-Z][A-Z0-9_]*?[A-Z_])[ =]?(\d+)\b",
                                       re.sub(r"[*†]|\([^)]*\)", "", cells[2].replace("TF32", "TF_"))):
            words = ".*".join(name.replace("TC_", "TIMING_CACHE_").replace("_TC", "_TIMING_CACHE").split("_"))
            words = words.replace("TF.*", "TF32")
            fits = {ours: value for ours, value in there[cells[0]] if re.fullmatch(rf"{words}\w*", ours)}
            assert number in fits.values(), (cells[0], name, number, fits)
            checked += 1
    assert checked > 25, checked


def test_every_name_of_python_is_in_the_package():
    text = section("## 3. Python", "## 4. CLI")
    text = re.sub(r"get_tensor_\{([^}]*)\}", lambda m: " ".join(
        "get_tensor_" + name for name in re.split(r"[,\s]+", m[1]) if name), text)
    there = set(dir(ingot))
    for name in dir(ingot):
        value = getattr(ingot, name)
        if isinstance(value, type):
            there |= set(dir(value))
    words = {word for word in re.findall(r"(?<![\w/])[A-Za-z]\w+", text) if "_" in word.strip("_")
             or re.match(r"[A-Z][a-z]+[A-Z]|I[A-Z][a-z]", word)}
    words -= {"stream_handle", "tensorrt_rtx", "add_", "mark_", "runtime_config", "PyPI", "get_tensor_"}
    missing = {word for word in words if word not in there} - OUT.keys()
    assert not missing and len(words) > 150, (missing, len(words))


def test_every_layer_method_has_its_name_in_python():
    def snake(name):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        return {"add_element_wise": "add_elementwise", "add_mo_e": "add_moe", "add_soft_max": "add_softmax",
                "add_parametric_re_lu": "add_parametric_relu", "add_ragged_soft_max": "add_ragged_softmax",
                "add_top_k": "add_topk", "add_lrn": "add_lrn", "add_nms": "add_nms"}.get(name, name)
    adds = {name for kind, name, _ in METHODS if kind.endswith("::INetworkDefinition") and name.startswith("add")}
    missing = {snake(name) for name in adds if not hasattr(ingot.INetworkDefinition, snake(name))}
    assert missing <= OUT.keys()


def test_nothing_is_left_out_that_is_there():
    names = {name for _, name, _ in METHODS}
    assert not [name for name in OUT if name in names or hasattr(ingot.INetworkDefinition, name)]


def test_every_flag_of_trtexec_is_taken():
    """Section 4.1; test_trtexec.py tests each one in --help."""
    text = re.sub(r"--\{min,opt,max\}(\w+)", r"--min\1 --opt\1 --max\1", section("### 4.1", "### 4.2"))
    named = set(re.findall(r"--[A-Za-z]\w+", text))
    listed = set(re.findall(r"--[A-Za-z]\w+", command.call("trtexec", "--help")))
    assert named - listed == set() and len(named) > 140, (named - listed, len(named))
