# SPDX-License-Identifier: Apache-2.0
"""A rule of the tree, for check_tree.py: a test can fail. Each has an assertion, in its body or in a
function of the tests that it calls (require() fails a test too); none returns before the first one without saying that it is
skipped; and a skipped test gives its reason."""
import ast
import re

ASSERTION = re.compile(r"\b(?:EXPECT|ASSERT)_\w+\(|\bFAIL\(|\brequire\(|\bADD_FAILURE(?:_AT)?\(")
# Members of containers and streams; functions of tests with these names are ignored.
COMMON = {"size", "data", "get", "at", "begin", "end", "find", "count", "str", "add", "empty"}
TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\((\w+), (\w+)\)\s*\{", re.MULTILINE)
FUNCTION = re.compile(r"(?<=[\w>&*] )([a-z_]\w*)\((?:[^;{}]|= ?\{\}){0,400}?\)(?:\s*(?:const|noexcept|override|final))*\s*"
                      r"(?:->\s*[\w:<>*& ]+)?\{")
LAMBDA = re.compile(r"\bauto\s+(\w+)\s*=\s*\[[^\]]*\][^{;]*\{")
MACRO = re.compile(r"^#define\s+(\w+)\((?:.*\\\n)*.*", re.MULTILINE)
CALL = re.compile(r"\b(\w+)\s*(?:<[^<>();]*>)?\(")
RETURN_FIRST = re.compile(r"\bif \([^{}]*\)\s*\{\s*return;\s*\}")
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "catch", "alignof", "decltype"}
STRING = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def without_texts(source):
    """The source with string literals and comments emptied; line numbers stay."""
    return STRING.sub(lambda m: ('""' if m.group(0)[0] in '"R' else "")
                      + "\n" * m.group(0).count("\n"), source)


def block(source, at):
    """The text between the brace before `at` and its closing brace."""
    depth = 1
    for end in range(at, len(source)):
        depth += {"{": 1, "}": -1}.get(source[end], 0)
        if depth == 0:
            return source[at:end]
    return source[at:]


def cpp_functions(source):
    """{name: (asserts, names it calls)} of functions, lambdas with a name, and macros."""
    found = {}

    def add(name, body):
        asserts, calls = found.get(name, (False, set()))
        found[name] = (asserts or bool(ASSERTION.search(body)), calls | set(CALL.findall(body)))
    for pattern in (FUNCTION, LAMBDA):
        for m in pattern.finditer(source):
            if m.group(1) not in KEYWORDS | COMMON:
                add(m.group(1), block(source, m.end()))
    for m in MACRO.finditer(source):
        add(m.group(1), m.group(0).partition(")")[2])
    return found


def asserting(functions):
    """The names of functions that assert, directly or through calls."""
    found = {name for name, (asserts, _) in functions.items() if asserts}
    while True:
        more = {name for name, (_, calls) in functions.items()
                if name not in found and not found.isdisjoint(calls)}
        if not more:
            return found
        found |= more


def check_cpp(sources):
    """Violations of {path: text}, all C++ files of the tests. A test sees the functions of its file,
    and those of headers and of their sources."""
    texts = {path: without_texts(text) for path, text in sources.items()}
    functions = {path: cpp_functions(text) for path, text in texts.items()}
    shared = {}
    for path, own in functions.items():
        if path.suffix == ".h" or path.with_suffix(".h") in texts:
            shared |= own
    for path, text in sorted(texts.items()):
        asserts = asserting(shared | functions[path])
        for m in TEST.finditer(text):
            place = f"{path}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(1)}.{m.group(2)}"
            body = block(text, m.end())
            first = first_assertion(body, asserts)
            if first is None:
                yield f"{place} asserts nothing: no product can make it fail"
            early = RETURN_FIRST.search(body)
            if early and (first is None or early.start() < first):
                yield f"{place} returns before it asserts anything: GTEST_SKIP() << why"
            if re.search(r"GTEST_SKIP\(\)\s*;", body):
                yield f"{place} is skipped without a word: GTEST_SKIP() << why"


def first_assertion(body, asserts):
    """The position of the first one, or None."""
    places = [m.start() for m in ASSERTION.finditer(body)]
    places += [m.start() for m in CALL.finditer(body) if m.group(1) in asserts]
    return min(places, default=None)


def python_asserts(node, names):
    """Whether a function asserts: assert, pytest.raises, .testing., check=True, or one of the names."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Assert, ast.Raise)):
            return True
        if isinstance(part, ast.Call):
            text = ast.unparse(part.func)
            if (text.rpartition(".")[2] in names | {"raises", "fail", "warns", "match"} or ".testing." in text
                    or any(k.arg == "check" and getattr(k.value, "value", None) is True
                           for k in part.keywords)):
                return True
        if isinstance(part, ast.Name) and part.id in names:
            return True  # a fixture, or handed on
    return False


def imports_of_tests(path, tree):
    """Violations: imports of a file with tests, whose tests pytest would collect and count again."""
    for part in ast.walk(tree):
        if isinstance(part, ast.ImportFrom):
            names = [part.module or "", *(a.name for a in part.names if part.module is None)]
        else:
            names = [a.name for a in part.names] if isinstance(part, ast.Import) else []
        for name in names:
            if any(word.startswith("test_") for word in name.split(".")):
                yield (f"{path}:{part.lineno}: imports {name}, a file with tests: what both use belongs in a "
                       "module without tests")


def check_python(sources):
    """Violations of {path: text}, all Python files of the tests."""
    trees = {}
    for path, text in sources.items():
        try:
            trees[path] = ast.parse(text)
        except SyntaxError as error:
            yield f"{path}:{error.lineno}: {error.msg}"
    for path, tree in sorted(trees.items()):
        yield from imports_of_tests(path, tree)
    functions = [f for tree in trees.values() for f in ast.walk(tree)
                 if isinstance(f, ast.FunctionDef)]
    names = set()
    while True:
        more = {f.name for f in functions if not f.name.startswith("test_")
                and f.name not in names and python_asserts(f, names)}
        if not more:
            break
        names |= more
    for path, tree in sorted(trees.items()):
        for f in ast.walk(tree):
            if (isinstance(f, ast.FunctionDef) and f.name.startswith("test_")
                    and not python_asserts(f, names)
                    and names.isdisjoint(a.arg for a in f.args.args)):
                yield f"{path}:{f.lineno}: {f.name} asserts nothing: no product can make it fail"
            if isinstance(f, ast.Call) and ast.unparse(f.func) == "pytest.skip" and not f.args:
                yield f"{path}:{f.lineno}: pytest.skip() without a reason"


def check_tests(sources):
    """Violations of {path: text}, the sources below tests."""
    cpp = {p: t for p, t in sources.items() if p.suffix in (".cpp", ".h") and "programs" not in p.parts}
    yield from check_cpp(cpp)
    yield from check_python({p: t for p, t in sources.items() if p.suffix == ".py"})
