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
          "store_fields": "store.", "query_fields": "query.", "symbols_fields": "symbols.", "kiln_agent_fields": "agent.",
          "kiln_only_fields": "agent.only.", "kiln_except_fields": "agent.except.", "kiln_export_fields": "agent.export.",
          "kiln_spool_fields": "agent.spool.", "profiling_fields": "profiling.", "cpu_fields": "profiling.cpu."}
OF_OTHERS = {"watch"}


def kiln(*words, **more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KILN_", "OTEL_"))}
    return subprocess.run([KILN, *words], capture_output=True, text=True, check=True, env=environment, **more).stdout


def settings(text):
    """{key: (value, source)} that hold with a file of this text."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        held = json.loads(kiln("config", "--json", "--config", file.name, "--data-dir", "/d", "--spool", "/d/spool",
                               "--memory-limit", "2G"))
    return {one["key"]: (one["value"], one["source"]) for one in held["settings"]}


def known_keys():
    """Of the tables in the sources."""
    source = "".join((ROOT / f"src/cli/{name}.c").read_text() for name in ("settings", "host_settings", "agent_settings"))
    for table, prefix in TABLES.items():
        body = re.search(rf"\b{table}\[\w*\] = {{(.*?)\n}};", source, re.S).group(1)
        for key, kind in re.findall(r'(?:FIELD|KILN_SETTING)\("(\w+)", (\w+)', body):
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


class Host(unittest.TestCase):
    def refused(self, *words, text="", **variables):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            run = subprocess.run([KILN, "config", "--config", file.name, "--data-dir", "/d", *words], text=True,
                                 capture_output=True, env={"PATH": os.environ["PATH"], **variables})
        self.assertNotEqual(run.returncode, 0, run.stdout)
        return run.stderr.replace(file.name, "FILE")

    def test_an_interval_of_10ms_is_a_frequency_of_100(self):
        held = settings("profiling: {cpu: {enabled: true, interval: 10ms}, alloc: {enabled: true, interval: 524288}}")
        self.assertEqual(held["agent.frequency"], (100, "file"))

    def test_an_interval_beside_a_frequency_is_a_mistake_with_its_place(self):
        said = self.refused(text="agent: {frequency: 19}\nprofiling: {cpu: {interval: 10ms}}")
        self.assertIn("FILE: line 2, column 29: agent.frequency says already how often", said)

    def test_options_count_more_than_variables_and_these_more_than_the_file(self):
        text = "agent: {frequency: 1, export: {endpoint: 'http://a'}}"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            variables = {"OTEL_PROFILER_SAMPLING_FREQUENCY": "2", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://b",
                         "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT": "http://c"}

            def held(*words, **more):
                out = subprocess.run([KILN, "config", "--json", "--config", file.name, "--data-dir", "/d", *words],
                                     text=True, capture_output=True, check=True, env={**variables, **more}).stdout
                return {one["key"]: (one["value"], one.get("name")) for one in json.loads(out)["settings"]}

            self.assertEqual(held()["agent.frequency"], (2, "OTEL_PROFILER_SAMPLING_FREQUENCY"))
            self.assertEqual(held()["agent.export.endpoint"], ("http://c", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"))
            self.assertEqual(held(KILN_FREQUENCY="3")["agent.frequency"], (3, "KILN_FREQUENCY"))
            self.assertEqual(held("-F4", KILN_FREQUENCY="3")["agent.frequency"], (4, "--frequency"))

    def test_mistakes_are_named_where_they_stand(self):
        for text, said in (("agent: {window: 10s/1s}", 'line 1, column 17: "10s/1s" is no window'),
                           ("agent: {only: {pid: [7, x]}}", 'line 1, column 25: "x" is no process id'),
                           ("agent: {except: {comm: a-name-that-is-too-long}}", "no name of a thread"),
                           ("agent: {resource: [a]}", "must be a map of attributes"),
                           ("agent: {resource: a}", '"a" is no attribute'),
                           ("agent: {frequenzy: 3}", "did you mean frequency?")):
            self.assertIn(said, self.refused(text=text), text)

    def test_secrets_are_not_shown(self):
        self.assertNotIn("agent.export.headers", settings("agent: {export: {headers: {authorization: secret}}}"))

    def test_whom_to_sample_and_whom_not_to_exclude_each_other(self):
        self.assertIn("not both", self.refused("--comm", "a", "--exclude-comm", "b"))


def memory_group():
    """The memory control group of this process: its folder, and the file that limits a group in it."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
    # Groups of v2 that have processes cannot have groups with limits: the root can.
    return pathlib.Path("/sys/fs/cgroup"), "memory.max"


class ControlGroup(unittest.TestCase):
    """The default limits in a real control group, and in a group within it that has no limit of its own."""

    def setUp(self):
        parent, self.file = memory_group()
        self.group = parent / f"kiln-test-{os.getpid()}"
        try:
            self.group.mkdir()
            self.addCleanup(self.group.rmdir)
            if self.file == "memory.max":
                (self.group / "cgroup.subtree_control").write_text("+memory")
            self.child = self.group / "child"
            self.child.mkdir()
            self.addCleanup(self.child.rmdir)
            self.assertTrue((self.child / self.file).exists())
        except (OSError, AssertionError) as error:
            self.skipTest(f"no memory control group can be made here: {error}")

    def limits(self, limit, *words):
        (self.group / self.file).write_text(str(limit))
        join = f'echo $$ > {self.child}/cgroup.procs && exec "$0" "$@"'
        held = json.loads(subprocess.run(["sh", "-c", join, KILN, "config", "--json", "--data-dir", "/d", *words], check=True,
                                         capture_output=True, text=True, env={"PATH": os.environ["PATH"]}).stdout)
        held = {one["key"]: one["value"] for one in held["settings"]}
        return held["server.memory_limit"], held["agent.memory_limit"]

    def test_limits_the_defaults(self):
        if machine_memory() < 1 << 33:
            self.skipTest("the defaults on a machine of less than 8 GiB are others")
        for limit, server, host in ((128, 96, 16), (320, 240, 40), (512, 256, 64), (4096, 1024, 96), (1 << 20, 2048, 96)):
            self.assertEqual(self.limits(limit << 20), (server << 20, host << 20), f"{limit} MiB")


def machine_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    unittest.main()
