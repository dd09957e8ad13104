#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs for the kernel, compiled by every clang that is installed, load into the kernel that runs.

The verifier sees the compiler's output, and each version of clang keeps other comparisons.
"""
import ctypes
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import need_host  # noqa: E402

BUILD = os.environ.get("KILN_BUILD_DIR", "build")
TRACEPOINTS = {"kiln_wait": "sched_exit_tp", "kiln_switch": "sched_switch", "kiln_sample": None}
BPF_TRACE_RAW_TP = 23
LIBBPF = ctypes.CDLL("libbpf.so.1")
POINTERS = "bpf_object__open_file", "bpf_object__find_program_by_name"
for name in POINTERS:
    getattr(LIBBPF, name).restype = ctypes.c_void_p


def compilers():
    """Each clang of $PATH once, whatever its names: "clang-19" -> its path."""
    found = {}
    for folder in os.get_exec_path():
        for path in sorted(pathlib.Path(folder).glob("clang*")):
            if re.fullmatch(r"clang(-\d+)?", path.name) and os.access(path, os.X_OK):
                found.setdefault(path.resolve(), path)
    return sorted(found.values())


def build_command():
    """How the build compiles the programs, without its compiler and its output."""
    command = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", "bpf/sample.bpf.o"], check=True,
                             capture_output=True, text=True).stdout
    words = shlex.split(command.split("&&")[1])
    return words[1:words.index("-MD")] + words[words.index("-c"):words.index("-o")]


def load(path, program):
    """0, or what bpf_object__load() returned for this one program; libbpf prints the verifier's log."""
    loaded = ctypes.c_void_p(LIBBPF.bpf_object__open_file(os.fsencode(path), None))
    for one in TRACEPOINTS:
        found = ctypes.c_void_p(LIBBPF.bpf_object__find_program_by_name(loaded, one.encode()))
        LIBBPF.bpf_program__set_autoload(found, ctypes.c_bool(one == program))
    result = LIBBPF.bpf_object__load(loaded)
    LIBBPF.bpf_object__close(loaded)
    return result


def has_hook(program):
    hook = TRACEPOINTS[program]
    return not hook or LIBBPF.libbpf_find_vmlinux_btf_id(hook.encode(), BPF_TRACE_RAW_TP) > 0


def check_compiler(compiler, folder):
    path = pathlib.Path(folder, f"{compiler.name}.o")
    done = subprocess.run([compiler, *build_command(), "-Werror", "-o", path], cwd=BUILD, capture_output=True, text=True,
                          check=False)
    check(f"{compiler.name} compiles them without a warning", done.returncode == 0, done.stderr)
    for program in filter(has_hook, TRACEPOINTS):
        check(f"{program} of {compiler.name} loads", done.returncode == 0 and load(path, program) == 0)


need_host()
with tempfile.TemporaryDirectory() as scratch:
    found = compilers()
    check("a clang is installed", found)
    for each in found:
        check_compiler(each, scratch)
sys.exit(exit_code())
