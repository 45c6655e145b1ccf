# SPDX-License-Identifier: Apache-2.0
"""A rule of the tree, for check_tree.py: comments are plain statements. No sentence of a comment or
docstring, and none of a page's prose, begins with one of STARTS, and no file has a name that NAMES
replaces."""
import re

# A sentence that begins so has a clause for its subject, or none.
STARTS = ("What", "Whatever", "Who", "Whoever", "Of")
# Old name: the field's term. Texts of earlier runs (tests/gpu/results) keep theirs.
NAMES = {
    "copy " + "engine": "TMA",
    "Engine" + "Facts": "BuildSettings",
    "Node" + "Reader": "NodeView",
    "normed_" + "ring": "normed_pipelined",
    "normed_quant_" + "ring": "normed_quant_pipelined",
    "ops_a_" + "test": "symbolic_shapes_test",
    "places_" + "launch": "prefix_sum_launch",
    "simt_" + "finish": "simt_epilogue",
    "value_" + "level": "value_segment",
    "wgmma_" + "stay": "wgmma_persistent",
}
OLD_NAME = re.compile("|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))))
QUOTES = "\"\"\""
COMMENT = {"": re.compile(r'(?:^\s*|\s)//[/<]*\s?(.*)$'),
           ".py": re.compile(r'(?:^\s*|\s\s)#\s(.*)$|^\s*"""(.*)$')}
START = re.compile(rf"(?:{'|'.join(STARTS)}) [\w`']")
INSIDE = re.compile(rf"[.?] ({START.pattern})")


def comment_of(line, pattern):
    """The text of the line's comment, None without one; a string that holds // may look like one."""
    found = pattern.search(line)
    if not found or line[:found.start()].count('"') % 2:
        return None
    return next((text for text in found.groups() if text is not None), "")


def prose(lines):
    """The lines of a Markdown page; those of code, tables and headings are empty."""
    in_code = False
    for line in lines:
        if line.lstrip().startswith("```"):
            in_code = not in_code
        hidden = in_code or line.lstrip().startswith(("```", "|", "#", "<"))
        yield "" if hidden else re.sub(r"^\s*(?:[-*>]|\d+\.)\s+", "\0", line.strip())


def check_page(path, lines):
    """Violations of one Markdown page; `path` is relative to the root."""
    before = ""  # the previous line of its paragraph
    for number, (line, text) in enumerate(zip(lines, prose(lines)), 1):
        begins = not before or text.startswith("\0") or before.endswith((".", "?", "!", ":"))
        text = text.lstrip("\0*_`")
        found = (begins and START.match(text)) or INSIDE.search(text)
        if found:
            yield (f"{path}:{number}: a sentence begins with '{found.group().split()[-2]}': give it a "
                   f"subject: {line.strip()}")
        before = text


def check_language(path, lines):
    """Violations of one source; `path` is relative to the root."""
    pattern = COMMENT.get(path.suffix, COMMENT[""])
    before = None  # the previous line's comment
    for number, line in enumerate(lines, 1):
        if found := OLD_NAME.search(line):
            yield f"{path}:{number}: '{found.group()}' is called {NAMES[found.group()]} here"
        text = comment_of(line, pattern)
        alone = text is not None and line.lstrip().startswith(("//", "#", '"""'))
        begins = text is not None and (
            not alone or not before or line.lstrip().startswith(QUOTES)
            or before.rstrip().endswith((".", "?", "!")))
        found = text and ((begins and START.match(text)) or INSIDE.search(text))
        if found:
            yield (f"{path}:{number}: a sentence begins with '{found.group().split()[-2]}': give it a "
                   f"subject: {line.strip()}")
        before = None if "SPDX-License" in line else text
