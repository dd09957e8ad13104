# SPDX-License-Identifier: Apache-2.0
"""Reads the stacks of the invented shop, tests/support/shop_stacks/SERVICE.txt.

    where KEY KIND FILE [MODULE]       where frames are: profile.frame.type, source file, binary ("-": none)
    route FUNCTION TEXT                what http.route samples below a function have
    [cpu 2.44 3.42]                    cores with the old version and with the new one; below it the call tree:
    thread NAME                        the thread of the trees that follow
      name | KEY [i|?] | 40 120        depth by indent; what it weighs itself, old and new; i: inlined, ?: no symbol
      a › b | KEY | 1 1                a chain of calls, in one line
      %send 26 28                      a kernel path with such a weight
    [waiting]                          threads that wait below a function of the tree (or A>B: in B, below A), old and new
    [alloc 34M 61M 96]                 bytes a second and bytes an object, spread by the weights below
    [inuse 1.7G 1.9G 210] [mutex] [goroutines] [lag]     likewise
"""
import pathlib
import re
import zlib

HERE = pathlib.Path(__file__).resolve().parent
STACKS, SOURCES = HERE / "shop_stacks", HERE / "shop_source"
LIB = "/usr/lib/x86_64-linux-gnu/"
COMMON = {"kernel": ("kernel", "", "vmlinux"), "libc": ("native", "", LIB + "libc.so.6"), "ssl": ("native", "", LIB + "libssl.so.3"),
          "crypto": ("native", "", LIB + "libcrypto.so.3"), "zlib": ("native", "", LIB + "libz.so.1.3.1")}
KERNEL_PATHS = {
    "alloc": (("operator new", "libc", .2), ("_int_malloc", "libc", .55), ("do_brk_flags", "kernel", .25)),
    "fault": (("asm_exc_page_fault", "kernel", .25), ("handle_mm_fault", "kernel", .35), ("clear_page_erms", "kernel", .4)),
    "sys": (("do_syscall_64", "kernel", 1),),
    "send": (("write", "libc", .04), ("do_syscall_64", "kernel", .1), ("tcp_sendmsg", "kernel", .32), ("tcp_write_xmit", "kernel", .22),
             ("ip_queue_xmit", "kernel", .15), ("dev_hard_start_xmit", "kernel", .17)),
    "recv": (("read", "libc", .06), ("do_syscall_64", "kernel", .12), ("tcp_recvmsg", "kernel", .5),
             ("skb_copy_datagram_iter", "kernel", .32)),
    "scav": (("v8::internal::Heap::CollectGarbage", "v8", .08), ("v8::internal::Scavenger::Collect", "v8", .62),
             ("asm_exc_page_fault", "kernel", .1), ("clear_page_erms", "kernel", .2)),
}
WRITTEN = {"growslice": "append"}  # how a call of the runtime stands in the source


def number(text):
    """Something that looks like chance and is always the same."""
    return zlib.crc32(text.encode())


def quantity(text):
    return float(text[:-1]) * {"M": 1e6, "G": 1e9}[text[-1]] if text[-1] in "MG" else float(text)


class Place:
    """A function: where it is, and on which lines it does what."""
    def __init__(self, name, where, flags):
        self.name, (self.kind, self.file, self.module) = name, where
        self.inlined, self.nameless = "i" in flags, "?" in flags
        self.short = re.split(r"[.:#/)]", name.split("<")[0])[-1]
        self.first, self.body = self.look() or (10 + number(name) % 300, [])

    def is_named(self, text):
        return self.name == text or self.name.endswith("." + text)

    def look(self):
        """Where it is defined in the shop's own sources, and the lines of its body."""
        path = SOURCES / self.file.removeprefix("/srv/")
        if not self.file.startswith("/srv/") or not path.is_file():
            return None
        lines = path.read_text().splitlines()
        begins = re.compile(r"(function|func|def|void|Session|const Route \*)\b.*\b" + re.escape(self.short) + r"\(")
        for at, line in enumerate(lines):
            if not re.match(r"(export |async |\s)*" + begins.pattern, line):
                continue
            indent, body = len(line) - len(line.lstrip()), []
            for more, text in enumerate(lines[at + 1:], at + 2):
                if text.strip() and len(text) - len(text.lstrip()) <= indent and text.strip() != "{":
                    break
                if re.search(r"\w", text):
                    body.append((more, text))
            return at + 1, body
        return None

    def lines_itself(self):
        """Lines on which it spends time itself, each with its share."""
        if not self.body:
            return [(self.first + 1 + number(self.name) % 9, 1.0)]
        chosen = sorted(self.body, key=lambda line: number(line[1] + self.name))[:3]
        return [(line[0], share) for line, share in zip(chosen, (.6, .3, .1))] if len(chosen) == 3 else [(chosen[0][0], 1.0)]

    def line_of_call(self, callee):
        if not self.body:
            return self.first + 1 + number(self.name + callee.name) % 40
        written = WRITTEN.get(callee.short, callee.short)
        calls = [at for at, text in self.body if re.search(r"\b" + re.escape(written) + r"\b", text)]
        return calls[0] if calls else self.body[number(callee.name) % len(self.body)][0]


class Node:
    def __init__(self, place, thread, up, weights):
        self.place, self.thread, self.up, self.weights = place, thread, up, weights
        self.path = (up.path if up else ()) + (place,)

    def is_at(self, text):
        """Is it named so, or `A>B`: in B, below A?"""
        above, _, name = text.rpartition(">")
        return self.place.is_named(name) and (not above or any(place.is_named(above) for place in self.path[:-1]))

    def stacks(self):
        """Stacks that end in it, as [(place, line), ...] from the root, each with its share."""
        calls = [(caller, caller.line_of_call(callee)) for caller, callee in zip(self.path, self.path[1:])]
        return [(calls + [(self.place, line)], share) for line, share in self.place.lines_itself()]


class Stacks:
    """What a service does: its call tree, and what else is measured of it."""
    def __init__(self, service):
        self.where, self.routes, self.nodes, self.sections, self.places = dict(COMMON), [], [], {}, {}
        self.path, self.chains, self.thread, self.section = {}, [], "", None
        for line in (STACKS / f"{service}.txt").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                self.read(line)

    def read(self, line):
        word = line.split()[0]
        if word == "where":
            key, kind, *where = line.split()[1:]
            self.where[key] = (kind, *(text.replace("-", "", 1) if text == "-" else text for text in (where + ["-"])[:2]))
        elif word == "route":
            self.routes.append((line.split()[1], line.split(None, 2)[2]))
        elif line.startswith("["):
            self.section, *numbers = line.strip("[]").split()
            self.sections[self.section] = ([quantity(n) for n in numbers], [])
        elif self.section == "cpu":
            self.read_frame(line)
        else:
            at, *weights = line.split()
            node = next((node for node in self.nodes if node.is_at(at)), None)
            if not node:
                raise ValueError(f"no such function: {at}")
            self.sections[self.section][1].append((node, [float(w) for w in weights if w != "climbs"], "climbs" in weights))

    def read_frame(self, line):
        if line.startswith("thread "):
            self.thread = line.removeprefix("thread ")
            return
        depth = (len(line) - len(line.lstrip())) // 2
        while self.chains and depth <= self.chains[-1][0]:
            self.chains.pop()
        by = self.chains[-1][1] if self.chains else 0
        if line.strip().startswith("%"):
            name, old, new = line.strip()[1:].split()
            frames = [(function, key, (float(old) * w, float(new) * w)) for function, key, w in KERNEL_PATHS[name]]
        else:
            names, key, weights = (part.strip() for part in line.split(" | "))
            chain = names.split(" › ")
            frames = [(name, key, (0, 0)) for name in chain[:-1]] + [(chain[-1], key, tuple(float(w) for w in weights.split()))]
        for more, (name, key, weights) in enumerate(frames):
            self.add(depth + by + more, name, key, weights)
        if len(frames) > 1:
            self.chains.append((depth, by + len(frames) - 1))

    def add(self, depth, name, key, weights):
        key, _, flags = key.partition(" ")
        place = self.places.setdefault((name, key, flags), None) or Place(name, self.where[key], flags)
        self.places[(name, key, flags)] = place
        node = Node(place, self.thread, self.path.get(depth - 1), weights)
        self.path[depth] = node
        self.nodes.append(node)

    def route(self, node):
        return next((text for function, text in self.routes if any(place.name == function for place in node.path)), "")

    def rows(self, section):
        """What a section spreads: (node, old, new, climbs), as shares of the whole or as they stand."""
        numbers, rows = self.sections.get(section, ((), ()))
        if section == "cpu":
            rows = [(node, node.weights, False) for node in self.nodes if any(node.weights)]
        whole = [sum(weights[i] for _, weights, _ in rows) if numbers else 1 for i in (0, 1)]
        scale = [numbers[i] / whole[i] if numbers else 1 for i in (0, 1)]
        return [(node, weights[0] * scale[0], weights[1] * scale[1], climbs) for node, weights, climbs in rows]
