#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: debian.py [12] [13]

Builds the Debian packages of HEAD in a root of each release (both, unless one is named) and runs lintian there.  Then boots
systemd in a second, minimal root and installs, upgrades, removes and purges them as users do; and once without systemd.

Needs root, debootstrap, a cgroup2 hierarchy and the network.  KILN_ROOT_CACHE names a folder that keeps the minimal roots
(SUITE.tar, as `tools/fresh-check --cache` does); the environment's proxies and the certificate authorities in
/usr/local/share/ca-certificates are passed on.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from checks import check, exit_code  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMMIT = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
SUITES = {"12": "bookworm", "13": "trixie"}
PACKAGES = ("kiln", "kiln-agent", "libkiln0")
ALL_PACKAGES = PACKAGES + ("libkiln-dev", "kiln-dbgsym", "libkiln0-dbgsym")
WAIT_S = 60  # for a service that starts, and for a profile that arrives

# Before the root is entered: what a machine has, and a root file system of its own.
MOUNTS = r"""
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
mount -t proc proc proc
mount -t sysfs sysfs sys 2>/dev/null || mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/lock
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
"""
# Its first process: a command, or systemd in a network of its own.
COMMAND = MOUNTS + 'exec bash -c "$COMMAND"'
BOOT = r"""
mkdir -p "$CGROUP"
echo $$ >"$CGROUP/cgroup.procs"
export MOUNTS
exec unshare --cgroup bash -c "$MOUNTS"'
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tracefs tracefs sys/kernel/tracing
hostname debian
ip link set lo up 2>/dev/null || true
exec env -i container=kiln PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init'
"""
READY = "exec 3<>/dev/tcp/127.0.0.1/4040 && printf 'GET / HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && head -1 <&3 | grep -q ' 200'"


def environment(root, **more):
    passed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {**passed, "ROOT": str(root), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
            "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8",
            "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt", **more}


def inside(root, command, *namespaces):
    """Runs a command in the root, with nothing of it left behind; returns status and output."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", *namespaces, "bash", "-c", COMMAND],
                          env=environment(root, COMMAND=command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def must(what, result):
    status, output = result
    check(what, status == 0, output[-2000:])
    if status:
        sys.exit(exit_code())
    return output


def make_root(suite, root):
    cache = os.environ.get("KILN_ROOT_CACHE")
    bare = pathlib.Path(cache, f"{suite}.tar") if cache else None
    root.mkdir()
    if bare and bare.exists():
        subprocess.run(["tar", "-xpf", bare, "-C", root], check=True)
    else:
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root], check=True,
                       stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    own = pathlib.Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)


def build(root, debs):
    """make deb, of the sources as a release has them."""
    archive = subprocess.Popen(["git", "-C", SOURCE, "archive", COMMIT], stdout=subprocess.PIPE)
    (root / "src").mkdir()
    subprocess.run(["tar", "-xf", "-", "-C", root / "src"], stdin=archive.stdout, check=True)
    must("tools are installed", inside(root, "apt-get update && apt-get install -y make lintian ca-certificates && update-ca-certificates"))
    must("make deb", inside(root, "cd /src && make deb"))
    must("lintian has no error and no warning", inside(root, "cd /src/build/deb && lintian --fail-on error,warning --allow-root *.changes"))
    names = {path.name.split("_")[0]: path for path in (root / "src/build/deb").glob("*.deb")}
    check("the packages", sorted(names) == sorted(ALL_PACKAGES), sorted(names))
    check("nothing else appears in the sources",
          not (set(os.listdir(root / "src")) - set(os.listdir(SOURCE)) - {"build"}), os.listdir(root / "src"))
    debs.mkdir()
    return {name: pathlib.Path(shutil.copy(path, debs)) for name, path in names.items()}


def check_contents(root, built):
    """What lintian does not look at."""
    fields = {name: subprocess.run(["dpkg-deb", "-f", path], check=True, capture_output=True, text=True).stdout for name, path in built.items()}
    check("the agent wants the program of its own version", re.search(r"^Depends:.*kiln \(= ", fields["kiln-agent"], re.M), fields["kiln-agent"])
    must("the header and the libraries serve a program", inside(root, """cd /tmp && apt-get install -y /src/build/deb/libkiln0_* /src/build/deb/libkiln-dev_* &&
        printf '#include <kiln.h>\\nint main(void) { return kiln_context_publish((struct kiln_attribute[]){{"service.name", "p"}}, 1); }' >p.c &&
        for name in kiln kiln-static; do cc -o p p.c $(pkg-config --cflags --libs $name) && ./p || exit 1; done"""))
    folder = built["kiln"].parent / "unpacked"
    for name in PACKAGES:
        subprocess.run(["dpkg-deb", "-x", built[name], folder], check=True)
    for path in [folder / "usr/bin/kiln", *folder.glob("usr/lib/*/libkiln.so.*.*")]:
        sections = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
        check(f"{path.name} is stripped", ".debug_info" not in sections and ".symtab" not in sections)
        check(f"{path.name} has no file capabilities", not os.listxattr(path))
        hardened = subprocess.run([SOURCE / "tools/check-hardened", path], capture_output=True, text=True, check=False)
        check(f"{path.name} is hardened", hardened.returncode == 0, hardened.stdout)
    shutil.rmtree(folder)


def repack(built, version, settings, folder):
    """The packages with another version, and other settings in kiln.yaml: what an older release had."""
    folder.mkdir()
    for name in PACKAGES:
        tree = folder / name
        subprocess.run(["dpkg-deb", "-R", built[name], tree], check=True)
        control = tree / "DEBIAN/control"
        now = re.search(r"^Version: (.*)$", control.read_text(), re.M)[1]
        control.write_text(control.read_text().replace(now, version))
        if name == "kiln":
            (tree / "etc/kiln/kiln.yaml").write_text(settings)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, folder / f"{name}.deb"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)


class Machine:
    """A root whose systemd runs."""

    def __init__(self, root):
        hybrid = pathlib.Path("/sys/fs/cgroup/unified")
        self.cgroup = (hybrid if hybrid.is_dir() else hybrid.parent) / f"kiln-debian-{os.getpid()}"
        self.outer = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child", "bash", "-c", BOOT],
            env=environment(root, MOUNTS=MOUNTS, CGROUP=str(self.cgroup)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.wait("systemd runs", "systemctl is-system-running | grep -qE 'running|degraded'")

    def init(self):
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text().split()
        return children[0] if children else "0"

    def run(self, command):
        done = subprocess.run(["nsenter", "-t", self.init(), "-a", "bash", "-c", f"cd /; {command}"], env=environment("/"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout

    def wait(self, what, command):
        end = time.monotonic() + WAIT_S
        while self.run(command)[0] and time.monotonic() < end:
            time.sleep(0.2)
        check(what, self.run(command)[0] == 0, self.run("journalctl -b -n 40 -o cat -u kiln -u kiln-agent --no-pager")[1])

    def close(self):
        self.outer.kill()
        self.outer.wait()
        for _ in range(100):
            with contextlib.suppress(OSError):
                for folder, _, _ in os.walk(self.cgroup, topdown=False):
                    os.rmdir(folder)
                return
            time.sleep(0.1)


def left_of(root):
    """Paths that have kiln in their names, the packages themselves aside."""
    found = subprocess.run(["find", root, "-xdev", "-name", "*kiln*", "-not", "-path", f"{root}/debs*", "-prune", "-print"], check=True,
                           capture_output=True, text=True).stdout.split()
    return sorted(path[len(str(root)):] for path in found)


def check_without_systemd(root):
    """A container: `kiln` by hand is the server with the profiler."""
    begun = time.monotonic()
    must("without systemd: installs, and `kiln` answers", inside(root, f"""apt-get install -y --no-install-recommends /debs/new/kiln_*.deb || exit 1
        ip link set lo up; kiln & for n in $(seq 300); do ({READY}) 2>/dev/null && kill %1 && wait %1 && exit 0; sleep 0.1; done; exit 1""", "--net"))
    print(f"    from the package to the web UI: {time.monotonic() - begun:.1f} s", flush=True)
    check("its data are where a service has them", (root / "var/lib/kiln").is_dir())
    must("without systemd: purges", inside(root, "apt-get purge -y kiln"))
    check("purging leaves nothing", not left_of(root), left_of(root))


def check_life(root, machine):
    """Install, upgrade twice, remove, install again, purge."""
    settings = root / "etc/kiln/kiln.yaml"
    shipped = (SOURCE / "packaging/kiln.yaml").read_text()
    apt = "apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold"
    begun = time.monotonic()
    must("install", machine.run(f"{apt} /debs/oldest/*.deb"))
    machine.wait("the web UI answers", READY)
    print(f"    from the packages to the web UI: {time.monotonic() - begun:.1f} s", flush=True)
    check("the program knows its commit", COMMIT in machine.run("kiln version")[1], machine.run("kiln version"))
    for unit in ("kiln", "kiln-agent"):
        machine.wait(f"{unit} runs", f"systemctl is-active -q {unit} && systemctl is-enabled -q {unit}")
    machine.wait("the agent's profiles are in the server", "kiln query --services | grep -q '^systemd'")
    check("the agent names the kernel's functions", "have no names" not in machine.run("journalctl -b -o cat -u kiln-agent")[1])
    check("the server cannot profile the host a second time", "CapBnd:\t0000000000000000" in
          machine.run("cat /proc/$(systemctl show -P MainPID kiln)/status")[1])
    check("kiln run finds libkiln", "/libkiln.so.0'" in machine.run("kiln run --show -- ls")[1], machine.run("kiln run --show -- ls"))

    must("upgrade", machine.run(f"{apt} /debs/old/*.deb"))
    check("an upgrade replaces unchanged settings", settings.read_text() == shipped + "# old\n", settings.read_text()[-80:])
    settings.write_text(settings.read_text().replace("#retention: 14d", "retention: 33d"))
    before = machine.run("systemctl show -P MainPID kiln kiln-agent")[1].split()
    must("upgrade with changed settings", machine.run(f"{apt} /debs/new/kiln_*.deb /debs/new/kiln-agent_*.deb /debs/new/libkiln0_*.deb"))
    check("changed settings stay", "retention: 33d" in settings.read_text() and settings.with_name("kiln.yaml.dpkg-dist").read_text() == shipped)
    machine.wait("the server runs with them", f"{READY} && kiln config | grep -q 'retention.*33d'")
    after = machine.run("systemctl show -P MainPID kiln kiln-agent")[1].split()
    check("both services run the new program", len(after) == 2 and not set(before) & set(after) and "0" not in after, (before, after))
    machine.wait("data are still there", "kiln query --services | grep -q '^systemd'")

    must("remove", machine.run("apt-get remove -y kiln kiln-agent libkiln0"))
    check("no process stays", machine.run("grep -lx kiln /proc/[0-9]*/comm 2>/dev/null")[1] == "")
    # dpkg keeps how to purge; Debian's tools for systemd keep which services were enabled.
    of_debian = ("/var/lib/dpkg/info/kiln", "/var/lib/systemd/deb-systemd-helper-", "/etc/systemd/system/")
    kept = [path for path in left_of(root) if not path.startswith(of_debian)]
    check("removing leaves data and settings alone",
          kept == ["/etc/kiln", "/var/cache/kiln-agent", "/var/cache/private/kiln-agent", "/var/lib/kiln", "/var/lib/kiln-agent",
                   "/var/lib/private/kiln", "/var/lib/private/kiln-agent"], kept)
    must("install again", machine.run(f"{apt} /debs/new/kiln_*.deb /debs/new/kiln-agent_*.deb"))
    machine.wait("with the data", f"{READY} && kiln query --services | grep -q '^systemd'")
    must("purge", machine.run("apt-get purge -y kiln kiln-agent libkiln0"))
    check("purging leaves nothing", not left_of(root), left_of(root))


def check_release(suite, folder):
    root = folder / "root"
    make_root(suite, root)
    make_root(suite, folder / "build")
    built = build(folder / "build", folder / "debs")
    check_contents(folder / "build", built)
    shutil.rmtree(folder / "build")
    shutil.copytree(folder / "debs", root / "debs/new")
    shipped = (SOURCE / "packaging/kiln.yaml").read_text()
    repack(built, "0.0.1-1", shipped + "# oldest\n", root / "debs/oldest")
    repack(built, "0.0.2-1", shipped + "# old\n", root / "debs/old")
    # What the packages depend on comes now: the machine has no network.
    must("systemd and libraries", inside(root, "apt-get update && apt-get install -y --no-install-recommends systemd-sysv dbus iproute2 && "
                                               "apt-get install -y --no-install-recommends --download-only /debs/new/kiln_*.deb"))
    check_without_systemd(root)
    machine = Machine(root)
    try:
        check_life(root, machine)
    finally:
        machine.close()


def main():
    releases = sys.argv[1:] or list(SUITES)
    missing = [tool for tool in ("debootstrap", "dpkg-deb", "unshare", "nsenter") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"skipped: needs root{''.join(', ' + tool for tool in missing)}")
        sys.exit(77)
    for release in releases:
        print(f"Debian {release}:", flush=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"kiln-debian{release}-", dir="/var/tmp"))
        try:
            check_release(SUITES[release], folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(exit_code())


if __name__ == "__main__":
    main()
