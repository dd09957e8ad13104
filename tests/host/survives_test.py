#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to an agent while it runs: it is killed, stopped for a while, the wall clock is set, it uses more than it
may.  Nothing that was spooled is lost, times are right, and it goes on."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent, spooled  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, Running, cpu_s, need_host, wait_for  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

HOUR, PROGRAMS_MANY = 3600, 1000
CLOCK = r"""
/* A wall clock that shows as many seconds more as a file says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(clock, t);
    if (clock != CLOCK_REALTIME)
        return r;
    FILE *file = fopen(getenv("CLOCK_FILE"), "re");
    long more = 0;
    if (file && fscanf(file, "%ld", &more) == 1)
        t->tv_sec += more;
    if (file)
        fclose(file);
    return r;
}
"""


def profiles(folder, request):
    """Begin and length of each profile of a request, in seconds."""
    path = folder / "one.otlp"
    path.write_bytes(request)
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    return [(int(profile["timeUnixNano"]) / 1e9, int(profile.get("durationNano", 0)) / 1e9)
            for resource in json.loads(done.stdout)["resourceProfiles"] for scope in resource["scopeProfiles"]
            for profile in scope["profiles"]]


def files(agent):
    return agent.metric("kiln_export_spool_files")


def check_killed(folder):
    port = free_port()
    words = "--endpoint", f"http://127.0.0.1:{port}", "-F", "97"
    with Running("chain"):
        with Agent(folder, *words) as agent:
            check("while the receiver is away, requests are on disk", wait_for(lambda: files(agent) >= 3), agent.said())
            agent.process.kill()
            agent.process.wait()
        before = len(spooled(agent))
        with Agent(folder, *words) as agent:
            check("after kill -9 another one finds all of them, and adds its own",
                  wait_for(lambda: files(agent) >= before + 2), agent.said())
            agent.process.kill()
            agent.process.wait()
        waiting = len(spooled(agent))
    with KilnServer("--otlp-grpc", f"127.0.0.1:{port}"), Agent(folder, *words) as agent:
        check(f"when the receiver is back, all {waiting} are sent", wait_for(
            lambda: agent.metric("kiln_export_sent_requests_total") >= waiting and files(agent) == 0), agent.said())
        dropped = agent.family("kiln_export_dropped_requests_total")
        check("and none is lost or refused, for whatever reason", len(dropped) >= 6 and not any(dropped.values()), dropped)


def check_stopped(folder):
    with Running("chain"), Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", "499") as agent:
        wait_for(lambda: files(agent) >= 1)
        began = time.time()
        agent.process.send_signal(signal.SIGSTOP)
        time.sleep(2)  # what this is about: nobody reads for so long
        agent.process.send_signal(signal.SIGCONT)
        stopped, had = time.time() - began, files(agent)
        before = agent.metric("kiln_host_samples_total")
        check("after SIGSTOP and SIGCONT samples come again", wait_for(
            lambda: files(agent) > had + 1 and agent.metric("kiln_host_samples_total") > before), agent.said())
        check("it stops in good order", agent.end() == 0, agent.said())
        found = [one for request in spooled(agent) for one in profiles(folder, request)]
        now = time.time()
        check("no profile is longer than it was away, or of another time", found and all(
            0 <= length < stopped + 60 and began - 60 < begin and begin + length < now + 1 for begin, length in found), found)


def taken_and_lost(agent):
    return agent.metric("kiln_host_samples_total"), agent.metric("kiln_host_lost_samples_total")


def check_full(folder):
    """Nobody reads until the kernel's buffer is full: what does not fit is counted."""
    hz, buffer = 499, 1 << 20  # the least that there is, and what this limit of memory leaves
    with Running("deep") as (deep,):
        os.kill(deep, signal.SIGSTOP)
        with Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", hz, "-p", deep, "--agent-memory-limit", "16M",
                   "--off-cpu", "off") as agent:
            before = cpu_s(deep)
            os.kill(deep, signal.SIGCONT)
            wait_for(lambda: agent.metric("kiln_host_samples_total") > 10)
            agent.process.send_signal(signal.SIGSTOP)
            stopped = cpu_s(deep)
            wait_for(lambda: cpu_s(deep) - stopped > 2 * buffer / (hz * 3000))  # stacks of 400 frames
            agent.process.send_signal(signal.SIGCONT)
            os.kill(deep, signal.SIGSTOP)
            due, seen = hz * (cpu_s(deep) - before), []
            wait_for(lambda: seen.append(taken_and_lost(agent)) or len(seen) > 40 and seen[-1] == seen[-40])
            taken, lost = seen[-1]
            # Where a machine shares its processors, ticks of what others had are missing.  A share p of all n ticks has a
            # sigma below sqrt(n).
            check(f"of {due:.0f} samples {taken:.0f} are taken and {lost:.0f} were lost", lost > 0 and taken > 10 and
                  0.5 * due < taken + lost < 1.03 * due + 5 * due ** 0.5, agent.said())


def check_clock(folder):
    if not shutil.which("cc"):
        print("not tried: a wall clock that is set: no compiler here")
        return
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c", "-ldl"], check=True)
    more, began, seen = folder / "more", time.time(), 0
    more.write_text("0")
    env = {"LD_PRELOAD": str(folder / "clock.so"), "CLOCK_FILE": str(more)}
    with Running("chain"), Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", "97", env=env) as agent:
        for offset in 0, HOUR, -HOUR, 0:
            more.write_text(str(offset))
            had = files(agent)
            seen += bool(wait_for(lambda: files(agent) >= had + 2))
        agent.end()
    took = time.time() - began
    check("requests go on through each jump of the wall clock", seen == 4, agent.said())
    found = [one for request in spooled(agent) for one in profiles(folder, request)]
    offsets = [round((begin - began) / HOUR) for begin, _ in found]
    check("each time is one that the clock showed", found and all(
        -2 < begin - began - offset * HOUR and begin + length - began - offset * HOUR < took + 2
        for (begin, length), offset in zip(found, offsets)), found)
    check("of all three hours", set(offsets) == {-1, 0, 1}, set(offsets))
    check("and no profile is as long as a jump", all(0 <= length < took + 1 for _, length in found), found)


def check_budget(folder):
    with Running("chain", "chain"), Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", "499", "--cpu-budget",
                                          "0.01%") as agent:
        check("above its budget of processor time it samples less often",
              wait_for(lambda: agent.metric("kiln_host_rate_hertz") < 499), agent.said())
        check("and says so", wait_for(lambda: "sampling less often" in agent.said()) and agent.metric(
            'kiln_host_throttled_total{reason="cpu"}') > 0 and agent.metric("kiln_host_lowered") > 0, agent.said())
        check("it knows what it uses", agent.metric("kiln_host_cpu_used_ratio") > agent.metric("kiln_host_cpu_budget_ratio") and
              0 < agent.metric("kiln_host_watched_bytes") < agent.metric("kiln_host_memory_limit_bytes"))
        agent.end()
        check("weights follow: each profile has the period of its rate", len({
            period for request in spooled(agent) for period in periods(folder, request)}) > 1)
    for word in "0%", "-1%", "1%%", "much":
        done = subprocess.run([KILN, "agent", "--cpu-budget", word, "--listen", "off", "--spool", "off"],
                              capture_output=True, text=True, check=False, timeout=60)
        check(f"{word} is no budget", done.returncode == 2 and "percentage of one processor" in done.stderr, done)


def own_bytes(agent):
    """Of the process, as anybody can see it."""
    rollup = pathlib.Path(f"/proc/{agent.process.pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss_Anon:\s*(\d+)", rollup, re.M)[1]) << 10


def all_bytes(agent):
    """With its buffers in the kernel: all but the tables."""
    return own_bytes(agent) + agent.metric("kiln_host_bpf_bytes") - agent.metric("kiln_host_unwind_bytes")


def storm(folder, agent):
    """Runs all of the programs; the most that the agent had meanwhile, and how often that was looked at."""
    peak = looks = 0
    with subprocess.Popen(["xargs", "-P", "8", "-I{}", "env", f"{folder}/program-{{}}", "0.002"], text=True,
                          stdin=subprocess.PIPE) as running:
        running.stdin.write("\n".join(map(str, range(PROGRAMS_MANY))))
        running.stdin.close()
        while running.poll() is None:
            peak, looks = max(peak, own_bytes(agent)), looks + 1
    check("all of the programs ran", running.returncode == 0)
    return peak, looks


def check_memory(folder):
    """Each program is another file, so that each has tables, names and mappings of its own.  The agent compares its memory with
    the limit once a second: an eighth is what it may take in between on a busy machine."""
    for number in range(PROGRAMS_MANY):
        shutil.copy(PROGRAMS / "chain", folder / f"program-{number}")
    limit = 16 << 20
    with Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", "199", "--unwind-memory", "1M", "--agent-memory-limit",
               limit) as agent:
        peak, looks = storm(folder, agent)
        check(f"while {PROGRAMS_MANY} different programs run it keeps to its limit: {peak} bytes, {looks} looks",
              looks > 10 and peak < limit + limit / 8, agent.said())
        check("and soon less, with its buffers in the kernel", wait_for(lambda: all_bytes(agent) < limit), (all_bytes(agent), agent.said()))
        check("and its tables have the size that they may have", agent.metric("kiln_host_unwind_used_bytes") <=
              agent.metric("kiln_host_unwind_bytes") <= 1 << 20)
        check("nothing had to be given up for that", agent.metric("kiln_host_stopped") == 0, agent.said())
        had = agent.metric("kiln_host_samples_total")
        with Running("chain"):
            check("samples still come", wait_for(lambda: agent.metric("kiln_host_samples_total") > had + 100), agent.said())
        agent.end()
        seen = {name for name in re.findall(rb"program-(\d+)", b"".join(spooled(agent))) if int(name) < PROGRAMS_MANY}
        check(f"{len(seen)} of {PROGRAMS_MANY} programs are there by name", len(seen) > PROGRAMS_MANY / 8, agent.said())


def periods(folder, request):
    path = folder / "one.otlp"
    path.write_bytes(request)
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    return {profile["period"] for resource in json.loads(done.stdout)["resourceProfiles"] for scope in resource["scopeProfiles"]
            for profile in scope["profiles"] if "period" in profile}


def main():
    need_host("chain", "deep")
    for part in (check_killed, check_stopped, check_full, check_clock, check_budget, check_memory):
        with Folder() as folder:
            part(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
