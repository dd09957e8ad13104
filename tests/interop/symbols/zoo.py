# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder, built in every way that debug information is shipped in.

    for program in zoo.build_all(folder, full=False): ...

A build that a tool refuses is reported as skipped, with the tool's reason.  Without `full` those are left out that
only repeat what another one shows."""
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
C = [str(HERE / "zoo.c"), str(HERE / "zoo_more.c")]
CPP = [str(HERE / "zoo.cc"), str(HERE / "zoo_more.cc")]


class Missing(Exception):
    """A tool is not there, or cannot do this."""


class Program:
    """One program: what to ask for, and how to let others find its debug information."""

    def __init__(self, name, path, language, **more):
        self.name, self.path, self.language = name, pathlib.Path(path), language
        self.debug_dir = more.get("debug_dir")  # as /usr/lib/debug
        self.debug = more.get("debug")  # the very file that has it
        self.twin = more.get("twin")  # the same code with plain debug information, for judges who cannot read this one


def run(*command, **more):
    if not shutil.which(str(command[0])):
        raise Missing(f"no {command[0]}")
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line or "unknown" in line or "nrecognized" in line]
        raise Missing(f"{command[0]}: {(said or done.stderr.splitlines() or ['failed'])[0]}")
    return done.stdout


# ---- steps ----

def compile_c(folder, *flags, cc="gcc", sources=None):
    """Compiles apart and links: -gsplit-dwarf leaves its .dwo beside the objects."""
    objects = []
    for source in sources or (CPP if cc.endswith("++") else C):
        objects.append(folder / (pathlib.Path(source).stem + ".o"))
        run(cc, "-O2", "-g", *flags, "-c", source, "-o", objects[-1], cwd=folder)
    run(cc, "-O2", "-g", *flags, *objects, "-o", folder / "program", cwd=folder)
    return folder / "program"


def compiled(*flags, cc="gcc"):
    return lambda folder: {"path": compile_c(folder, *flags, cc=cc)}


def twin_of(program, *flags, cc="gcc"):
    """The same program without what its debug information is packed by; its code must be the same."""
    folder = program.parent / "twin"
    folder.mkdir()
    twin = compile_c(folder, *flags, cc=cc)
    for path, out in ((program, "ours"), (twin, "theirs")):
        run("objcopy", "-O", "binary", "-j", ".text", path, folder / out)
    if (folder / "ours").read_bytes() != (folder / "theirs").read_bytes():
        raise Missing(f"{cc}: its code is another one without {program.parent.name}")
    return twin


def split(*flags, cc="gcc"):
    def make(folder):
        program = compile_c(folder, "-gsplit-dwarf", *flags, cc=cc)
        return {"path": program, "twin": twin_of(program, *flags, cc=cc)}
    return make


def profile_guided(folder):
    """What it says of a run decides what is hot; the rest goes to .text.unlikely."""
    compile_c(folder, "-fprofile-generate", "-fprofile-update=single")
    run(folder / "program", cwd=folder)
    return {"path": compile_c(folder, "-fprofile-use", "-Wno-missing-profile", "-freorder-blocks-and-partition")}


def clang_profile_guided(folder):
    compile_c(folder, "-fprofile-instr-generate", cc="clang")
    run(folder / "program", cwd=folder, env={**os.environ, "LLVM_PROFILE_FILE": str(folder / "raw")})
    merge = shutil.which("llvm-profdata") or shutil.which("llvm-profdata-14") or "llvm-profdata"
    run(merge, "merge", folder / "raw", "-o", folder / "merged")
    return {"path": compile_c(folder, f"-fprofile-instr-use={folder}/merged", "-fsplit-machine-functions", cc="clang")}


def compressed(how):
    def make(folder):
        compile_c(folder)
        run("objcopy", f"--compress-debug-sections={how}", folder / "program", folder / "packed")
        return {"path": folder / "packed", "twin": folder / "program"}
    return make


def packaged(*flags, cc="gcc", tool="dwp"):
    """All split units in PROGRAM.dwp, and the .dwo files gone."""
    def make(folder):
        program = compile_c(folder, "-gsplit-dwarf", *flags, cc=cc)
        if tool == "dwp":
            run(tool, "-e", program, "-o", f"{program}.dwp", cwd=folder)
        else:
            run(shutil.which(tool) or tool + "-14", "-e", program, "-o", f"{program}.dwp", cwd=folder)
        for dwo in folder.glob("*.dwo"):
            dwo.unlink()
        return {"path": program, "twin": twin_of(program, *flags, cc=cc)}
    return make


def dwz_single(*flags, cc="gcc"):
    def make(folder):
        program = compile_c(folder, *flags, cc=cc)
        run("dwz", program)
        return {"path": program}
    return make


def dwz_multi(folder):
    """What two programs have in common goes to a third file, as Debian's packages have it."""
    first = compile_c(folder, cc="g++")
    shutil.copy(first, folder / "first")
    run("g++", "-O1", "-g", *CPP, "-o", folder / "second", cwd=folder)
    run("dwz", "-m", folder / "common", "-M", folder / "common", folder / "first", folder / "second")
    if ".gnu_debugaltlink" not in run("readelf", "-SW", folder / "first"):
        raise Missing("dwz: nothing in common")
    return {"path": folder / "first"}


def debug_link(where):
    """Stripped; the debug file beside it, or in .debug/."""
    def make(folder):
        program = compile_c(folder, "-Wl,--build-id=none")
        place = folder / where
        place.mkdir(exist_ok=True)
        run("objcopy", "--only-keep-debug", program, place / "program.debug")
        run("objcopy", "--strip-all", f"--add-gnu-debuglink={place}/program.debug", program, folder / "stripped")
        program.unlink()
        return {"path": folder / "stripped"}
    return make


def build_id_dir(*flags, cc="gcc", pack=False):
    def make(folder):
        program = compile_c(folder, "-Wl,--build-id", *flags, cc=cc)
        notes = run("readelf", "-n", program)
        build_id = notes.split("Build ID: ")[1].split()[0]
        place = folder / "debug" / ".build-id" / build_id[:2]
        place.mkdir(parents=True)
        target = place / f"{build_id[2:]}.debug"
        run("objcopy", "--only-keep-debug", *(["--compress-debug-sections=zlib"] if pack else []), program, target)
        run("strip", "--strip-all", "-o", folder / "stripped", program)
        program.unlink()
        return {"path": folder / "stripped", "debug_dir": folder / "debug", "debug": target}
    return make


def rust(*flags):
    def make(folder):
        run("rustc", "--edition", "2021", "-g", *flags, "-o", folder / "program", HERE / "zoo.rs", cwd=folder)
        return {"path": folder / "program"}
    return make


def go(*flags):
    def make(folder):
        shutil.copy(HERE / "zoo.go", folder / "zoo.go")
        run("go", "build", *flags, "-o", folder / "program", "zoo.go", cwd=folder)
        return {"path": folder / "program"}
    return make


# ---- all of them ----

# name, language, also in the short run, how
BUILDS = [
    ("gcc-g", "c", True, compiled()),
    ("gcc-O0", "c", False, compiled("-O0")),
    ("gcc-O3", "c", False, compiled("-O3", "-funroll-loops")),
    ("gcc-Os", "c", False, compiled("-Os")),
    ("gcc-Og-g3", "c", False, compiled("-Og", "-g3")),
    ("gcc-g1", "c", True, compiled("-g1")),
    ("gcc-dwarf2", "c", True, compiled("-gdwarf-2", "-gstrict-dwarf")),
    ("gcc-dwarf3", "c", True, compiled("-gdwarf-3", "-gstrict-dwarf")),
    ("gcc-dwarf4", "c", True, compiled("-gdwarf-4")),
    ("gcc-dwarf5", "c", False, compiled("-gdwarf-5")),
    ("gcc-dwarf64", "c", True, compiled("-gdwarf-5", "-gdwarf64")),
    ("gcc-dwarf4-64", "c", False, compiled("-gdwarf-4", "-gdwarf64")),
    ("gcc-types", "c++", False, compiled("-fdebug-types-section", "-gdwarf-4", cc="g++")),
    ("gcc-split", "c", True, split()),
    ("gcc-split4", "c", True, split("-gdwarf-4")),
    ("gcc-dwp4", "c", True, packaged("-gdwarf-4")),
    ("gcc-dwp5", "c", True, packaged("-gdwarf-5", tool="llvm-dwp")),
    ("gcc-gz", "c", True, compiled("-gz=zlib")),
    ("gcc-gz-gnu", "c", True, compressed("zlib-gnu")),
    ("gcc-gz-zstd", "c", True, compressed("zstd")),
    ("gcc-dwz", "c++", True, dwz_single(cc="g++")),
    ("gcc-dwz4", "c", False, dwz_single("-gdwarf-4")),
    ("gcc-dwz-multi", "c++", True, dwz_multi),
    ("gcc-lto", "c", True, compiled("-flto")),
    ("gcc-lto-cpp", "c++", False, compiled("-flto", cc="g++")),
    ("gcc-pgo", "c", True, profile_guided),
    ("gcc-sections", "c", True, compiled("-ffunction-sections", "-Wl,--gc-sections")),
    ("gcc-gold", "c", False, compiled("-fuse-ld=gold", "-Wl,--gdb-index", "-ffunction-sections")),
    ("gcc-static-pie", "c", True, compiled("-static-pie")),
    ("gcc-static", "c", False, compiled("-static")),
    ("gcc-no-pie", "c", True, compiled("-no-pie", "-fno-pie")),
    ("gcc-debuglink", "c", True, debug_link(".")),
    ("gcc-debuglink-dot", "c", False, debug_link(".debug")),
    ("gcc-build-id", "c", True, build_id_dir()),
    ("gcc-build-id-gz", "c++", False, build_id_dir(cc="g++", pack=True)),
    ("g++-g", "c++", True, compiled(cc="g++")),
    ("g++-g1", "c++", False, compiled("-g1", cc="g++")),
    ("g++-O0", "c++", False, compiled("-O0", cc="g++")),
    ("g++-O3", "c++", False, compiled("-O3", cc="g++")),
    ("g++-split", "c++", False, split(cc="g++")),
    ("g++-no-linkage", "c++", False, compiled("-gdwarf-3", "-gstrict-dwarf", cc="g++")),
    ("clang-g", "c", True, compiled(cc="clang")),
    ("clang-g1", "c", True, compiled("-gline-tables-only", cc="clang")),
    ("clang-g-mlt", "c++", False, compiled("-gmlt", cc="clang++")),
    ("clang-dwarf2", "c", False, compiled("-gdwarf-2", cc="clang")),
    ("clang-dwarf3", "c", False, compiled("-gdwarf-3", cc="clang")),
    ("clang-dwarf4", "c", True, compiled("-gdwarf-4", cc="clang")),
    ("clang-dwarf64", "c", False, compiled("-gdwarf-5", "-gdwarf64", cc="clang")),
    ("clang-aranges", "c++", False, compiled("-gdwarf-aranges", cc="clang++")),
    ("clang-split", "c", True, split(cc="clang")),
    ("clang-split4", "c", False, split("-gdwarf-4", cc="clang")),
    ("clang-split-inlining", "c", False, split("-fsplit-dwarf-inlining", cc="clang")),
    ("clang-dwp", "c", True, packaged("-gdwarf-5", cc="clang", tool="llvm-dwp")),
    ("clang-dwp4", "c", False, packaged("-gdwarf-4", cc="clang", tool="llvm-dwp")),
    ("clang-gz", "c", False, compiled("-gz", cc="clang")),
    ("clang-embed", "c", False, compiled("-gdwarf-5", "-gembed-source", cc="clang")),
    ("clang-types", "c++", False, compiled("-fdebug-types-section", cc="clang++")),
    ("clang-lto", "c", True, compiled("-flto", "-fuse-ld=lld", cc="clang")),
    ("clang-thin", "c++", False, compiled("-flto=thin", "-fuse-ld=lld", cc="clang++")),
    ("clang-pgo", "c", False, clang_profile_guided),
    ("clang-blocks", "c", False, compiled("-fbasic-block-sections=all", "-fuse-ld=lld", cc="clang")),
    ("clang++-g", "c++", True, compiled(cc="clang++")),
    ("clang++-O0", "c++", False, compiled("-O0", cc="clang++")),
    ("rust-O", "rust", True, rust("-O")),
    ("rust-debug", "rust", False, rust()),
    ("rust-lines", "rust", False, rust("-O", "-C", "debuginfo=line-tables-only")),
    ("rust-lto", "rust", False, rust("-O", "-C", "lto=fat", "-C", "symbol-mangling-version=v0")),
    ("rust-split", "rust", False, rust("-O", "-C", "split-debuginfo=unpacked")),
    ("rust-packed", "rust", False, rust("-O", "-C", "split-debuginfo=packed")),
    ("go", "go", True, go()),
    ("go-plain", "go", False, go("-ldflags=-compressdwarf=false")),
    ("go-no-inline", "go", False, go("-gcflags=-l")),
]


def build_all(folder, full=False, only=None):
    """Yields (program, None), or (name, why it cannot be built)."""
    for name, language, short, make in BUILDS:
        if only and name not in only or not (full or short or only):
            continue
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True)
        try:
            yield Program(name, language=language, **make(place)), None
        except Missing as e:
            yield name, str(e)
