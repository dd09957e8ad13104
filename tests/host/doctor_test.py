#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln doctor`: all is tried out for real, so that what is taken away is missed, and nothing else; an agent's cost."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import Folder, Running, kiln_for_all, need_host, wait_for  # noqa: E402
from kiln_server import KilnServer  # noqa: E402


def doctor(kiln, *words, before=()):
    done = subprocess.run([*map(str, before), kiln, "doctor", "--json", *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=120, env={"PATH": os.environ["PATH"]})
    found = json.loads(done.stdout or "{}")
    return done.returncode, found, {one["name"]: one for one in found.get("findings", [])}


def as_nobody(*capabilities):
    named = ",".join(["-all", *(f"+{one}" for one in capabilities)])
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", named, "--ambient-caps", named]


def check_root(kiln, folder):
    code, found, by_name = doctor(kiln, "--offline", "--spool", folder / "spool")
    check("root can profile", code == 0 and found["works"], found)
    for name in ("btf", "programs", "clocks", "samples", "events", "sched_switch", "CAP_BPF", "CAP_SYSLOG", "kallsyms",
                 "symbol child", "spool"):
        check(f"{name} is there", by_name[name]["state"] == "ok", by_name[name])
    check("a sample came back", "this very process was sampled" in by_name["samples"]["found"], by_name["samples"])
    check("a name was found", "getpid" in by_name["symbol child"]["found"], by_name["symbol child"])
    check("nothing was sent", "receiver" not in by_name, by_name)
    check("and the spool was not made", not (folder / "spool").exists())


def check_less(kiln, folder):
    code, found, by_name = doctor(kiln, "--offline", before=as_nobody())
    check("nobody cannot profile", code == 1 and not found["works"], found)
    check("nothing could be loaded", by_name["programs"]["state"] == "missing" and by_name["samples"]["state"] == "unknown", by_name)
    for name in "CAP_BPF", "CAP_PERFMON":
        check(f"{name} is what is missing, with how to have it", by_name[name]["state"] == "missing" and by_name[name]["without"]
              and by_name[name]["grant"], by_name[name])
    check("names are found all the same", by_name["symbol child"]["state"] == "ok", by_name["symbol child"])
    check("one command grants it all", all(one in found["grant_all"] for one in ("bpf", "perfmon", "syslog")), found["grant_all"])
    code, found, by_name = doctor(kiln, "--offline", before=as_nobody("bpf", "perfmon"))
    check("two capabilities suffice", code == 0 and by_name["samples"]["state"] == "ok", found)
    check("without the third the kernel hides its addresses", by_name["CAP_SYSLOG"]["state"] == "less" and
          by_name["kallsyms"]["state"] == "less", by_name["kallsyms"])
    private = folder / "private"
    private.mkdir(mode=0o700)
    code, found, by_name = doctor(kiln, "--offline", "--spool", private / "spool", before=as_nobody("bpf", "perfmon"))
    check("a folder of somebody else is none", code == 0 and by_name["spool"]["state"] == "less", by_name["spool"])


def given(command, kiln):
    """What it finds when one has done as it told: in a container, and without setcap, by setpriv, which gives the same."""
    added = re.findall(r"--cap-add=(\w+)", command)
    if added:
        return doctor(kiln, "--offline", before=as_nobody(*added))
    if not shutil.which("setcap"):
        words = re.findall(r"cap_(\w+)", command)
        return doctor(kiln, "--offline", before=as_nobody(*words))
    for one in command.partition("sudo ")[2].split(" && sudo "):
        subprocess.run(one.split(), check=True)
    answer = doctor(kiln, "--offline", before=as_nobody())
    subprocess.run(["setcap", "-r", kiln], check=True)
    return answer


def check_grants(kiln):
    """What it tells to do helps: for one, beside what was there before, and for all."""
    _, told, _ = doctor(kiln, "--offline", before=as_nobody())
    code, found, after = given(told["grant_all"], kiln)
    bad = [one for one in after.values() if one["group"] == "privileges" and one["state"] != "ok"]
    check("the command for all capabilities grants all of them", code == 0 and found["works"] and not bad, (told["grant_all"], bad))
    _, _, by_name = doctor(kiln, "--offline", before=as_nobody("bpf", "perfmon"))
    check("zeros for addresses are for want of CAP_SYSLOG", by_name["kallsyms"]["grant"] == "grant CAP_SYSLOG", by_name["kallsyms"])
    check("a capability alone has no command, for it would take away the others", by_name["CAP_SYSLOG"]["grant"] == "grant CAP_SYSLOG",
          by_name["CAP_SYSLOG"])
    said = subprocess.run([*as_nobody(), kiln, "doctor", "--offline"], capture_output=True, text=True, check=False).stdout
    head = said.partition("\n\n")[0]
    check("the summary says what is missing and the one command", "missing  CAP_BPF, CAP_PERFMON" in head and
          "All capabilities at once: " in head and said.count("setcap") + said.count("--cap-add=bpf") == 1, said)
    _, _, by_name = doctor(kiln, "--offline", before=as_nobody("sys_admin"))
    check("CAP_SYS_ADMIN stands for two, and not for that", [by_name[name]["state"] for name in (
        "CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "kallsyms")] == ["ok", "ok", "less", "less"], by_name)


def check_receiver(kiln):
    _, _, by_name = doctor(kiln, "--endpoint", "http://127.0.0.1:9")
    check("nobody listens there", by_name["receiver"]["state"] == "less" and "spool" in by_name["receiver"]["without"],
          by_name["receiver"])
    with KilnServer() as server:
        for words in ((f"http://127.0.0.1:{server.otlp_grpc}", "--protocol", "grpc"),
                      (f"http://127.0.0.1:{server.otlp_http}", "--protocol", "http/protobuf"),
                      (f"http://127.0.0.1:{server.otlp_http}", "--protocol", "http/json")):
            _, _, by_name = doctor(kiln, "--endpoint", *words)
            check(f"a server takes {words[-1]}", by_name["receiver"]["state"] == "ok", by_name["receiver"])
        _, _, by_name = doctor(kiln, "--endpoint", f"http://127.0.0.1:{server.http}/elsewhere", "--protocol",
                               "http/protobuf")
        check("another address does not", by_name["receiver"]["state"] == "less", by_name["receiver"])


def check_losses(kiln, folder):
    """What was lost on the way is lost, however one asks; what nobody wanted is not."""
    words = "--endpoint", "http://127.0.0.1:9", "-F", "97", "--socket", folder / "agent.sock", "--spool-size", "1"
    with Running("chain") as (chain,), Agent(folder, *words, "-p", chain) as agent:
        wait_for(lambda: agent.metric('kiln_export_dropped_samples_total{reason="spool_full"}'))
        os.kill(chain, signal.SIGSTOP)
        sampled = []
        wait_for(lambda: sampled.append(agent.metric("kiln_host_samples_total")) or len(sampled) > 40 and sampled[-1] == sampled[-40]
                 and agent.metric('kiln_export_dropped_samples_total{reason="spool_full"}') >= sampled[-1])
        settings = folder / "kiln.yaml"
        settings.write_text(f"agent: {{listen: '127.0.0.1:{agent.http}'}}\n")
        told = [doctor(kiln, "--offline", "--config", settings, "--socket", socket)[1]["agent"] for socket in (folder / "agent.sock", "off")]
        check("an agent that can neither send nor spool has lost every sample", told[0]["lost"] == told[0]["samples"] > 0, told[0])
        check("on its socket and by its metrics alike", all(told[0][what] == told[1][what] for what in ("samples", "lost", "complete")), told)
        said = subprocess.run([kiln, "agents", "-s", f"unix:{folder}/agent.sock"], capture_output=True, text=True, check=False).stdout
        check("kiln agents says that it dropped all of them", said.splitlines()[1].split()[-5] == "100.0%", said)


def check_agent(kiln, folder):
    words = "--endpoint", "http://127.0.0.1:9", "-F", "97", "--socket", folder / "agent.sock"
    with Running("chain") as (chain,), Agent(folder, *words, "-p", chain) as agent:
        wait_for(lambda: agent.metric("kiln_host_samples_total") > 50)
        settings = folder / "kiln.yaml"
        settings.write_text(f"agent: {{listen: '127.0.0.1:{agent.http}'}}\n")
        for way, socket in ("on its socket", folder / "agent.sock"), ("by its metrics", "off"):
            _, found, _ = doctor(kiln, "--offline", "--config", settings, "--socket", socket)
            cost = found["agent"] or {}
            check(f"an agent tells what it costs, {way}", cost.get("frequency") == 97 and cost.get("memory_bytes", 0) > 1 << 20 and
                  cost.get("samples", 0) > 50 and 0 <= cost.get("cpu_cores", -1) < 2, found["agent"])
        said = subprocess.run([kiln, "doctor", "--offline", "--config", settings, "--socket", "off"], capture_output=True,
                              text=True, check=False)
        check("to people, too", "97 Hz; costs" in said.stdout, said.stdout)


need_host("chain")
if not shutil.which("setpriv"):
    print("skipped: no setpriv here")
    sys.exit(77)
with Folder() as scratch:
    program = kiln_for_all(scratch)
    check_root(program, scratch)
    check_less(program, scratch)
    check_grants(program)
    check_receiver(program)
    check_agent(program, scratch)
with Folder() as scratch:
    check_losses(kiln_for_all(scratch), scratch)
sys.exit(exit_code())
