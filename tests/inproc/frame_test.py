#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libkiln as a guest: how it starts, where it stays away, what its host's children see of it, and that what was
sampled is in files when the program has ended."""
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from preload_kit import for_all  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
LIBKILN = os.environ.get("LIBKILN", "build/libkiln.so")
BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build"))
PROGRAMS = BUILD / "inproc"


def run(*command, preload=True, **variables):
    """What a command prints, on both ends, under the library; it has to end well."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "KILN_"))}
    variables = {"KILN_SOCKET": "/nowhere", "KILN_SEED": "1", "KILN_OFF_FILE": "/nowhere", "KILN_EXIT_MS": "20000", **variables}
    env = kept | {name: str(value) for name, value in variables.items()}
    if preload:
        env["LD_PRELOAD"] = LIBKILN
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def top(path, *options):
    return subprocess.run([KILN, "top", *options, str(path)], check=True, capture_output=True, text=True).stdout


class Frame(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def files(self, kind, service="*"):
        return sorted(self.folder.glob(f"kiln-{service}-{kind}-*.pb.gz"))

    def compile(self, name, *flags, source=SOURCES / "tests/inproc/programs/frame_asks.c"):
        program = self.folder / name
        subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", f"-I{SOURCES}/include", "-o", program, source, *flags],
                       check=True)
        return program

    @staticmethod
    def linked():
        library = pathlib.Path(LIBKILN).parent
        return "-Wl,--no-as-needed", f"-L{library}", "-lkiln", f"-Wl,-rpath,{library}"

    # ---- the thin thread ----

    def test_a_preloaded_program_leaves_files_that_name_its_functions(self):
        run(PROGRAMS / "thin", KILN_OUT_DIR=self.folder)
        memory, = self.files("memory", "thin")
        self.assertRegex(top(memory), r"thin_allocates\b(.|\n)*thin_allocates_less\b")
        self.assertNotIn("kiln_in_", top(memory))
        cpu, = self.files("process_cpu", "thin")
        self.assertIn("thin_computes", top(cpu).splitlines()[2])

    def test_what_is_still_in_use_is_told_at_the_end(self):
        run(PROGRAMS / "thin", KILN_OUT_DIR=self.folder, KILN_PROFILES="heap")
        memory, = self.files("memory", "thin")
        in_use = top(memory, "--sample-type", "inuse_space")
        self.assertIn("thin_allocates ", in_use)
        self.assertNotIn("thin_allocates_less", in_use)

    # ---- when it does not start ----

    def test_the_operator_can_forbid_it(self):
        for variables in ({"KILN_ENABLED": "0"}, {"ENABLE_PROFILING": "false"}, {"KILN_OFF_FILE": "/"},
                          {"OTEL_SDK_DISABLED": "true"}):
            said = run(PROGRAMS / "thin", KILN_OUT_DIR=self.folder, **variables)
            self.assertEqual(said, ("", ""), variables)
            self.assertEqual(self.files("*"), [], variables)

    def test_variables_that_make_no_sense_are_told_of_and_do_no_harm(self):
        wrong = {"KILN_CPU_HZ": "5000", "KILN_MAX_SAMPLES": "0", "KILN_ENABLED": "flase", "KILN_CPU_WINDOW_MS": "5",
                 "KILN_EXIT_MS": "soon", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:99999"}
        _, said = run(PROGRAMS / "thin", KILN_OUT_DIR=self.folder, **wrong)
        self.assertEqual(said.splitlines(), [
            "kiln: KILN_ENABLED is neither 1 nor 0, and is left out: flase",
            "kiln: KILN_CPU_HZ is 5000, and counts as 1000",
            "kiln: KILN_MAX_SAMPLES is 0, and is left out",
            "kiln: KILN_EXIT_MS is no number: soon",
            "kiln: CPU time is sampled always: cpu_window_ms and cpu_every_ms go together",
            'kiln: profiles are not sent: OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:99999" is no address: ports are 1 to 65535'])
        memory, = self.files("memory", "thin")
        self.assertIn("thin_allocates", top(memory))

    def test_what_became_standard_error_later_is_written_to_only_where_it_is_a_log(self):
        source = self.folder / "reopens.c"
        source.write_text("""
            #include <fcntl.h>
            #include <stdlib.h>
            #include <unistd.h>
            void *volatile block;
            int main(int n, char **words)
            {
                close(2);
                if (open(words[1], O_RDWR | O_CREAT | (n > 2 ? O_APPEND : 0), 0600) != 2)
                    return 1;
                for (int i = 0; i < 10000; i++)
                    block = malloc(5000);
                return 0;
            }""")
        program = self.compile("reopens", source=source)
        for words in (("data",), ("log", "append")):
            run(program, self.folder / words[0], *words[1:], KILN_OUT_DIR="/proc/nowhere")
        self.assertEqual((self.folder / "data").read_text(), "")
        self.assertRegex((self.folder / "log").read_text(), r"^kiln: profiles cannot be written to /proc/nowhere: .*\n$")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be somebody else")
    def test_without_a_thread_of_its_own_nothing_is_sampled_and_one_line_says_so(self):
        program, library = for_all(self.folder, PROGRAMS / "thin", LIBKILN)
        self.folder.chmod(0o777)
        _, said = run("setpriv", "--reuid=65534", "--clear-groups", "prlimit", "--nproc=1", "env", f"LD_PRELOAD={library}",
                      program, preload=False, KILN_OUT_DIR=self.folder)
        self.assertRegex(said, r"^kiln: nothing is sampled: no thread can be made for it: .*\n$")
        self.assertEqual(self.files("*"), [])

    def test_the_operators_file_stops_what_runs_and_lets_it_go_on(self):
        out, _ = run(PROGRAMS / "frame_forks", "switch", KILN_OFF_FILE=self.folder / "off")
        self.assertEqual(out, "well\n")

    def test_it_stands_aside_with_one_line_where_a_sanitizer_is(self):
        empty = self.folder / "empty.c"
        empty.write_text("int main(void) { return 0; }\n")
        for name in ("address", "thread"):
            program = self.compile(name, f"-fsanitize={name}", source=empty)
            # The sanitizer wants to be the first library, and says so: it is preloaded before.
            runtime = subprocess.run(["gcc", f"-print-file-name=lib{name[0]}san.so"], check=True, text=True,
                                     capture_output=True).stdout.strip()
            _, said = run("env", f"LD_PRELOAD={runtime} {LIBKILN}", program, preload=False, ASAN_OPTIONS="detect_leaks=0",
                          KILN_OUT_DIR=self.folder)
            self.assertRegex(said, rf"^kiln: stands aside: {name.title()}Sanitizer is in this program\n$")
        self.assertEqual(self.files("*"), [])

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_it_stands_aside_under_valgrind_unless_it_is_forced(self):
        program = self.compile("so", *self.linked())
        out, said = run("valgrind", "-q", "--tool=none", program, self.folder, preload=False)
        self.assertIn("start -1, again -1, enabled 0", out)
        self.assertIn("kiln: stands aside: this program runs under valgrind\n", said)
        out, _ = run("valgrind", "-q", "--tool=none", program, self.folder, preload=False, KILN_FORCE="1")
        self.assertIn("start 0, again -114, enabled 1", out)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_it_stands_aside_in_a_setuid_program_and_reads_no_variables_there(self):
        program = self.compile("setuid", BUILD / "libkiln.a", "-pthread", "-lm")
        program.chmod(stat.S_ISUID | 0o755)
        self.folder.chmod(0o755)
        out, said = run("setpriv", "--reuid=65534", "--clear-groups", program, self.folder, preload=False,
                        KILN_OUT_DIR=self.folder, KILN_FORCE="1")
        self.assertIn("start -1, again -1, enabled 0", out)
        self.assertIn("stands aside: this program has more privileges than its user", said)
        self.assertEqual(self.files("*"), [])

    # ---- the interface ----

    def check_asks(self, program, preload):
        out, _ = run(program, self.folder, preload=preload)
        # The receiver that was named is not there: files are.
        self.assertEqual(out, "start 0, again -114, enabled 1\nflush -2\n")
        memory = self.files("memory", "asks")[0]
        told = top(memory)
        self.assertIn("allocates_at_first", told)
        self.assertIn("allocates_with_a_label", told)
        self.assertNotIn("allocates_in_a_pause", told)
        self.assertNotIn("kiln_in_", told)
        labelled = top(memory, "--label", "order=large")
        self.assertIn("allocates_with_a_label", labelled)
        self.assertNotIn("allocates_at_first", labelled)
        for path in self.folder.glob("kiln-*"):
            path.unlink()

    def test_programs_start_pause_and_stop_it(self):
        self.check_asks(PROGRAMS / "frame_asks", True)
        self.check_asks(self.compile("so", *self.linked()), False)
        self.check_asks(self.compile("a", BUILD / "libkiln.a", "-pthread", "-lm"), False)

    def test_behind_the_c_library_it_samples_what_it_can_and_says_so(self):
        library, program = self.folder / "library.c", self.folder / "program.c"
        library.write_text("#include <kiln.h>\nint begins(void) { return kiln_start(0); }\n"
                           "int flushes(void) { return kiln_flush(60000); }\n")
        program.write_text("""
            #include <dlfcn.h>
            #include <stdio.h>
            int main(int n, char **words)
            {
                void *library = dlopen(words[1], RTLD_NOW);
                int (*begins)(void) = (int (*)(void))dlsym(library, "begins");
                int (*flushes)(void) = (int (*)(void))dlsym(library, "flushes");

                printf("start %d\\n", begins());
                for (volatile unsigned long i = 0; i < 100000000; i++)
                    ;
                printf("flush %d\\n", flushes());
            }""")
        shared = self.compile("library.so", "-shared", "-fPIC", *self.linked(), source=library)
        # Opened by the program, and needed by what it needs: the C library is first in both.
        opened = self.compile("opened", "-ldl", source=program)
        needed = self.compile("needed", "-ldl", "-Wl,--no-as-needed", shared, f"-Wl,-rpath,{self.folder}", source=program)
        for ends in (opened, needed):
            out, said = run(ends, shared, preload=False, KILN_OUT_DIR=self.folder, KILN_SOCKET="off")
            self.assertEqual(out, "start 0\nflush 0\n")
            self.assertRegex(said, r"^kiln: memory, locks and waits are not seen: .*\n$")
            cpu = self.files("process_cpu", ends.name)
            self.assertTrue(any("main" in top(path) for path in cpu), cpu)
            self.assertEqual(self.files("memory", ends.name), [])
            out, said = run(ends, shared, preload=False, KILN_PROFILES="cpu", KILN_OUT_DIR=self.folder, KILN_SOCKET="off")
            self.assertEqual((out, said), ("start 0\nflush 0\n", ""))

    def test_linked_but_not_started_it_does_nothing(self):
        program = self.compile("idle", *self.linked(), source=SOURCES / "tests/inproc/programs/thin.c")
        self.assertEqual(run(program, preload=False, KILN_OUT_DIR=self.folder, KILN_LOG="1"), ("", ""))
        self.assertEqual(self.files("*"), [])

    # ---- children ----

    def test_programs_that_are_executed_do_without_it_unless_they_are_asked_for(self):
        shown = run("sh", "-c", "env; echo $LD_PRELOAD", KILN_PROFILES="none")[0]
        self.assertNotIn("LD_PRELOAD", shown)
        shown = run("sh", "-c", "env", KILN_PROFILES="none", KILN_FOLLOW="1")[0]
        self.assertIn(f"LD_PRELOAD={LIBKILN}\n", shown)

    def test_a_child_that_lives_on_is_profiled_too(self):
        run(PROGRAMS / "frame_forks", "lives", KILN_OUT_DIR=self.folder, KILN_ALLOC_BYTES="64KiB", KILN_PROFILES="alloc,cpu")
        told = [top(path) for path in self.files("memory")]
        self.assertTrue(any("child_allocates" in text for text in told), told)

    def test_a_daemon_is_profiled(self):
        out = self.folder / "daemon"
        run(PROGRAMS / "frame_forks", "daemon", KILN_OUT_DIR=out, KILN_ALLOC_BYTES="64KiB", KILN_PROFILES="alloc")
        # Its output is a pipe that run() has read to its end: it has ended.
        self.assertTrue(any("child_allocates" in top(path) for path in out.glob("*-memory-*.pb.gz")))

    def test_forks_of_every_kind_among_threads_end_well(self):
        out, said = run(PROGRAMS / "frame_forks", "storm", KILN_OUT_DIR=self.folder, KILN_ALLOC_BYTES="16KiB",
                        KILN_LOCK_NS="100", KILN_WAIT_NS="100000")
        self.assertEqual((out, said), ("well\n", ""))
        self.assertTrue(self.files("memory", "frame_forks"))

    # ---- the end ----

    def test_a_receiver_that_never_answers_does_not_keep_a_program(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            run(PROGRAMS / "thin", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.getsockname()[1]}",
                KILN_EXIT_MS="200")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
