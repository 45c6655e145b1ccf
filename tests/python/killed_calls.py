# SPDX-License-Identifier: Apache-2.0
"""Kills a program before one of its system calls that change files, or lets the disk be full from
one of them on, by ptrace (x86-64 Linux)."""
import ctypes
import errno
import os
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
TRACEME, PEEKUSER, POKEUSER, CONT, KILL, SYSCALL, SETOPTIONS = 0, 3, 6, 7, 8, 24, 0x4200
STOP_IS_SYSCALL = 1  # PTRACE_O_TRACESYSGOOD
NUMBER, OPEN_FLAGS = 8 * 15, 8 * 12  # offsets of orig_rax and rdx in struct user
RESULT, DESCRIPTOR = 8 * 10, 8 * 14  # of rax and rdi
WRITES = 0o3 | 0o100  # O_WRONLY, O_RDWR, O_CREAT
OPENAT = 257
CHANGING = {1: "write", 18: "pwrite64", 74: "fsync", 75: "fdatasync", 77: "ftruncate", 82: "rename",
            83: "mkdir", 84: "rmdir", 86: "link", 87: "unlink", 90: "chmod", 91: "fchmod",
            258: "mkdirat", 263: "unlinkat", 264: "renameat", 265: "linkat", 268: "fchmodat",
            285: "fallocate", 316: "renameat2"}
WRITE = 1
REMOVING = {74, 75, 84, 87, 90, 91, 263, 268}  # these and changes of rights need no room


def ptrace(request, process, address=0, data=0):
    return LIBC.ptrace(request, process, address, data)


def is_changing(process):
    number = ptrace(PEEKUSER, process, NUMBER)
    if number == OPENAT:
        return bool(ptrace(PEEKUSER, process, OPEN_FLAGS) & WRITES)
    return number in CHANGING


def needs_room(process):
    """Whether the call is one that a full disk refuses; what the program says is none."""
    number = ptrace(PEEKUSER, process, NUMBER)
    return is_changing(process) and number not in REMOVING and not (
        number == WRITE and ptrace(PEEKUSER, process, DESCRIPTOR) in (1, 2))


def run_on_a_full_disk(command, full_from, log):
    """Runs a command whose first thread finds the disk full from the N-th call on that needs room,
    counted from 0. Returns (calls refused, exit code); what it says is in the file `log`."""
    process = os.fork()
    if process == 0:
        said = os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        ptrace(TRACEME, 0)
        os.execv(command[0], list(map(str, command)))
    os.waitpid(process, 0)
    ptrace(SETOPTIONS, process, 0, STOP_IS_SYSCALL)
    seen, refused, entering, refusing, passed_on = 0, 0, True, False, 0
    while True:
        ptrace(SYSCALL, process, 0, passed_on)
        _, status = os.waitpid(process, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return refused, os.waitstatus_to_exitcode(status)
        passed_on = os.WSTOPSIG(status)
        if passed_on != signal.SIGTRAP | 0x80:
            continue
        passed_on = 0
        if entering and needs_room(process):
            refusing = seen >= full_from
            seen += 1
            if refusing:
                refused += 1
                ptrace(POKEUSER, process, NUMBER, ctypes.c_void_p(-1))  # a call that there is not
        elif not entering and refusing:
            ptrace(POKEUSER, process, RESULT, ctypes.c_void_p(-errno.ENOSPC))
            refusing = False
        entering = not entering


def run(command, kill_at=None):
    """Runs a command; with kill_at=N kills its first thread before the N-th call that changes
    files, counted from 0. Returns (calls seen, whether it was killed)."""
    process = os.fork()
    if process == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        ptrace(TRACEME, 0)
        os.execv(command[0], list(map(str, command)))
    os.waitpid(process, 0)  # stopped at its start
    ptrace(SETOPTIONS, process, 0, STOP_IS_SYSCALL)
    seen, entering, passed_on = 0, True, 0
    while True:
        ptrace(SYSCALL, process, 0, passed_on)
        _, status = os.waitpid(process, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            return seen, False
        passed_on = os.WSTOPSIG(status)
        if passed_on != signal.SIGTRAP | 0x80:
            continue
        passed_on = 0
        if entering and is_changing(process):
            if seen == kill_at:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return seen, True
            seen += 1
        entering = not entering
