#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extracts oneDNN's library, headers and licences from its wheels.

  unpack_onednn.py WHEELS OUT      writes OUT/lib/libdnnl.so.3.2, OUT/include/..., OUT/licenses/...
"""
import pathlib
import sys
import zipfile

LIBRARY = "libdnnl.so.3.2"


def target_of(name):
    """The target of a wheel's member below OUT; None for unneeded ones."""
    if "/data/include/" in name:
        return pathlib.Path("include", name.split("/data/include/", 1)[1])
    if name.endswith(f"/data/lib/{LIBRARY}"):
        return pathlib.Path("lib", LIBRARY)
    base = name.rsplit("/", 1)[-1]
    if base.startswith(("LICENSE", "THIRD-PARTY")):
        return pathlib.Path("licenses", name.split("-", 1)[0] + "-" + base)
    return None


def main():
    wheels, out = map(pathlib.Path, sys.argv[1:])
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                target = None if member.is_dir() else target_of(member.filename)
                if target is None or ".." in target.parts:
                    continue
                path = out / target
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(member))
    for needed in (f"lib/{LIBRARY}", "include/oneapi/dnnl/dnnl.h"):
        if not (out / needed).is_file():
            sys.exit(f"the wheels in {wheels} hold no {needed}")


if __name__ == "__main__":
    main()
