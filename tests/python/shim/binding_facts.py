# SPDX-License-Identifier: Apache-2.0
"""The content of a module of bindings, as data: classes with their bases, methods with the
parameters of each overload, properties, enumerators. Run as a program with a module's name (`as
NAME`: under which its own submodules import it), it prints JSON. Knows pybind11's and nanobind's
extensions and plain Python.
"""
import importlib
import inspect
import json
import re
import sys

SPECIAL = {"__init__", "__len__", "__getitem__", "__setitem__", "__enter__", "__exit__", "__int__"}


def split(text, separator):
    """At the separators outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}" or c == ">" and text[i - 1] != "-":
            depth -= 1
        elif depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            start = i + len(separator)
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def plain(text):
    """A type without the names of modules."""
    return re.sub(r"\b(\w+(\.|::))+(?=\w)", "", text or "").strip()


def parameter(text):
    head, *default = split(text, "=")
    name, _, kind = head.partition(":")
    return [name.strip(), plain(kind), bool(default)]


def overload(text):
    """`name(self, a: T = x) -> R` as [[[name, type, whether optional], ...], R]."""
    begin, depth = text.index("("), 0
    for end in range(begin, len(text)):
        depth += (text[end] in "([{") - (text[end] in ")]}")
        if depth == 0:
            break
    words = split(text[begin + 1:end], ",")
    parameters = [parameter(word) for word in words if word.strip("*/ ")]
    parameters = [[name, kind, optional or name.startswith("*")] for name, kind, optional in parameters]
    if words and re.match(r"(self|cls|arg0)\b", words[0]):
        parameters = parameters[1:]
    _, _, result = text[end:].partition("->")
    return [parameters, plain(result)]


def of_python(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = [[stars.get(p.kind, "") + p.name, "", p.default is not p.empty or p.kind in stars]
                  for p in signature.parameters.values()]
    own = parameters and parameters[0][0] in ("self", "this", "cls")
    return [[parameters[1:] if own else parameters, ""]]


def overloads(name, function):
    """[] where nothing is documented."""
    if hasattr(function, "__nb_signature__"):
        return [overload(text) for text, *_ in function.__nb_signature__]
    if inspect.isfunction(function):
        return of_python(function)
    lines = (getattr(function, "__doc__", None) or "").split("\n")
    return [overload(line) for line in lines
            if re.match(rf"(\d+\. )?{re.escape(name)}\(.*->", line)]


def member(name, value):
    if isinstance(value, property):
        return {"kind": "property", "reads": value.fget is not None, "writes": value.fset is not None}
    if isinstance(value, (staticmethod, classmethod)):
        return {"kind": "method", "overloads": overloads(name, value.__func__)}
    if inspect.isclass(value):
        return {"kind": "class"}
    if callable(value):
        return {"kind": "method", "overloads": overloads(name, value)}
    return {"kind": "value", "reads": True, "writes": True}


def members_of(cls):
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__ in ("builtins", "enum", "pybind11_builtins", "abc"):
            continue
        for name, value in vars(base).items():
            if not name.startswith("_") or name in SPECIAL:
                found[name] = member(name, value)
    return found


def is_subclass(one, other):
    return inspect.isclass(other) and one is not other and issubclass(one, other)


def facts_of(module, names):
    classes, functions, values = {}, {}, []
    for name in names:
        value = getattr(module, name)
        if not inspect.isclass(value):
            if callable(value):
                functions[name] = overloads(name, value)
            elif not inspect.ismodule(value):
                values.append(name)
            continue
        enumerators = getattr(value, "__members__", None)
        classes[name] = {"bases": [other for other in names if is_subclass(value, getattr(module, other))]}
        if enumerators is not None:
            classes[name]["enumerators"] = {key: int(one) for key, one in enumerators.items()}
        else:
            classes[name]["members"] = members_of(value)
    return {"classes": classes, "functions": functions, "values": values}


def main(name, alias=None):
    module = importlib.import_module(name)
    if alias:
        sys.modules[alias] = module
    modules = {"": module}
    try:
        modules["plugin."] = importlib.import_module(f"{name}.plugin")
    except ImportError:
        pass
    facts = {}
    for prefix, one in modules.items():
        names = getattr(one, "__all__", None) or [n for n in dir(one) if not n.startswith("_")]
        facts[prefix] = facts_of(one, sorted(set(names)))
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:2], *sys.argv[3:4])
