#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shares of a program that spends known ones: half, three tenths, a fifth; also in periods of 10 ms.

A clock of 100 Hz would meet such a program in the same place each time.  Ours have primes.
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, need_host, plausible, record  # noqa: E402

SHARES = {"burn_half": 0.5, "burn_three_tenths": 0.3, "burn_fifth": 0.2}
SLACK = 0.01  # the loops of the program are not exact either


def cpu_seconds(text):
    """What `times` of the shell says of its children: 0m1.520s 0m0.010s, in the line before the summary."""
    line = text.strip().splitlines()[-2]
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", line))


def check_program(folder, what, frequency, *arguments):
    rec = record(folder, "bash", "-c", f"{PROGRAMS}/shares {' '.join(arguments)}; times", frequency=frequency)
    counts = {name: rec.count(lambda f, name=name: f[0] == name) for name in SHARES}
    total = sum(counts.values())
    cpu = cpu_seconds(rec.out)
    # Fewer where a machine shares its processors: the time that others have them may count as the program's own.
    check(f"{what}: {total} samples of {cpu:.2f} s of CPU time",
          0.6 * cpu - 3 / frequency < total / frequency < 1.15 * cpu + 3 / frequency, (rec.said, rec.out))
    for name, share in SHARES.items():
        check(f"{what}: {name} has {counts[name]} of {total}, of which {share:.0%} is its share",
              plausible(counts[name], total, share, SLACK), rec.stacks)


def main():
    need_host("shares")
    with Folder() as folder:
        check_program(folder, "short periods, 499 Hz", 499, "2")
        check_program(folder, "periods of 10 ms, 97 Hz", 97, "4", "10000")
        check_program(folder, "periods of 10 ms, 19 Hz", 19, "8", "10000")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
