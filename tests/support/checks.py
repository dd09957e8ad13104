# SPDX-License-Identifier: Apache-2.0
"""Checks that let a test go on: each is a line of what it prints, and all of them together are its exit code."""
failed = 0


def check(what, good, detail=""):
    global failed
    failed += not good
    print(f"{'ok' if good else 'FAILED'}: {what}{'' if good else ': ' + str(detail)[:2000]}", flush=True)


def exit_code():
    """Prints how it ended; for sys.exit()."""
    print("all well" if failed == 0 else f"{failed} failed", flush=True)
    return 1 if failed else 0
