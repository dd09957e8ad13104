# SPDX-License-Identifier: Apache-2.0
"""What the scenarios share: a server, questions to it, checks that go on after one failed."""
import json
import os
import pathlib
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent.parent
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "interop/otlp")]
import peers  # noqa: E402,F401
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402,F401

CPU = "process_cpu:cpu:nanoseconds"


def equal(what, is_so, should_be):
    check(what, is_so == should_be, f"{is_so!r} is not {should_be!r}")


def finish():
    sys.exit(exit_code())


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def address(server, path="", **params):
    query = urllib.parse.urlencode([(key, v) for key, value in params.items()
                                    for v in (value if isinstance(value, list) else [value])])
    return f"http://127.0.0.1:{server.http}{path}" + ("?" + query if query else "")


def ask(server, path, body=None, **params):
    """The JSON that the server answers; `body` makes it a POST."""
    call = urllib.request.Request(address(server, path, **{key.rstrip("_"): value for key, value in params.items()}),
                                  body and json.dumps(body).encode(), {"Content-Type": "application/json"} if body else {})
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        raise RuntimeError(f"{path}: {refused.code} {refused.read().decode()}") from None


def query(server, selector, **params):
    return ask(server, "/api/v1/query", query=selector, **params)


def profiles_of(server, selector):
    """How many profiles stand behind an answer; none where there is not even such a type yet."""
    try:
        return query(server, selector)["basis"]["profiles"]
    except RuntimeError as error:
        if ": 404 " not in str(error):
            raise
        return 0


def shares(answer, what="self"):
    """{function: its value} of a top table."""
    return {row["name"]: row[what] for row in answer["top"]["rows"]}


def run(*words, **more):
    """What a program printed; its failure is ours."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def kiln(*words, **more):
    return run(KILN, *words, **more)


def children(flame, *path):
    """{name: total} of what the node at the end of this path calls, in a flame graph of our API."""
    names, at = flame["names"], []
    wanted, found = ["total", *path], {}
    for name, depth, total in zip(flame["name"], flame["depth"], flame["total"]):
        del at[depth:]
        at.append(names[name])
        if at[:-1] == wanted:
            found[at[-1]] = total
    return found


def environment(**more):
    return os.environ | more
