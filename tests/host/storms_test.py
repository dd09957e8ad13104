#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many of everything: processes that live 50 ms, forked and executed by the hundred; threads by the thousand; ten
thousand mappings of code; and processes that burn a tenth of a second and are gone, each with its name."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, has_chain, need_host, record, resources_of  # noqa: E402

COMPLETE = 0.98  # a process may die in the middle of what is asked about it
BRIEF = 24


def check_storm(folder, what, chain, *command, least=0.9, complete=COMPLETE):
    rec = record(folder, *command)
    check(f"{what}: recorded", rec.code == 0 and rec.total > 40, rec.said)
    seen = rec.count(lambda f: has_chain(f, chain))
    check(f"{what}: {seen} of {rec.total} samples have the chain", seen >= least * rec.total,
          rec.worst(lambda f: has_chain(f, chain)))
    if rec.summary:
        check(f"{what}: {rec.summary['complete']:.2%} complete, {rec.summary['processes']} processes",
              rec.summary["complete"] >= complete, (rec.said, rec.summary))
        check(f"{what}: nothing is lost", rec.summary["lost"] == 0, rec.summary)
    return rec


def check_brief(folder):
    """Each of them is another program, so that each must be met by a sample of its own and found by name."""
    names = [f"brief-{i:02}" for i in range(BRIEF)]
    for name in names:
        shutil.copy(PROGRAMS / "spawn", folder / name)
    script = "; ".join(f"{folder / name} --short 100" for name in names)
    rec = record(folder, "sh", "-c", script, frequency=97)
    found = {}
    for attributes, count in resources_of(rec.path):
        name = attributes.get("process.executable.name", "")
        found[name] = found.get(name, 0) + count
    missing = [name for name in names if name not in found]
    check(f"processes of 100 ms: {BRIEF - len(missing)} of {BRIEF} are there by name", not missing, (missing, found))
    few = {name: found.get(name) for name in names if found.get(name, 0) < 3}
    check("processes of 100 ms: with the samples that 100 ms give, nine or ten", not few and
          sum(found.get(name, 0) for name in names) >= 6 * BRIEF, (few, found))
    seen = rec.count(lambda f: has_chain(f, ("burn_briefly", "short_life", "main")))
    check(f"processes of 100 ms: {seen} of {rec.total} with their chain", seen >= 0.85 * rec.total,
          rec.worst(lambda f: "short_life" in f))


def main():
    need_host("spawn", "threads", "mappings")
    with Folder() as folder:
        check_storm(folder, "forks", ("burn_briefly", "short_life"), PROGRAMS / "spawn", "2", "50", "fork")
        check_storm(folder, "execs", ("burn_briefly", "short_life", "main"), PROGRAMS / "spawn", "2", "50", "exec",
                    least=0.85)
        check_storm(folder, "execs of 5 ms", ("burn_briefly", "short_life", "main"), PROGRAMS / "spawn", "2", "5",
                    "exec", least=0.4, complete=0.9)
        check_storm(folder, "a thousand threads", ("burn_in_thread", "thread_main"), PROGRAMS / "threads", "2", "1000")
        check_storm(folder, "ten thousand mappings", ("burn_leaf", "outer", "main"), PROGRAMS / "mappings", "2")
        check_brief(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
