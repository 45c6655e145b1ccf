#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""patch_onednn.py LIBDNNL OUT.so SYMBOLS.rsp EXPORTS.map: oneDNN without libgomp, libstdc++, libgcc_s.

Makes LIBDNNL take from `ingot_cpu.so` (the SONAME of our library around it) what it took from those
three: the entries that need them and their symbol versions go, and every symbol that came from them
gets a name of its own, the first letter replaced by `i`, so that no other copy in the process is
mixed up with ours. SYMBOLS.rsp has linker options that define those names in our library,
EXPORTS.map is its version script.
"""
import pathlib
import struct
import sys

REPLACED = {"libgomp.so.1": "ingot_cpu.so", "libstdc++.so.6": None, "libgcc_s.so.1": None}
# src/backends/cpu/onednn/gcc_runtime.cpp has the symbols that the static libraries lack or hide.
OURS = {"_ZTVNSt13__future_base11_State_baseE": "_ZTVN5ingot3cpu6onednn11FutureStateE",
        "_Unwind_Resume": "ingot_unwind_resume"}
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 0, 1, 5, 6, 10
DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
DT_HASH, DT_VERDEF = 4, 0x6FFFFFFC
PT_LOAD, PT_DYNAMIC = 1, 2


class Elf:
    def __init__(self, data):
        self.data = bytearray(data)
        if data[:6] != b"\x7fELF\x02\x01":
            sys.exit("not a little-endian 64-bit ELF file")
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size)
                         for i in range(count)]
        dynamic = next(s for s in self.segments if s[0] == PT_DYNAMIC)
        self.dynamic, self.dynamic_size = dynamic[2], dynamic[5]
        self.tags = {}
        for tag, value in self.entries():
            self.tags.setdefault(tag, value)
        self.strings = self.offset(self.tags[DT_STRTAB])
        self.symbols = self.offset(self.tags[DT_SYMTAB])
        self.symbol_count = self.u32(self.offset(self.tags[DT_HASH]) + 4)

    def offset(self, address):
        for kind, _, offset, start, _, size, _, _ in self.segments:
            if kind == PT_LOAD and start <= address < start + size:
                return address - start + offset
        sys.exit(f"address {address:#x} is in no segment")

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def text(self, string):
        start = self.strings + string
        return self.data[start:self.data.index(b"\0", start)].decode()

    def entries(self):
        for at in range(self.dynamic, self.dynamic + self.dynamic_size, 16):
            tag, value = struct.unpack_from("<QQ", self.data, at)
            if tag == DT_NULL:
                return
            yield tag, value

    def needed_versions(self):
        """(position, file, position of the next or 0, indices) of each file's version needs."""
        at = self.offset(self.tags[DT_VERNEED])
        while True:
            _, count, file, first, following = struct.unpack_from("<HHIII", self.data, at)
            indices = set()
            entry = at + first
            for _ in range(count):
                _, _, index, _, step = struct.unpack_from("<IHHII", self.data, entry)
                indices.add(index)
                entry += step
            yield at, self.text(file), following, indices
            if following == 0:
                return
            at += following

    def used_strings(self):
        """Offsets of all strings that the file refers to."""
        used = {self.u32(self.symbols + i * 24) for i in range(self.symbol_count)}
        used |= {value for tag, value in self.entries() if tag in (DT_NEEDED, 14, 15, 29)}
        for at, _, _, _ in self.needed_versions():
            _, count, file, first, _ = struct.unpack_from("<HHIII", self.data, at)
            used.add(file)
            entry = at + first
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self.data, entry)
                used.add(name)
                entry += step
        return used

    def rewrite_string(self, string, text, used):
        """Replaces in place; the string must not be part of another one."""
        old = self.text(string)
        if len(old) != len(text):
            sys.exit(f"'{old}' and '{text}' differ in length")
        # Strings may share their ends: no other string may change.
        last = string + max(i for i, pair in enumerate(zip(old, text)) if pair[0] != pair[1])
        first = self.data.rindex(b"\0", 0, self.strings + string) + 1 - self.strings
        if any(first <= u <= last and u != string for u in used):
            sys.exit(f"the string '{old}' is shared with another one")
        start = self.strings + string
        self.data[start:start + len(text)] = text.encode()


def unlink_versions(elf):
    """Removes the replaced libraries from the version needs; returns their indices."""
    rows = list(elf.needed_versions())
    kept = [row for row in rows if row[1] not in REPLACED]
    if not kept or len(kept) == len(rows):
        sys.exit("the version needs are not those of the known library")
    for row, following in zip(kept, kept[1:] + [None]):
        step = 0 if following is None else following[0] - row[0]
        struct.pack_into("<I", elf.data, row[0] + 12, step)
    shift = kept[0][0] - rows[0][0]
    return shift, len(kept), set().union(*(r[3] for r in rows if r[1] in REPLACED))


def rename_symbols(elf, indices):
    used = elf.used_strings()
    versions = elf.offset(elf.tags[DT_VERSYM])
    names = []
    for i in range(elf.symbol_count):
        version, = struct.unpack_from("<H", elf.data, versions + 2 * i)
        if version & 0x7FFF not in indices:
            continue
        string = elf.u32(elf.symbols + i * 24)
        name = elf.text(string)
        names.append(name)
        elf.rewrite_string(string, "i" + name[1:], used)
        struct.pack_into("<H", elf.data, versions + 2 * i, 1)
    return names


def rewrite_dynamic(elf, shift, count):
    used = elf.used_strings()
    out = []
    for tag, value in list(elf.entries()):
        if tag == DT_NEEDED and elf.text(value) in REPLACED:
            name = REPLACED[elf.text(value)]
            if name is None:
                continue
            elf.rewrite_string(value, name, used)
        elif tag == DT_VERNEED:
            value += shift
        elif tag == DT_VERNEEDNUM:
            value = count
        out.append((tag, value))
    table = b"".join(struct.pack("<QQ", *entry) for entry in out)
    table = table.ljust(elf.dynamic_size, b"\0")
    elf.data[elf.dynamic:elf.dynamic + elf.dynamic_size] = table


def main():
    source, out, symbols, exports = map(pathlib.Path, sys.argv[1:])
    elf = Elf(source.read_bytes())
    shift, count, indices = unlink_versions(elf)
    names = rename_symbols(elf, indices)
    rewrite_dynamic(elf, shift, count)
    out.write_bytes(elf.data)
    symbols.write_text("".join(f"-Wl,--defsym=i{name[1:]}={OURS.get(name, name)}\n"
                               for name in sorted(names)))
    exported = "".join(f"    i{name[1:]};\n" for name in sorted(names))
    exports.write_text(f"{{\nglobal:\n    ingot_cpu_library;\n{exported}local:\n    *;\n}};\n")


if __name__ == "__main__":
    main()
