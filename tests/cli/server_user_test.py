#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that root starts becomes an unprivileged user, and goes on as before: with the store of root, with files that only
root can read, and until its end."""
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from certificates import make_certificates  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

# `make asan` lets servers stay root for LeakSanitizer, which cannot trace those that give their privileges up.
SANITIZED = os.environ.pop("KILN_USER", None)
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"

UID = 61040
OTHER = 61041
WRITTEN_BY_0_1 = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data")) / "written-by-0.1/store.tar.gz"


def status(pid):
    """Of all threads: uids, capabilities in effect, no_new_privs, seccomp."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", path.read_text(), re.M))
        found.add((fields["Uid"].split()[0], fields["Uid"].split()[1], int(fields["CapEff"], 16), int(fields["CapPrm"], 16),
                   fields["NoNewPrivs"], fields["Seccomp"]))
    return found


def unprivileged(uid):
    return {(str(uid), str(uid), 0, 0, "1", "2")}


def children(pid):
    return [int(one) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def owners(folder):
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def ask(server, path, token=None, scheme="http", context=None):
    """The status of an answer, and its text."""
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{server.http}{path}",
                                     headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def push(server, name):
    now = int(time.time())
    url = f"http://127.0.0.1:{server.http}/ingest?name={name}&from={now - 10}&until={now}&format=folded"
    with urllib.request.urlopen(urllib.request.Request(url, data=b"main;work 5\n", method="POST"), timeout=60) as answer:
        return answer.status


def services(server):
    return {one["name"] for one in json.loads(ask(server, "/api/v1/services")[1])["services"]}


@unittest.skipIf(os.geteuid() != 0, "only root can become somebody else")
class ServerUser(unittest.TestCase):
    def test_every_thread_is_unprivileged_and_one_child_reads_files(self):
        with KilnServer() as server:
            pid = server.process.pid
            self.assertEqual(status(pid), unprivileged(UID), server.said())
            (child,) = children(pid)
            self.assertEqual((name_of(child), status(child)),
                             ("kiln-files", {("0", "0", 1 << 1 | 1 << 2, 1 << 1 | 1 << 2, "1", "2")}))
            self.assertEqual(push(server, "shop"), 200)
            self.assertEqual(owners(server.data), {UID})
            socket = (server.folder / "kiln.sock").lstat()
            self.assertEqual((socket.st_uid, socket.st_mode & 0o777), (UID, 0o660))
            self.assertEqual(server.stop(), 0, server.said())
            self.assertFalse((server.folder / "kiln.sock").exists(), "its socket is gone, as always")
            self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "and so is the child")

    def test_user_root_changes_nothing(self):
        with KilnServer("--user", "root") as server:
            (found,) = status(server.process.pid)
            self.assertEqual((found[0], found[4], found[5]), ("0", "0", "0"))
            self.assertEqual((owners(server.data), children(server.process.pid)), ({0}, []))

    def test_the_user_is_who_is_said_or_who_owns_the_directory(self):
        with KilnServer("--user", str(OTHER)) as server:
            self.assertEqual(status(server.process.pid), unprivileged(OTHER), server.said())
            self.assertEqual(server.stop(), 0)
            server.words = ()
            server.start()
            self.assertEqual(status(server.process.pid), unprivileged(OTHER), "who owns the directory")
        done = subprocess.run([KILN, "server", "--user", "no-such-user", "--data-dir", server.folder / "x", "--listen", "127.0.0.1:0",
                               "--otlp-grpc", "off", "--otlp-http", "off", "--socket", "off"], capture_output=True, text=True,
                              check=False, timeout=60)
        shutil.rmtree(server.folder, ignore_errors=True)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn('there is no user "no-such-user"', done.stderr)

    def test_a_store_of_root_is_given_away_once_and_nothing_that_it_links_to(self):
        with KilnServer("--user", "root") as server:
            push(server, "before")
            self.assertEqual(server.stop(), 0)
            outside = server.folder / "outside"
            outside.mkdir()
            (outside / "file").write_text("of root")
            (server.data / "aside").mkdir(exist_ok=True)
            (server.data / "aside" / "link").symlink_to(outside)
            (server.data / "mine").write_text("not Kiln's")
            server.words = ()
            server.start()
            self.assertEqual(services(server), {"before"}, server.said())
            self.assertEqual(status(server.process.pid), unprivileged(UID))
            self.assertEqual((owners(outside), owners(server.data / "mine")), ({0}, {0}))
            self.assertIn("have a new owner", server.said())
            self.assertEqual(server.stop(), 0)
            # what root adds later, by hand or with --user root
            (server.data / "aside" / "by-root").write_text("")
            (server.data / "aside" / "linked").hardlink_to(outside / "file")
            server.start()
            self.assertEqual((server.data / "aside" / "by-root").stat().st_uid, UID)
            self.assertEqual(owners(outside), {0}, "a hard link in a directory of others leads nowhere")

    def test_its_socket_and_its_log_may_be_in_the_directory(self):
        server = KilnServer()
        self.addCleanup(server.__exit__)
        server.data.mkdir()
        server.words += ("--socket", str(server.data / "kiln.sock"))
        server.log = server.data / "log"
        server.start()
        server.kill()  # the socket stays
        (server.data / "note").write_text("")  # with a store, other files are tolerated
        server.start()
        self.assertEqual(status(server.process.pid), unprivileged(UID))
        self.assertEqual(server.stop(), 0)

    def test_sockets_in_a_directory_of_root_are_removed(self):
        server = KilnServer()
        self.addCleanup(server.__exit__)
        (server.folder / "run").mkdir(mode=0o755)
        server.words += ("--socket", str(server.folder / "run" / "kiln.sock"))
        server.start()
        self.assertEqual({path.name for path in (server.folder / "run").iterdir()}, {"kiln.sock", "otlp.sock"}, server.said())
        self.assertEqual(server.stop(), 0)
        self.assertEqual(list((server.folder / "run").iterdir()), [])

    def test_a_directory_that_is_not_a_stores_is_not_given_away(self):
        for mode, names in ((0o755, ["Makefile"]), (0o1777, ["wal", "somebody-elses"])):
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, mode)
                for name in names:
                    (pathlib.Path(folder) / name).write_text("")
                done = subprocess.run([KILN, "server", "--data-dir", folder, "--listen", "127.0.0.1:0", "--otlp-grpc", "off",
                                       "--otlp-http", "off", "--socket", "off"], capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual(done.returncode, 4, done)
                self.assertIn(f"other files than Kiln's ({names[-1]})", done.stderr)
                self.assertIn("--user root", done.stderr)
                self.assertEqual(os.stat(folder).st_uid, 0)

    def test_tokens_and_rules_that_only_root_can_read_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder:  # 0700, as its files
            tokens, rules = (pathlib.Path(folder) / name for name in ("tokens.yaml", "rules.yaml"))
            tokens.write_text("- {name: a, token: the-first-one, access: admin}\n")
            rules.write_text("[]\n")
            for path in (tokens, rules):
                path.chmod(0o600)
            with KilnServer("--tokens", str(tokens), "--redact", str(rules)) as server:
                self.assertEqual(ask(server, "/api/v1/services", "the-first-one")[0], 200, server.said())
                fresh = pathlib.Path(folder) / "fresh"
                fresh.write_text("- {name: a, token: the-second-one, access: admin}\n")
                fresh.chmod(0o600)
                fresh.rename(tokens)
                self.assertTrue(wait_for(lambda: ask(server, "/api/v1/services", "the-second-one")[0] == 200), server.said())
                self.assertEqual(ask(server, "/api/v1/services", "the-first-one")[0], 401)
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(wait_for(lambda: "redaction was read again" in server.said()), server.said())
                # without the child: what was read stays, and the server too
                os.kill(children(server.process.pid)[0], signal.SIGKILL)
                self.assertTrue(wait_for(lambda: "kiln-files died" in server.said()), server.said())
                tokens.write_text("- {name: a, token: the-third-one, access: admin}\n")
                server.process.send_signal(signal.SIGHUP)
                self.assertTrue(wait_for(lambda: "redaction stays as it was" in server.said()), server.said())
                self.assertEqual(ask(server, "/api/v1/services", "the-second-one")[0], 200)
                self.assertEqual(server.stop(), 0, server.said())

    def test_certificates_that_only_root_can_read_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            make_certificates(folder)
            make_certificates(other)
            for path in pathlib.Path(folder).iterdir():
                path.chmod(0o600)
            first, second = (ssl.create_default_context(cafile=f"{place}/ca.pem") for place in (folder, other))
            with KilnServer("--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server.key") as server:
                self.assertEqual(ask(server, "/ready", scheme="https", context=first)[0], 200, server.said())
                for name in ("server.pem", "server.key"):
                    shutil.copy(f"{other}/{name}", f"{folder}/{name}")

                def is_new():
                    try:
                        return ask(server, "/ready", scheme="https", context=second)[0] == 200
                    except urllib.error.URLError:
                        return False
                self.assertTrue(wait_for(is_new), server.said())

    def test_killed_it_starts_again_with_all_that_it_acknowledged(self):
        with KilnServer() as server:
            push(server, "shop")
            server.kill()
            self.assertTrue(wait_for(lambda: (server.folder / "kiln.sock").exists()), "which the next start replaces")
            server.start()
            self.assertEqual(services(server), {"shop"})
            self.assertEqual(status(server.process.pid), unprivileged(UID))
            self.run_well("ready", "--server", f"unix:{server.folder}/kiln.sock")
            self.assertEqual(server.stop(), 0)
            self.run_well("store", "check", "--data-dir", server.data)

    def test_a_backup_into_a_directory_of_root_is_explained(self):
        with KilnServer() as server, tempfile.TemporaryDirectory() as folder:
            words = [KILN, "store", "backup", f"{folder}/copy", "--server", f"unix:{server.folder}/kiln.sock"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 4, done)
            self.assertIn(f"user {UID}, who writes the backup, has no access", done.stderr)
            os.chown(folder, UID, UID)
            self.run_well(*words[1:])

    def run_well(self, *words):
        done = subprocess.run([KILN, *words], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done)

    @unittest.skipUnless(WRITTEN_BY_0_1.exists(), "no store of 0.1 here")
    def test_a_store_of_0_1_opens(self):
        with KilnServer("--retention", "36500d") as server:
            self.assertEqual(server.stop(), 0)
            shutil.rmtree(server.data)
            with tarfile.open(WRITTEN_BY_0_1) as tar:
                tar.extractall(server.folder / "old", filter="data")
            (found,) = [path.parent for path in (server.folder / "old").rglob("store.json")]
            for path in (found, *found.rglob("*")):
                os.lchown(path, 0, 0)
            shutil.move(found, server.data)
            server.start()
            self.assertTrue(services(server), server.said())
            self.assertEqual(owners(server.data), {UID})

    def start_by(self, *words, kiln=KILN, preexec_fn=None, mode=0o700):
        """A server that another program starts, when it is ready; and the file that its log is in."""
        folder = pathlib.Path(tempfile.mkdtemp())
        folder.chmod(mode)
        self.addCleanup(shutil.rmtree, folder)
        ready, log = folder / "ready", folder / "log"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen([*words, kiln, "server", "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--otlp-grpc",
                                        "off", "--otlp-http", "off", "--socket", "off", "--ready-file", ready], stderr=out,
                                       preexec_fn=preexec_fn)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_for(lambda: ready.exists() or process.poll() is not None))
        return process, log

    def stop(self, process, log):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0, log.read_text())

    def test_without_the_capabilities_it_says_so_and_stays(self):
        kept = "-all,+dac_override,+dac_read_search,+fowner,+net_bind_service"
        process, log = self.start_by("setpriv", "--bounding-set", kept)
        self.assertIn("the server stays root", log.read_text())
        self.assertNotIn("were given up", log.read_text())
        (found,) = status(process.pid)
        self.assertEqual((found[0], found[4], found[5]), ("0", "1", "2"), found)
        self.stop(process, log)

    def test_a_program_that_only_root_can_execute_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "kiln"
            shutil.copy(KILN, copy)
            for mode, named in ((0o755, False), (0o700, True)):
                copy.chmod(mode)
                process, log = self.start_by(kiln=copy)
                self.assertEqual(f'chmod it to 755, or say --user root)" user={UID} path={copy}' in log.read_text(), named)
                self.stop(process, log)

    def test_closed_standard_files_are_not_those_of_the_store(self):
        process, log = self.start_by(preexec_fn=lambda: os.closerange(0, 3))
        for fd in range(3):
            self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{fd}"), "/dev/null")
        (child,) = children(process.pid)
        self.assertEqual(len(status(child)), 1, "the log was not written to its socket")
        self.stop(process, log)

    @unittest.skipIf(SANITIZED, "AddressSanitizer reads its options from /proc")
    def test_it_needs_no_proc(self):
        hide = ("unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh")
        if subprocess.run([*hide, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no namespace can be made here")
        process, log = self.start_by(*hide, mode=0o755)
        self.assertEqual(status(process.pid), unprivileged(UID), log.read_text())
        self.stop(process, log)

    def test_a_parent_that_ignores_its_children_changes_nothing(self):
        process, log = self.start_by(preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(status(process.pid), unprivileged(UID), log.read_text())
        self.stop(process, log)


if __name__ == "__main__":
    unittest.main()
