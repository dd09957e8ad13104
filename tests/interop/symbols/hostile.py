# SPDX-License-Identifier: Apache-2.0
"""Files that mean harm: debug information with loops, bombs, lies about sizes, assembled here, and mutations of good
programs with a fixed seed.  Each has a function `good_one` at its beginning of code, so that there is an address to ask."""
import pathlib
import random
import struct
import subprocess
import zlib

TEXT = """
    .text
    .globl good_one
    .type good_one, @function
good_one:
begin:
    .rept 1024
    nop
    .endr
end:
    .size good_one, . - good_one
"""
ABBREV = """
    .section .debug_abbrev,"",@progbits
abbrev:
    /* 1: unit with children: name, low, high, line table */
    .uleb128 1, 0x11; .byte 1; .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0
    /* 2: function with children: name, low, high */
    .uleb128 2, 0x2e; .byte 1; .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 3: inlined with children: origin, low, high, line */
    .uleb128 3, 0x1d; .byte 1; .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x59, 0x0b, 0, 0
    /* 4: function: origin (anywhere in the section) */
    .uleb128 4, 0x2e; .byte 0; .uleb128 0x31, 0x10, 0, 0
    /* 5: function: specification */
    .uleb128 5, 0x2e; .byte 0; .uleb128 0x47, 0x13, 0, 0
    /* 6: imported unit */
    .uleb128 6, 0x3d; .byte 0; .uleb128 0x18, 0x10, 0, 0
    /* 7: function with sibling, low, high and name */
    .uleb128 7, 0x2e; .byte 1; .uleb128 0x01, 0x13, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 8: function without children: name, low, high */
    .uleb128 8, 0x2e; .byte 0; .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 9: function with ranges */
    .uleb128 9, 0x2e; .byte 0; .uleb128 0x03, 0x08, 0x55, 0x17, 0, 0
    /* 10: function whose name has a form that says its form */
    .uleb128 10, 0x2e; .byte 0; .uleb128 0x03, 0x16, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 11: namespace with children: name */
    .uleb128 11, 0x39; .byte 1; .uleb128 0x03, 0x08, 0, 0
    /* 12: function: name as an offset, low, high */
    .uleb128 12, 0x2e; .byte 0; .uleb128 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 13: name and origin in a file elsewhere */
    .uleb128 13, 0x2e; .byte 0; .uleb128 0x03, 0x1f21, 0x31, 0x1f20, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 14: by signature */
    .uleb128 14, 0x2e; .byte 0; .uleb128 0x31, 0x20, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 15: a block that is as long as it says */
    .uleb128 15, 0x34; .byte 0; .uleb128 0x02, 0x18, 0, 0
    .byte 0
"""
UNIT = """
    .section .debug_info,"",@progbits
info:
    .long info_end - info_version
info_version:
    .value 4
    .long {abbrev}
    .byte 8
unit:
    .uleb128 1
    .string "hostile.c"
    .quad begin, end - begin
    .long {line}
{dies}
    .byte 0
info_end:
"""
INLINED = ".uleb128 3; .long {origin}; .quad begin, end - begin; .byte 7"


def unit(dies, abbrev="abbrev", line="0", more=""):
    return TEXT + ABBREV + UNIT.format(dies=dies, abbrev=abbrev, line=line) + more


def function(name="good_one", inside=""):
    return f'.uleb128 2; .string "{name}"; .quad begin, end - begin\n{inside}\n.byte 0'


def line_program(body, version=4, min_length=1, line_base=-5, line_range=14, opcode_base=13):
    lengths = "0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1"
    return f"""
    .section .debug_line,"",@progbits
lines:
    .long lines_end - lines_version
lines_version:
    .value {version}
    .long lines_head_end - lines_head
lines_head:
    .byte {min_length}, 1, 1, {line_base}, {line_range}, {opcode_base}
    .byte {lengths}
    .byte 0
    .string "hostile.c"
    .uleb128 0, 0, 0
    .byte 0
lines_head_end:
    .byte 0, 9, 2
    .quad begin
{body}
    .byte 0, 1, 1
lines_end:
"""


MEGABYTES = 400  # of a bomb, far more than a reader may have
NESTED = 60000
MANY = 150000

# DWARF 5: everything by index, and the bases are what the case says.
UNIT5 = """
    .section .debug_abbrev,"",@progbits
    /* 1: unit: name by index, bases of strings, addresses and ranges */
    .uleb128 1, 0x11; .byte 1; .uleb128 0x03, 0x1a, 0x72, 0x17, 0x73, 0x17, 0x74, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
    /* 2: function: name by index, ranges by index */
    .uleb128 2, 0x2e; .byte 0; .uleb128 0x03, 0x1a, 0x55, 0x23, 0, 0
    /* 3: function: name by index, address by index, size */
    .uleb128 3, 0x2e; .byte 0; .uleb128 0x03, 0x1a, 0x11, 0x1b, 0x12, 0x07, 0, 0
    /* 4: unit whose rest is elsewhere: name of that file, addresses */
    .uleb128 4, 0x4a; .byte 0; .uleb128 0x76, 0x08, 0x1b, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    .byte 0
    .section .debug_info,"",@progbits
    .long 9f - 1f
1:  .value 5
    .byte {kind}, 8
    .long 0
    {id}
    {unit}
9:
"""


def unit5(strings="8", addresses="8", ranges="12", dies=".uleb128 2, 0, 0", more=""):
    whole = f".uleb128 1, 0; .long {strings}, {addresses}, {ranges}; .quad begin, end - begin\n{dies}\n.byte 0"
    return TEXT + UNIT5.format(kind=1, id="", unit=whole) + more


def skeleton(name, folder):
    unit = f'.uleb128 4; .string "{name}"; .string "{folder}"; .quad begin, end - begin'
    return TEXT + UNIT5.format(kind=4, id=".quad 0x1234567", unit=unit)

ASSEMBLED = {
    "origin-is-itself": unit(function(inside="here: " + INLINED.format(origin="here - info") + "\n.byte 0")),
    "origins-in-a-ring": unit(function(inside=INLINED.format(origin="ring1 - info") + "\n.byte 0") +
                              "\nring1: .uleb128 4; .long ring2 - info\nring2: .uleb128 4; .long ring1 - info"),
    "specification-is-itself": unit(function(inside=INLINED.format(origin="self - info") + "\n.byte 0") +
                                    "\nself: .uleb128 5; .long self - info"),
    "origin-is-outside": unit(function(inside=INLINED.format(origin="0xfffffff0") + "\n.byte 0")),
    "origin-is-inside-of-something": unit(function(inside=INLINED.format(origin="unit - info + 3") + "\n.byte 0")),
    "nested-without-end": unit(function(inside="\n".join([f".rept {NESTED}", INLINED.format(origin="unit - info"), ".endr"]))),
    "nested-deep-and-closed": unit(function(inside="\n".join(
        ["named: " + INLINED.format(origin="unit - info"), f".rept {NESTED}", INLINED.format(origin="unit - info"), ".endr",
         f".rept {NESTED + 1}", ".byte 0", ".endr"]))),
    "namespaces-without-end": unit(".rept 200000\n.uleb128 11; .string \"n\"\n.endr\n" + function()),
    "imports-itself": unit(".uleb128 6; .long info - info\n" + function() + "\n.uleb128 6; .long unit - info"),
    "sibling-goes-back": unit('here: .uleb128 7; .long here - info; .string "round"; .quad end, 4; .byte 0\n' + function()),
    "sibling-goes-far": unit('here: .uleb128 7; .long 0x7fffffff; .string "far"; .quad end, 4; .byte 0\n' + function()),
    "all-at-one-place": unit(f'.rept {MANY}\n.uleb128 8; .string "x"; .quad begin, end - begin\n.endr\n' + function()),
    "all-over-each-other": unit("\n".join(f'.uleb128 8; .string "f"; .quad begin + {i % 1000}, 0x10000000' for i in range(20000))),
    "range-list-without-end": unit(".uleb128 9; .string \"r\"; .long 0\n" + function(), more=(
        '\n.section .debug_ranges,"",@progbits\n.rept 400000\n.quad 0, 4\n.endr\n')),
    "range-list-outside": unit(".uleb128 9; .string \"r\"; .long 0xfffffff0\n" + function()),
    "form-says-form-says-form": unit(".uleb128 10\n.rept 100000\n.uleb128 0x16\n.endr\n"),
    "form-unknown": unit(".uleb128 10; .uleb128 0x7777; .quad 1, 2, 3\n"),
    "name-outside": unit(".uleb128 12; .long 0x7ffffff0; .quad begin, end - begin\n"),
    "name-without-end": unit(".uleb128 12; .long 0; .quad begin, end - begin\n", more=(
        '\n.section .debug_str,"",@progbits\n.rept 3000000\n.byte 65\n.endr\n')),
    "alternate-that-is-not-there": unit(".uleb128 13; .long 4, 4; .quad begin, end - begin\n"),
    "alternate-is-itself": unit(".uleb128 13; .long 4, 4; .quad begin, end - begin\n", more=(
        '\n.section .gnu_debugaltlink,"",@progbits\n.string "alternate-is-itself"\n.quad 1, 2\n')),
    "link-to-itself": TEXT + '\n.section .gnu_debuglink,"",@progbits\n.string "link-to-itself"\n.balign 4\n.long 0\n',
    "signature-of-nobody": unit(".uleb128 14; .quad 0x1234; .quad begin, end - begin\n"),
    "block-longer-than-all": unit(".uleb128 15; .uleb128 0xfffffffff\n" + function()),
    "abbreviations-elsewhere": unit(function(), abbrev="0x7fffffff"),
    "abbreviation-unknown": unit(".uleb128 99\n" + function()),
    "abbreviations-without-end": TEXT + UNIT.format(dies=function(), abbrev="0", line="0") + (
        '\n.section .debug_abbrev,"",@progbits\nabbrev: .rept 500000\n.uleb128 1, 0x11; .byte 1; .uleb128 3, 8, 0, 0\n.endr\n'),
    "one-abbreviation-of-a-million": TEXT + UNIT.format(dies=function(), abbrev="0", line="0") + (
        '\n.section .debug_abbrev,"",@progbits\n.uleb128 1, 0x11; .byte 1\n.rept 1000000\n.uleb128 3, 8\n.endr\n'),
    "units-of-nothing": TEXT + ABBREV + '\n.section .debug_info,"",@progbits\n.rept 300000\n.long 7; .value 4; .long 0; .byte 8\n.endr\n',
    "units-of-nothing-at-all": TEXT + ABBREV + '\n.section .debug_info,"",@progbits\n.rept 300000\n.long 0\n.endr\n',
    "unit-longer-than-all": TEXT + ABBREV + '\n.section .debug_info,"",@progbits\n.long 0xffffffff; .quad -1; .value 5\n.byte 1,8\n.quad 0\n',
    "unit-of-the-future": TEXT + ABBREV + '\n.section .debug_info,"",@progbits\n.long 20; .value 77\n.rept 18\n.byte 1\n.endr\n',
    "unit-with-odd-addresses": TEXT + ABBREV + '\n.section .debug_info,"",@progbits\n.long 20; .value 4; .long 0; .byte 3\n.rept 13\n.byte 1\n.endr\n',
    "aranges-without-end": unit(function(), more=(
        '\n.section .debug_aranges,"",@progbits\n.long aend - astart\nastart: .value 2\n.long 0\n.byte 8, 0\n.balign 16\n'
        '.rept 300000\n.quad 0, 0x7fffffffffffffff\n.endr\naend:\n')),
    "aranges-of-nobody": unit(function(), more=(
        '\n.section .debug_aranges,"",@progbits\n.long aend - astart\nastart: .value 2\n.long 0x700000\n.byte 8, 0\n.balign 16\n'
        '.quad begin, 1024, 0, 0\naend:\n')),
    "lines-divide-by-nothing": unit(function(), line="lines", more=line_program(".rept 100\n.byte 200\n.endr", line_range=0)),
    "lines-without-opcodes": unit(function(), line="lines", more=line_program(".byte 200", opcode_base=0)),
    "lines-that-stand-still": unit(function(), line="lines", more=line_program(".rept 2000000\n.byte 1\n.endr")),
    "lines-that-run-back": unit(function(), line="lines", more=line_program(".rept 200000\n.byte 2; .sleb128 -1\n.byte 1\n.endr")),
    "lines-of-many-sequences": unit(function(), line="lines", more=line_program(
        ".rept 200000\n.byte 1, 2, 4, 0, 1, 1, 0, 9, 2\n.quad begin\n.endr")),
    "lines-with-a-file-of-nobody": unit(function(), line="lines", more=line_program(
        ".byte 4; .uleb128 0xffffffff\n.byte 1\n.byte 2, 100, 1")),
    "lines-of-the-future": unit(function(), line="lines", more=line_program(".byte 1", version=99)),
    "lines-outside": unit(function(), line="0x7ffffff0"),
    "bases-outside": unit5(strings="0x7ffffff0", addresses="0x7ffffff0", ranges="0xfffffff0"),
    "indices-outside": unit5(dies=".uleb128 2, 0xffffffff, 0xffffffff\n.uleb128 3, 0xfffffff, 0xfffffff; .quad -1"),
    "ranges-by-index-without-end": unit5(more=(
        '\n.section .debug_rnglists,"",@progbits\n.long 0x7fffffff; .value 5; .byte 8, 0; .long 0xffffffff\n.rept 500000\n.uleb128 4, 0, 1\n.endr\n')),
    "strings-by-index-of-nothing": unit5(more=(
        '\n.section .debug_str_offsets,"",@progbits\n.long 0xffffff; .value 5, 0; .rept 1000\n.long 0xfffffff0\n.endr\n')),
    "rest-is-itself": skeleton("rest-is-itself", "."),
    "rest-is-a-device": skeleton("/dev/zero", "/"),
    "rest-is-outside": skeleton("../../../../../../../../etc/passwd", "/tmp"),
    "rest-is-nameless": skeleton("", ""),
    "package-of-everything": unit(function(), more=(
        '\n.section .debug_cu_index,"",@progbits\n.long 5, 0xffffffff, 0xffffffff, 0xffffffff\n.rept 1000\n.quad -1\n.endr\n')),
    "lines-without-end": unit(function(), line="0", more='\n.section .debug_line,"",@progbits\n.long 0x7fffffff\n.value 4\n.long 0x7fffff00\n'),
}


def assemble(folder):
    """All of those, linked, so that nothing is left to relocate."""
    made = []
    for name, text in ASSEMBLED.items():
        source, target = folder / f"{name}.s", folder / name
        source.write_text(text)
        subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,good_one", "-Wl,--build-id=none", "-Wl,-Ttext=0x401000",
                        "-o", target, source], check=True, capture_output=True)
        made.append(target)
    return made


# ---- compressed ----

def sections(data):
    """(name, header offset, offset, size) of each."""
    shoff, = struct.unpack_from("<Q", data, 0x28)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 0x3a)
    names, = struct.unpack_from("<Q", data, shoff + shstrndx * shentsize + 24)
    found = []
    for i in range(shnum):
        at = shoff + i * shentsize
        name, = struct.unpack_from("<I", data, at)
        offset, size = struct.unpack_from("<QQ", data, at + 24)
        end = data.index(0, names + name)
        found.append((data[names + name:end].decode(), at, offset, size))
    return found


def replace_section(good, target, name, content, flags=0x800):
    """The section of that name is `content` at the end of the file, with SHF_COMPRESSED."""
    data = bytearray(good.read_bytes())
    for found, at, _, _ in sections(data):
        if found == name:
            struct.pack_into("<Q", data, at + 8, flags)
            struct.pack_into("<QQ", data, at + 24, len(data), len(content))
            data += content
            target.write_bytes(data)
            return target
    raise LookupError(name)


def bombs(good, folder):
    """Compressed sections that are far larger than they are, lie about it, or are no such thing."""
    packer = zlib.compressobj(9)
    zeros = b"".join([packer.compress(b"\1" * (1 << 20)) for _ in range(MEGABYTES)] + [packer.flush()])
    small = zlib.compress(b"\1" * 1000)
    head = lambda kind, size: struct.pack("<IIQQ", kind, 0, size, 1)  # noqa: E731
    for section in (".debug_info", ".debug_line", ".debug_abbrev", ".debug_str", ".debug_rnglists", ".debug_aranges"):
        short = section[7:]
        yield replace_section(good, folder / f"bomb-{short}", section, head(1, MEGABYTES << 20) + zeros)
        yield replace_section(good, folder / f"bomb-{short}-says-little", section, head(1, 1000) + zeros)
        yield replace_section(good, folder / f"says-much-{short}", section, head(1, 1 << 62) + small)
        yield replace_section(good, folder / f"says-4-gigabytes-{short}", section, head(1, 4 << 30) + small)
        yield replace_section(good, folder / f"unknown-{short}", section, head(77, 1000) + small)
        yield replace_section(good, folder / f"garbage-{short}", section, head(1, 1000) + b"\xff" * 500)
        yield replace_section(good, folder / f"garbage-zstd-{short}", section, head(2, 1000) + b"\x28\xb5\x2f\xfd" + b"\xff" * 500)
        yield replace_section(good, folder / f"cut-{short}", section, head(1, 1000)[:10])


# ---- mutations ----

def mutate(good, rng):
    """Some bytes of the debug sections, of their headers, or of the file's are others."""
    data = bytearray(good)
    places = [(offset, size) for name, _, offset, size in sections(data)
              if name.startswith((".debug", ".zdebug", ".gnu_debug", ".symtab", ".strtab")) and size]
    places += [(at, 64) for name, at, _, _ in sections(data) if name.startswith(".debug")] + [(0, 64)]
    small = [place for place in places if place[1] < 4096]
    for _ in range(rng.choice((1, 2, 4, 16, 64))):
        offset, size = rng.choice(places if rng.random() < 0.7 else small or places)
        at = offset + rng.randrange(size)
        how = rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif how == 2:
            value = rng.choice((0, 1, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff))
            data[at:at + 4] = struct.pack("<I", value)
        else:
            n = min(rng.randrange(1, 64), size)
            data[at:at + n] = bytes(rng.randrange(256) for _ in range(n))
    return bytes(data[:rng.randrange(len(data))] if rng.random() < 0.03 else data)


def mutations(programs, folder, count, seed):
    rng = random.Random(seed)
    for i in range(count):
        good = rng.choice(programs)
        target = folder / f"mutation-{i}-of-{pathlib.Path(good).parent.name}"
        target.write_bytes(mutate(pathlib.Path(good).read_bytes(), rng))
        yield target
