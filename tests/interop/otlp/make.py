# SPDX-License-Identifier: Apache-2.0
"""Messages for Kiln to read, made by the protobuf library.

LITTLE is a profile in plain words (see resolve.py); write() puts it into a message of any revision, so
that all of them must read as LITTLE.  everything() sets every field of the newest revision.
"""
from resolve import Attr, Function, Line, Location, Mapping, NO_MAPPING, Profile, Resource, Sample, Scope

TIME = 1_760_000_000_000_000_000
MS = 1_000_000


def text(key, value, unit=""):
    return Attr(key, ("string_value", value), unit)


def number(key, value, unit=""):
    return Attr(key, ("int_value", value), unit)


HAS_FUNCTIONS = Attr("pprof.mapping.has_functions", ("bool_value", True))
IS_FOLDED = Attr("pprof.location.is_folded", ("bool_value", True))
BUILD_ID = "process.executable.build_id.gnu"
APP = Mapping(0x1000, 0x9000, 0x100, "/bin/app", frozenset({text(BUILD_ID, "c0ffee"), HAS_FUNCTIONS}))
LIBC = Mapping(0x7F0000, 0x7F8000, 0, "/lib/libc.so.6", frozenset({text(BUILD_ID, "abba")}))
NATIVE = frozenset({text("profile.frame.type", "native")})
MAIN, PARSE = Function("main", "main", "main.c", 10), Function("parse()", "_Z5parsev", "parse.cc", 3)
READ = Location(LIBC, 0x7F1234, (Line(Function("read", "__read")),), NATIVE)
INLINED = Location(APP, 0x1800, (Line(PARSE, 5, 9), Line(MAIN, 12, 0)), frozenset({IS_FOLDED}))
ENTRY = Location(APP, 0x1900, (Line(MAIN, 30, 1),))
KERNEL = Location(NO_MAPPING, 0xFFFF_FFFF_8100_0000, (), frozenset({text("profile.frame.type", "kernel")}))
LINK = (bytes(range(1, 17)), bytes(range(0xF0, 0xF8)))
OTHER_LINK = (bytes([7]) * 16, bytes([9]) * 8)
WORKER = frozenset({number("thread.id", 7), number("request.size", 512, "By")})
NAMED = frozenset({text("thread.name", "größe")})
PROFILE_ATTRS = frozenset({text("host.kind", "busy")})

# stack, attributes, link, (samples, cpu), timestamps
ROWS = [
    ((READ, INLINED), WORKER, LINK, (2, 20 * MS), (TIME + 1, TIME + 5)),
    ((INLINED, ENTRY), frozenset(), None, (1, 10 * MS), (TIME + 2,)),
    ((KERNEL, READ, ENTRY), NAMED, OTHER_LINK, (3, 30 * MS), ()),
]


def observed(value, times, is_count):
    """Old revisions have one list of timestamps for all values: what belongs to which is in src/codec/otlp_old.c."""
    if is_count and value == len(times):
        return (), times
    return (value,), times if len(times) == 1 else ()


def profile(kind, place):
    samples = tuple(Sample(stack, attrs, link, *observed(values[place], times, place == 0))
                    for stack, attrs, link, values, times in ROWS)
    return Profile(kind, ("cpu", "nanoseconds"), 10 * MS, TIME, 1000 * MS, bytes([3]) * 16, PROFILE_ATTRS, 2,
                   "pprof", b"\x0a\x00", samples)


TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
LIST = Attr("list", ("array_value", (("bool_value", True), ("double_value", "0.5"))))
LITTLE = Resource(
    frozenset({text("service.name", "shop"), number("process.pid", -4)}), 1, "https://example.test/resource", (),
    (Scope("profiler", "1.2", frozenset({LIST}), 3, "https://example.test/scope",
           tuple(profile(kind, i) for i, kind in enumerate(TYPES))),))
COMMENT = Attr("pprof.profile.comment", ("array_value", (("string_value", "made by hand"),)))


class Tables:
    """Fills the tables of a message of one revision; an entry is added once."""

    def __init__(self, revision, owner):
        self.r, self.owner = revision, owner
        self.at = {}
        self.old = "attribute_units" in owner.DESCRIPTOR.fields_by_name
        self.string("")
        if not self.old:  # index 0 of every table is its zero value
            for table in ("mapping", "location", "function", "link", "attribute", "stack"):
                getattr(owner, f"{table}_table").add()
                self.at[table, None] = 0

    def entry(self, table, what, fill):
        key = (table, what)
        if key not in self.at:
            made = getattr(self.r, {"attribute": "KeyValue" if self.old else "KeyValueAndUnit"}.get(
                table, table.capitalize()))()
            fill(made)
            rows = getattr(self.owner, f"{table}_table")
            self.at[key] = len(rows)
            rows.append(made)
        return self.at[key]

    def string(self, what):
        if ("string", what) not in self.at:
            self.at["string", what] = len(self.owner.string_table)
            self.owner.string_table.append(what)
        return self.at["string", what]

    def attr(self, attr):
        def fill(made):
            set_value(made.value, attr.value)
            if not self.old:
                made.key_strindex, made.unit_strindex = self.string(attr.key), self.string(attr.unit)
                return
            made.key = attr.key
            if attr.unit:
                self.owner.attribute_units.add(attribute_key_strindex=self.string(attr.key),
                                               unit_strindex=self.string(attr.unit))
        return self.entry("attribute", attr, fill)

    def attrs(self, attrs):
        return sorted(map(self.attr, attrs))

    def mapping(self, mapping):
        def fill(made):
            made.memory_start, made.memory_limit, made.file_offset = mapping[:3]
            made.filename_strindex = self.string(mapping.filename)
            made.attribute_indices.extend(self.attrs(mapping.attrs - {HAS_FUNCTIONS} if self.old else mapping.attrs))
            if self.old and HAS_FUNCTIONS in mapping.attrs:
                made.has_functions = True
        return self.entry("mapping", mapping, fill)

    def function(self, function):
        def fill(made):
            made.name_strindex, made.system_name_strindex, made.filename_strindex = map(self.string, function[:3])
            made.start_line = function.start_line
        return self.entry("function", function, fill)

    def location(self, location):
        def fill(made):
            made.address = location.address
            if location.mapping != NO_MAPPING:
                made.mapping_index = self.mapping(location.mapping)
            lines = made.lines if hasattr(made, "lines") else made.line
            for line in location.lines:
                lines.add(function_index=self.function(line.function), line=line.line, column=line.column)
            made.attribute_indices.extend(self.attrs(location.attrs - {IS_FOLDED} if self.old else location.attrs))
            if self.old and IS_FOLDED in location.attrs:
                made.is_folded = True
        return self.entry("location", location, fill)

    def stack(self, stack):
        return self.entry("stack", stack, lambda made: made.location_indices.extend(map(self.location, stack)))

    def link(self, link):
        def fill(made):
            made.trace_id, made.span_id = link
        return self.entry("link", link, fill) if link else None

    def value_type(self, made, kind):
        made.type_strindex, made.unit_strindex = map(self.string, kind)


def set_value(made, value):
    kind = value[0]
    if kind == "array_value":
        made.array_value.SetInParent()
        for child in value[1]:
            set_value(made.array_value.values.add(), child)
    elif kind == "kvlist_value":
        made.kvlist_value.SetInParent()
        for child in value[1]:
            set_value(made.kvlist_value.values.add(key=child.key).value, child.value)
    elif kind != "empty":
        setattr(made, kind, float(value[1]) if kind == "double_value" else value[1])


def set_attrs(made, attrs):
    for attr in sorted(attrs):
        set_value(made.add(key=attr.key).value, attr.value)


def write_common(p, profile):
    p.period, p.profile_id, p.dropped_attributes_count = profile.period, profile.id, profile.dropped
    p.original_payload_format, p.original_payload = profile.payload_format, profile.payload


def write_old(revision, p, tables, profiles):
    """Revisions 1.4 to 1.7: all sample types in one profile, stacks as slices."""
    first = profiles[0]
    write_common(p, first)
    p.time_nanos, p.duration_nanos = first.time, first.duration
    for one in profiles:
        tables.value_type(p.sample_type.add(aggregation_temporality=1), one.type)
    tables.value_type(p.period_type, first.period_type)
    p.comment_strindices.append(tables.string("made by hand"))
    if hasattr(p, "attributes"):
        set_attrs(p.attributes, first.attrs)
    else:
        p.attribute_indices.extend(tables.attrs(first.attrs))
    for stack, attrs, link, values, times in ROWS:
        sample = p.sample.add(locations_start_index=len(p.location_indices), locations_length=len(stack), value=values,
                              attribute_indices=tables.attrs(attrs), timestamps_unix_nano=times)
        p.location_indices.extend(map(tables.location, stack))
        if link:
            sample.link_index = tables.link(link)


def write_new(revision, p, tables, profile):
    write_common(p, profile)
    p.time_unix_nano, p.duration_nano = profile.time, profile.duration
    tables.value_type(p.sample_type, profile.type)
    tables.value_type(p.period_type, profile.period_type)
    p.attribute_indices.extend(tables.attrs(profile.attrs))
    if hasattr(p, "comment_strindices"):
        p.comment_strindices.append(tables.string("made by hand"))
    samples = p.samples if hasattr(p, "samples") else p.sample
    for s in profile.samples:
        samples.add(stack_index=tables.stack(s.stack), attribute_indices=tables.attrs(s.attrs),
                    link_index=tables.link(s.link) or 0, values=s.values, timestamps_unix_nano=s.times)


def write(revision):
    """LITTLE as a message of this revision, and what it should be read as."""
    data = revision.ProfilesData()
    resource = data.resource_profiles.add(schema_url=LITTLE.schema_url)
    set_attrs(resource.resource.attributes, LITTLE.attrs)
    resource.resource.dropped_attributes_count = LITTLE.dropped
    for s in LITTLE.scopes:
        scope = resource.scope_profiles.add(schema_url=s.schema_url)
        scope.scope.name, scope.scope.version, scope.scope.dropped_attributes_count = s.name, s.version, s.dropped
        set_attrs(scope.scope.attributes, s.attrs)
        if revision.name in ("1.4", "1.5"):
            p = scope.profiles.add()
            write_old(revision, p, Tables(revision, p), s.profiles)
        elif revision.name in ("1.6", "1.7"):
            tables = Tables(revision, data if revision.name == "1.6" else data.dictionary)
            write_old(revision, scope.profiles.add(), tables, s.profiles)
        else:
            tables = Tables(revision, data.dictionary)
            for one in s.profiles:
                write_new(revision, scope.profiles.add(), tables, one)
    return data, expected(revision)


def expected(revision):
    if revision.name in ("1.9", "1.10", "1.11"):
        return (LITTLE,)
    (scope,) = LITTLE.scopes
    profiles = tuple(p._replace(attrs=p.attrs | {COMMENT}) for p in scope.profiles)
    return (LITTLE._replace(scopes=(scope._replace(profiles=profiles),)),)


# ---- every field ----

ANY = ("kvlist_value", (
    Attr("text", ("string_value", "a\u0000\"\\\u2028\U0001F525")), Attr("none", ("string_value", "")),
    Attr("yes", ("bool_value", True)), Attr("no", ("bool_value", False)),
    Attr("least", ("int_value", -2**63)), Attr("most", ("int_value", 2**63 - 1)), Attr("zero", ("int_value", 0)),
    Attr("tenth", ("double_value", "0.1")), Attr("tiny", ("double_value", "5e-324")),
    Attr("huge", ("double_value", "1.7976931348623157e+308")), Attr("minus", ("double_value", "-0.0")),
    Attr("infinite", ("double_value", "inf")), Attr("never", ("double_value", "-inf")),
    Attr("bytes", ("bytes_value", bytes(range(256)))), Attr("no bytes", ("bytes_value", b"")),
    Attr("empty", ("empty",)), Attr("no list", ("array_value", ())), Attr("no map", ("kvlist_value", ())),
    Attr("list", ("array_value", (("array_value", (("int_value", 1),)), ("empty",), ("string_value", "x")))),
    Attr("map", ("kvlist_value", (Attr("map", ("kvlist_value", (Attr("k", ("bool_value", True)),))),))),
))


def refer(message, strings):
    """Puts keys and texts of resources and scopes into the string table, as 1.10 allows."""
    def index(what):
        if what not in strings:
            strings.append(what)
        return list(strings).index(what)

    def value(any_value):
        kind = any_value.WhichOneof("value")
        if kind == "string_value":
            any_value.string_value_strindex = index(any_value.string_value)
        elif kind == "array_value":
            for child in any_value.array_value.values:
                value(child)
        elif kind == "kvlist_value":
            for child in any_value.kvlist_value.values:
                pair(child)

    def pair(key_value):
        key_value.key_strindex = index(key_value.key)
        key_value.ClearField("key")
        value(key_value.value)

    for resource in message.resource_profiles:
        for key_value in resource.resource.attributes:
            pair(key_value)
        for scope in resource.scope_profiles:
            for key_value in scope.scope.attributes:
                pair(key_value)
    for entry in message.dictionary.attribute_table:
        value(entry.value)


def everything(revision):
    """LITTLE with all there is: every kind of value in every place, entities, two resources, extremes."""
    data, _ = write(revision)
    first = data.resource_profiles[0]
    set_value(first.resource.attributes.add(key="any").value, ANY)
    set_value(first.scope_profiles[0].scope.attributes.add(key="any").value, ANY)
    first.resource.entity_refs.add(schema_url="https://example.test/entity", type="service",
                                   id_keys=["service.name"], description_keys=["any", "process.pid"])
    entry = data.dictionary.attribute_table.add()
    data.dictionary.string_table.extend(["any", "1"])
    entry.key_strindex = len(data.dictionary.string_table) - 2
    entry.unit_strindex = len(data.dictionary.string_table) - 1
    set_value(entry.value, ANY)
    any_index = len(data.dictionary.attribute_table) - 1
    p = first.scope_profiles[0].profiles[0]
    p.attribute_indices.append(any_index)
    p.samples[1].attribute_indices.append(any_index)
    data.dictionary.mapping_table[1].attribute_indices.append(any_index)
    data.dictionary.location_table[1].attribute_indices.append(any_index)
    data.dictionary.location_table[1].address = 2**64 - 1
    second = data.resource_profiles.add()
    second.resource.attributes.add(key="service.name").value.string_value = "other"
    last = second.scope_profiles.add().profiles.add()
    last.CopyFrom(p)
    last.time_unix_nano, last.duration_nano, last.period = 2**64 - 1, 2**64 - 1, -2**63
    last.dropped_attributes_count = 2**32 - 1
    del last.samples[:]
    last.samples.add(stack_index=1, values=[-2**63, 2**63 - 1, 0], timestamps_unix_nano=[0, 2**64 - 1, 1])
    return data
