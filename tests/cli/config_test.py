#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/kiln.yaml, which `kiln config --example` prints: it has every key, and every default is the real one."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN", str(ROOT / "build/kiln"))
EXAMPLE = (ROOT / "packaging/kiln.yaml").read_text()
TABLES = {"top_fields": "", "server_fields": "server.", "tls_fields": "server.tls.", "limit_fields": "server.limits.",
          "store_fields": "store.", "query_fields": "query."}
OF_OTHERS = {"agent", "watch"}


def kiln(*words, **more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    return subprocess.run([KILN, *words], capture_output=True, text=True, check=True, env=environment, **more).stdout


def settings(text):
    """{key: (value, source)} that hold with a file of this text."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        held = json.loads(kiln("config", "--json", "--config", file.name, "--data-dir", "/d", "--memory-limit", "512M"))
    return {one["key"]: (one["value"], one["source"]) for one in held["settings"]}


def known_keys():
    """Of the tables in the sources."""
    source = (ROOT / "src/cli/settings.c").read_text()
    for table, prefix in TABLES.items():
        body = re.search(rf"{table}\[\] = {{(.*?)\n}};", source, re.S).group(1)
        for key, kind in re.findall(r'FIELD\("(\w+)", (\w+)', body):
            if prefix + key not in OF_OTHERS:
                yield prefix + key, kind


def example_keys():
    """As indentation nests them; commented ones too."""
    nest = []
    for line in EXAMPLE.splitlines():
        found = re.match(r"( *)#?([a-z_]+):(?: |$)", line)
        if found:
            nest = [*nest[:len(found.group(1)) // 2], found.group(2)]
            yield ".".join(nest)


class Example(unittest.TestCase):
    def test_it_is_what_the_program_prints(self):
        self.assertEqual(kiln("config", "--example"), EXAMPLE)

    def test_it_has_every_key_once(self):
        keys = list(example_keys())
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(set(keys), {key for key, _ in known_keys()})

    def test_as_it_stands_it_says_nothing(self):
        self.assertEqual({source for _, source in settings(EXAMPLE).values()} - {"option"}, {"default"})

    def test_its_defaults_are_the_real_ones(self):
        told = re.sub(r"^( *)#([a-z_]+:)", r"\1\2", EXAMPLE, flags=re.M)
        self.assertNotEqual(told, EXAMPLE)
        held, default = settings(told), settings("")
        self.assertEqual({key: value for key, (value, _) in held.items()},
                         {key: value for key, (value, _) in default.items()})
        unsaid = [key for key, (_, source) in held.items() if source == "default"]
        self.assertEqual(unsaid, [], "defaults that the example does not show")


if __name__ == "__main__":
    unittest.main()
