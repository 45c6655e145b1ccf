# SPDX-License-Identifier: Apache-2.0
"""Checks objects strictly: those of Kubernetes against its schemas, those of KServe against its classes.
Runs in the environment that has the schemas.

  manifest_schemas.py KSERVE.whl < OBJECTS.yaml    prints JSON: for each object its errors, or null when
                                                   there is no schema
"""
import ast
import json
import pathlib
import re
import sys
import zipfile

import jsonschema
import kubernetes_validate
import yaml
from kubernetes_validate.utils import schema_contents

VERSION = "1.37.0"
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
DICT = re.compile(r"dict\(str, (.*)\)")
LIST = re.compile(r"list\[(.*)\]")


class KServe:
    """The classes of KServe's client: their fields and types, without importing it."""

    def __init__(self, wheel):
        self.wheel = zipfile.ZipFile(wheel)
        self.definitions = schema_contents(f"kubernetes-json-schema/v{VERSION}-local-strict/_definitions.json", VERSION)
        self.names = {name.rsplit(".", 1)[1]: name for name in self.definitions["$defs"]
                      if name.startswith("io.k8s.api.core.v1.")}

    def fields(self, kind):
        """{JSON's name: type}, None for a class that is not KServe's."""
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()
        try:
            text = self.wheel.read(f"kserve/models/{stem}.py").decode()
        except KeyError:
            return None
        tables = [ast.literal_eval(re.search(rf"^    {name} = (\{{.*?^    \}})", text, re.DOTALL | re.MULTILINE).group(1))
                  for name in ("openapi_types", "attribute_map")]
        return {tables[1][name]: kind for name, kind in tables[0].items()}

    def check(self, value, kind, path):
        if kind in PLAIN:
            if not isinstance(value, PLAIN[kind]) or (kind in ("int", "float") and isinstance(value, bool)):
                yield f"{path}: {value!r} is no {kind}"
        elif found := LIST.fullmatch(kind):
            for i, one in enumerate(value):
                yield from self.check(one, found.group(1), f"{path}[{i}]")
        elif found := DICT.fullmatch(kind):
            for key, one in value.items():
                yield from self.check(one, found.group(1), f"{path}.{key}")
        elif kind.startswith("V1") and kind.removeprefix("V1") in self.names:
            schema = self.definitions | {"$ref": f"#/$defs/{self.names[kind.removeprefix('V1')]}"}
            for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
                yield f"{path}.{'.'.join(map(str, error.path))}: {error.message}"
        elif (fields := self.fields(kind)) is not None:
            for key, one in value.items():
                if key not in fields:
                    yield f"{path}: {kind} has no field '{key}'"
                else:
                    yield from self.check(one, fields[key], f"{path}.{key}")
        elif kind != "V1ObjectMeta" and kind != "ResourceQuantity":
            yield f"{path}: nothing is known of {kind}"


def errors_of(found, kserve):
    group, _, version = found["apiVersion"].rpartition("/")
    if group == "serving.kserve.io":
        return list(kserve.check(found, version.capitalize() + found["kind"], found["kind"]))
    try:
        kubernetes_validate.validate(found, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError:
        return None
    return []


def main(wheel):
    kserve = KServe(pathlib.Path(wheel))
    print(json.dumps([errors_of(found, kserve) for found in yaml.safe_load_all(sys.stdin)]))


if __name__ == "__main__":
    main(sys.argv[1])
