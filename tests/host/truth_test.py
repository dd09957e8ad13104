#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose stacks are known: every sample has the complete chain, with names, from the leaf to the entry.

tests/host/programs/README.md says what must be seen of each.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, has_chain, need_host, plausible, record, starts_at_main  # noqa: E402

SECONDS = "0.6"
ENOUGH = 100  # samples to tell of a program what it does; a busy machine may not have let it run for them
COMPLETE = 0.995  # of the stacks: what the profiler promises
FIRST = 15  # samples where something is new and a slice of one stack does not hold the other one below it

# Program, and chains of which each stack of its own code must have one, leaf first.
CHAINS = {
    "chain": [("burn_leaf", "middle_a", "outer", "main"), ("burn_other", "middle_b", "outer", "main")],
    "chain-static": [("burn_leaf", "middle_a", "outer", "main"), ("burn_other", "middle_b", "outer", "main")],
    "chain-no-pie": [("burn_leaf", "middle_a", "outer", "main"), ("burn_other", "middle_b", "outer", "main")],
    "chain-minidebug": [("burn_leaf", "middle_a", "outer", "main"), ("burn_other", "middle_b", "outer", "main")],
    # Its leaves have no frame, so that what frame pointers lead to is their callers' caller.
    "chain-fp": [("burn_leaf", "outer", "main"), ("burn_other", "outer", "main")],
    "deep": [("burn_bottom", "descend_odd", "descend_even", "descend_odd")],
    "clocks": [("ask_clock", "outer", "main")],
    "stubs": [("call_stubs", "outer", "main")],
    "plugin": [("burn_in_plugin", "plugin_outer", "open_and_burn", "main")],
    "frames": [("burn_leaf", "with_alloca", "with_array", "aligned", "aligned_with_alloca", "main")],
    "tail": [("burn_leaf", "tail_second", "outer", "main")],
    "threads": [("burn_in_thread", "thread_main")],
    "throwing": [("catcher", "main")],
    "sorting": [("Sorter<unsigned int>::sort_values", "outer", "main"), ("fill_map", "outer", "main"),
                ("outer", "main")],
    "handler": [("burn_interrupted", "outer", "main")],
}
# What others than the program's own code take of its time: starting, loading libraries, the kernel.
BESIDE = 0.06


def names_of(frames):
    """C++ names without their arguments."""
    return tuple(name.split("(")[0] for name in frames)


def record_enough(folder, program):
    """For longer, and at the most three times, where other programs had the processors."""
    rec = record(folder, PROGRAMS / program, SECONDS)
    for seconds in ("2", "6"):
        if rec.code or rec.total >= ENOUGH:
            break
        rec = record(folder, PROGRAMS / program, seconds)
    return rec


def check_chains(folder, program, chains):
    rec = record_enough(folder, program)
    if rec.code or not rec.total:
        check(f"{program} is recorded", False, rec.said)
        return None

    def known(frames):
        return any(has_chain(names_of(frames), chain) for chain in chains)

    seen = rec.count(known)
    check(f"{program}: {seen} of {rec.total} samples have a known chain", seen >= (1 - BESIDE) * rec.total - 5,
          rec.worst(known))
    check_complete(program, rec)
    check(f"{program}: nothing is lost", rec.summary["lost"] == 0, rec.summary)
    return rec


def check_complete(program, rec):
    """As many as are promised, or as chance allows; but for the first ones, on two stacks at once."""
    ends = rec.summary["stacks"]
    complete, all_of_them = ends["complete"], sum(n for end, n in ends.items() if end not in ("no_user", "compat"))
    first = min(ends.get("slice", 0), FIRST)
    check(f"{program}: {complete} of {all_of_them} stacks are complete, {first} of the others are first ones",
          plausible(complete, all_of_them - first, COMPLETE) or complete >= COMPLETE * (all_of_them - first),
          (ends, rec.worst(starts_at_main)))


def check_shares(folder):
    """Three quarters and one quarter, within what chance allows."""
    rec = record(folder, PROGRAMS / "chain", "1.5")
    n = rec.count(lambda f: "burn_leaf" in f or "burn_other" in f)
    leaf = rec.count(lambda f: "burn_leaf" in f)
    check(f"chain: burn_leaf has {leaf} of {n}: three quarters", plausible(leaf, n, 0.75, slack=0.01), rec.stacks)


def check_details(folder):
    rec = record_enough(folder, "deep")
    deep = max((sum(name.startswith("descend_") for name in frames) for frames in rec.stacks), default=0)
    check(f"deep: {deep} of 400 frames of the recursion", deep == 400, rec.worst(starts_at_main))
    rec = record_enough(folder, "handler")
    both = rec.count(lambda f: has_chain(f, ("burn_in_handler", "on_alarm")) and
                     has_chain(f, ("burn_interrupted", "outer", "main")))
    inside = rec.count(lambda f: "burn_in_handler" in f)
    check(f"handler: {both} of {inside} stacks go on below the signal", inside > 20 and both >= 0.9 * inside - 2,
          rec.worst(lambda f: "burn_interrupted" in f))
    rec = record_enough(folder, "tail")
    check("tail: what left by a jump is not on the stack", rec.count(lambda f: "tail_first" in f) == 0, rec.stacks)
    rec = record_enough(folder, "throwing")
    thrown = rec.count(lambda f: f.count("thrower") > 1 and has_chain(f, ("catcher", "main")))
    check(f"throwing: {thrown} of {rec.total} are in the recursion", thrown > rec.total / 2, rec.stacks)


def check_stripped(folder):
    rec = record_enough(folder, "chain-stripped")
    check("chain-stripped: complete, though it has no names", rec.code == 0 and rec.summary["complete"] >= COMPLETE,
          rec.said)
    check("chain-stripped: six frames and more above the entry", rec.count(lambda f: len(f) >= 6) > 0.9 * rec.total,
          rec.stacks)
    check_made_up(rec)


def check_made_up(rec):
    """One function for each of the chain, though no symbol says so: `chain` has the same code, with names."""
    begins = function_begins(PROGRAMS / "chain")
    names = {f"chain-stripped+{begins[name]:#x}": name for name in
             ("burn_leaf", "burn_other", "middle_a", "middle_b", "outer", "main", "_start") if name in begins}
    seen = {frame for frames in rec.stacks for frame in frames if frame.startswith("chain-stripped+")}
    check(f"chain-stripped: {len(seen)} functions, each begins where one of the chain does", seen <= set(names)
          and len(seen) == len(names), (seen, names))
    chains = CHAINS["chain"]
    known = rec.count(lambda f: any(has_chain(tuple(names.get(frame, frame) for frame in f), c) for c in chains))
    check(f"chain-stripped: {known} of {rec.total} samples have a known chain", known >= (1 - BESIDE) * rec.total - 5,
          rec.stacks)
    check("chain-stripped: they count as places without a name", rec.summary["names_missing"] >= len(seen), rec.summary)


def function_begins(program):
    """Where functions begin in the file, by name."""
    done = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines())
    return {name: int(address, 16) for address, kind, name in rows if kind in "tT"}


def check_rust(folder):
    rec = check_chains(folder, "rusty", [("rusty::outer", "rusty::run")])
    if rec:
        leaf = rec.count(lambda f: has_chain(f, ("rusty::burn_leaf", "rusty::outer", "rusty::run")))
        check(f"rusty: {leaf} samples in burn_leaf", leaf > rec.total / 20, rec.stacks)


def check_go(folder):
    rec = record_enough(folder, "going")
    leaf = rec.count(lambda f: has_chain(f, ("main.burnLeaf", "main.middle", "main.outer", "main.worker")))
    check(f"going: {leaf} of {rec.total} below main.worker", leaf > rec.total / 20, rec.stacks.most_common(5))
    deep = rec.count(lambda f: f.count("main.deep") >= 51)
    check(f"going: {deep} samples below 51 calls", deep > 0, rec.stacks.most_common(5))
    check_complete("going", rec)
    if (PROGRAMS / "cgoing").exists():
        rec = record_enough(folder, "cgoing")
        through = rec.count(lambda f: has_chain(f, ("burn_in_c", "c_outer")) and "main.main" in f)
        below = rec.count(lambda f: "burn_in_c" in f)
        check(f"cgoing: {through} of {below} stacks of C go on to main.main", below > 0 and through >= 0.9 * below - 2,
              rec.worst(lambda f: "main.main" in f))


def main():
    need_host("chain")
    with Folder() as folder:
        for program, chains in CHAINS.items():
            if (PROGRAMS / program).exists():
                check_chains(folder, program, chains)
        check_shares(folder)
        check_details(folder)
        check_stripped(folder)
        if (PROGRAMS / "rusty").exists():
            check_rust(folder)
        if (PROGRAMS / "going").exists():
            check_go(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
