# SPDX-License-Identifier: Apache-2.0
"""What is in the profiles that were sent: complete stacks, frames with names, and how much of the processors' time."""
import contextlib
import os
import pathlib
import re
import time

import profilers

FAILED = "[incomplete: "  # how Kiln ends a stack that is not complete
ABORTED = "abort-marker"  # the type of a frame by which OpenTelemetry's says so
NO_NAME = re.compile(r"(.*\+)?0x[0-9a-f]+|\[jit\]|")
NO_FUNCTION = re.compile(r"0x[0-9a-f]+|\[jit\]|")  # else a stripped one at least, by where it begins: FILE+0xBEGIN


class Frames:
    """Frames by the number of a stack: (name, type)."""

    def __init__(self, dictionary):
        self.d = dictionary

    def text(self, index):
        return self.d["stringTable"][index]

    def frame(self, index):
        location = self.d["locationTable"][index]
        lines = location.get("lines", [])
        name = self.text(self.d["functionTable"][lines[0].get("functionIndex", 0)].get("nameStrindex", 0)) if lines else ""
        kinds = [attribute["value"].get("stringValue", "") for attribute in
                 (self.d["attributeTable"][a] for a in location.get("attributeIndices", []))
                 if self.text(attribute.get("keyStrindex", 0)) == "profile.frame.type"]
        return name, kinds[0] if kinds else ""

    def of(self, sample):
        return [self.frame(i) for i in self.d["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", [])]


def samples_of(profile):
    for resource in profile.get("resourceProfiles", []):
        for scope in resource.get("scopeProfiles", []):
            for one in scope.get("profiles", []):
                yield from one.get("samples", [])


def busy_s():
    """Seconds that programs, the kernel and interrupts had of all processors since the system started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def figures(profile, busy):
    frames, total, complete, named, known, looked_at = Frames(profile["dictionary"]), 0, 0, 0, 0, 0
    for sample in samples_of(profile):
        n = sum(int(v) for v in sample.get("values", [])) or len(sample.get("timestampsUnixNano", []))
        stack = frames.of(sample)
        failed = any(name.startswith(FAILED) or kind == ABORTED for name, kind in stack)
        real = [name for name, kind in stack if not name.startswith(FAILED) and kind != ABORTED]
        total, complete, looked_at = total + n, complete + n * (not failed), looked_at + n * len(real)
        named += n * sum(not NO_NAME.fullmatch(name) for name in real)
        known += n * sum(not NO_FUNCTION.fullmatch(name) for name in real)
    return {"complete stacks, %": 100 * complete / max(total, 1), "frames with names, %": 100 * named / max(looked_at, 1),
            "  or with a function at least, %": 100 * known / max(looked_at, 1),
            "frames a stack": looked_at / max(total, 1), "seconds of CPU seen": total / 1e9,
            "  of those there were, %": 100 * total / 1e9 / busy}


def seen(kinds, folder, seconds):
    """name -> figures"""
    with contextlib.ExitStack() as stack:
        stack.enter_context(profilers.running(profilers.load(folder), folder))
        senders = [kind for kind in kinds if issubclass(kind, profilers.Sender)]
        started = [stack.enter_context(kind(folder, *(["-send-error-frames"] * (kind is profilers.OpenTelemetry)))) for kind in senders]
        began = busy_s()
        time.sleep(seconds)
        busy = busy_s() - began
        for profiler in started:
            profiler.ask_to_end()
        for profiler in started:  # one that sends every minute has most of it still to send
            profiler.end()
        return {profiler.name: figures(profiler.profile(), busy) for profiler in started}
