# SPDX-License-Identifier: Apache-2.0
"""Many sources as one translation unit, for tools/tidy.py: headers are parsed and searched once.

Names local to a source (in anonymous namespaces, static ones, macros) become unique, in their old
style, so that sources do not collide or shadow each other. All text stays in the main file, on
separate lines, so that checks treat it like the sources.
"""
import dataclasses
import re

KEYWORDS = frozenset("""alignas auto bool char class const constexpr decltype double enum explicit
extern float friend if inline int int8_t int16_t int32_t int64_t long mutable namespace noexcept
operator return short signed sizeof size_t static static_assert std struct switch template typedef typename default delete uint8_t
uint16_t uint32_t uint64_t union unsigned using void while main""".split())
TOKEN = re.compile(r"""
    (?P<skip> //[^\n]* | /\*.*?\*/ | (?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
            | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \d[\w.']* | ^\#[ ]*include[^\n]*
            | (?:\.|->)\s*~?[A-Za-z_]\w* )
  | (?P<words> (?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)* )""",
                   re.VERBOSE | re.DOTALL | re.MULTILINE)
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?|concept)\s+(\w+)(?=\s*(?:[{:;=]|final|$))"
                  r"|using (\w+) =")
CALL = re.compile(r"(?<![:.\w~])(\w+)\s*\(")
VARIABLE = re.compile(r"(?<![:.\w])(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\{|;|$)")


def declared(line):
    """The name that a line declares, judged by clang-format's layout."""
    found = TYPE.match(re.sub("^(static |const |constexpr |inline )+", "", line))
    if found:
        return found.group(1) or found.group(2)
    if line.startswith(("using ", "namespace ", "template", "extern ", "return ", "friend ")):
        return None
    for pattern in (CALL, VARIABLE):
        names = [name for name in pattern.findall(line)
                 if name not in KEYWORDS and not name.isupper()]
        if names:
            return names[0]
    return None


def own_names(text):
    """Names local to a source at file scope, and those of them that name other things too: members,
    functions that a using declaration adds, or overloads that other sources see."""
    names, members, seen = set(), set(), set()
    anonymous = False
    in_type = None
    for line in text.splitlines():
        if line == "namespace {":
            anonymous = True
        elif line == "} // namespace":
            anonymous = False
        elif re.match(r"(?!public:|protected:|private:)[A-Za-z_]", line):
            in_type = TYPE.match(line) if line.endswith("{") else None
            if anonymous or line.startswith(("static ", "constexpr ")):
                names.add(declared(line))
            elif re.match(r"[\w:<>,&* ]*\b(?<!::)(?<!~)\w+\(", line):
                seen.add(declared(line))
        elif line.startswith("}"):
            in_type = None
        elif in_type and re.match(r" {4}(?: {4})?[A-Za-z_]", line):
            members.add(declared(line.strip()))
            members.discard(in_type.group(1)) # constructors
    names.discard(None)
    used = set(re.findall(r"^using [\w:]+::(\w+);", text, re.MULTILINE))
    return names, names & (members | used | seen)


def disturbs(text):
    """The rank of a source in a batch: first those whose macros headers read, at last those that
    leave much at file scope that can disturb later sources."""
    if re.search(r"^#\s*define.*^#\s*include", text, re.MULTILINE | re.DOTALL):
        return -1
    return len(own_names(text)[1]) + 10 * len(re.findall(r"^using [\w: ]+;", text, re.MULTILINE))


def in_order(texts):
    """The sources of a batch, whose texts are given, in the order in which they fit together."""
    return sorted(texts, key=lambda source: (disturbs(texts[source]), source))


def renamed(text, number):
    """The text with its local names made unique."""
    names, unclear = own_names(text)
    names -= unclear
    spaces = set(re.findall(r"\w+", " ".join(re.findall(r"^namespace ([\w:]+) \{", text, re.M))))

    def replace(match):
        old = (match.group("words") or "").split("::")
        words = list(old)
        for i, word in enumerate(old):
            # the second Part of Part::Part is the constructor
            if word in names and (i == 0 or old[i - 1] in spaces | {word}):
                words[i] = f"{word}U{number}" if word[0].isupper() else f"{word}_u{number}"
        return "::".join(words) if match.group("words") else match.group(0)

    macros = re.findall(r"^#\s*define\s+(\w+)", text, re.MULTILINE)
    return TOKEN.sub(replace, text).rstrip("\n") + "\n" + "".join(f"#undef {m}\n" for m in macros)


@dataclasses.dataclass
class Finding:
    source: object  # None when it lies in a header
    path: str
    is_error: bool  # a compiler error, after which findings may be missing


class Batch:
    """The text of several sources, with a map from its lines to theirs."""

    def __init__(self, sources):
        texts = {source: source.read_text(encoding="utf-8") for source in sources}
        self.sources = in_order(texts)
        self.text = "// The sources of one run of tools/tidy.py.\n"
        self.lines = [None]  # the source of each line
        for number, source in enumerate(self.sources):
            part = renamed(texts[source], number)
            self.text += part
            self.lines += [source] * part.count("\n")

    def findings(self, path, output):
        """clang-tidy's findings for the batch at `path`."""
        out = []
        for match in re.finditer(r"^(/[^:\n]+):(\d+):\d+: (?:error|warning): .*\[(.*)\]$", output,
                                 re.MULTILINE):
            where, line, check = match.group(1), int(match.group(2)), match.group(3)
            source = self.lines[line - 1] if where == str(path) else None
            out.append(Finding(source, where, "clang-diagnostic-error" in check))
        return out
