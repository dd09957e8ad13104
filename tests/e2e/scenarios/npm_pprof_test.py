#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Node program that writes pprof files with npm's `pprof`, as the guides write it, with metadata beside each file; `kiln push` sends
them, and they are found again by what the metadata says.  Skips where npm cannot install `pprof`."""
import json
import shutil
import subprocess
import tempfile

from scenario import HERE, KilnServer, address, ask, check, equal, finish, kiln, peers, profiles_of, query, run, shares, skip, environment

NODE = HERE / "node"
METADATA = {"service.name": "checkout", "service.version": "1.4.2", "git.commit": "9fceb02", "git.branch": "main",
            "deployment.environment": "production", "runtime.version": "v20"}


def install():
    """A folder with the compiled program and its packages, kept by their versions."""
    sources = sorted(NODE.iterdir())

    def make(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            for source in sources:
                shutil.copy(source, scratch)
            for words in (["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"],
                          ["npx", "tsc", "--module", "commonjs", "--target", "es2022", "--esModuleInterop", "--skipLibCheck",
                           "index.ts", "profiling.ts"],
                          ["node", "-e", "require('pprof')"]):
                done = subprocess.run(words, cwd=scratch, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise peers.Absent(f"{' '.join(words[:2])}: {peers.last_line(done.stderr or done.stdout)}")
            shutil.copytree(scratch, path, symlinks=True)

    if not shutil.which("npm"):
        raise peers.Absent("there is no npm")
    return peers.kept("npm/checkout", sources, make)


def main():
    try:
        program = install()
    except peers.Absent as why:
        skip(f"npm pprof: {why}")
    with KilnServer() as server:
        run("node", program / "index.js", cwd=server.folder, env=environment(ENABLE_PROFILING="1"), timeout=120)
        profiles = server.folder / "profiles"
        files = sorted(profiles.glob("*.pb.gz"))
        for file in files:
            (profiles / file.name.replace(".pb.gz", ".json")).write_text(json.dumps(METADATA))
        wall = sum(json.loads(kiln("top", file, "--json", "-n", "0", "--sample-type", "wall"))["total"]
                   for file in files if file.name.startswith("cpu-"))
        kiln("push", "--server", address(server), profiles)

        answer = query(server, 'wall:wall:microseconds{service_name="checkout"}', limit=0)
        check("there is something", wall > 0)
        equal("what Node measured is what Kiln has", answer["total"], wall)
        equal("the function that parses again and again is on top", answer["top"]["rows"][0]["name"], "applyDiscounts")
        names = set(ask(server, "/api/v1/labels", query='{service_name="checkout"}')["labels"])
        for key, value in METADATA.items():
            found = query(server, f'wall:wall:microseconds{{"{key}"="{value}"}}', limit=0)
            equal(f"found again by {key}", (found["total"], shares(found)), (wall, shares(answer)))
            equal(f"and not by another {key}", profiles_of(server, f'wall:wall:microseconds{{"{key}"="other"}}'), 0)
            if key != "service.name":
                check(f"{key} is among the labels", key in names, names)
        heap = query(server, 'memory:space:bytes{service_name="checkout"}')
        check("so is the heap", heap["total"] > 0, heap)
    finish()


if __name__ == "__main__":
    main()
