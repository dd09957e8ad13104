# SPDX-License-Identifier: Apache-2.0
"""What an OTLP message or a pprof says, as plain tuples without a single index.

Reads messages of revision 1.8 and newer.  Written from the .proto files alone, knowing nothing of Kiln:
two messages that resolve to the same mean the same.
"""
import collections
import functools

Attr = collections.namedtuple("Attr", "key value unit", defaults=[""])
Function = collections.namedtuple("Function", "name system_name filename start_line", defaults=["", "", 0])
Mapping = collections.namedtuple("Mapping", "start limit offset filename attrs", defaults=[frozenset()])
Line = collections.namedtuple("Line", "function line column", defaults=[0, 0])
Location = collections.namedtuple("Location", "mapping address lines attrs", defaults=[frozenset()])
Sample = collections.namedtuple("Sample", "stack attrs link values times", defaults=[(), ()])
Profile = collections.namedtuple(
    "Profile", "type period_type period time duration id attrs dropped payload_format payload samples")
Scope = collections.namedtuple("Scope", "name version attrs dropped schema_url profiles")
Resource = collections.namedtuple("Resource", "attrs dropped schema_url entities scopes")

NO_MAPPING = Mapping(0, 0, 0, "")
NO_ATTR = Attr("", ("empty",))  # a reference to it is one to entry 0, "not set"


class Message:
    """One ProfilesData with its tables resolved, each entry once."""

    def __init__(self, data):
        self.data = data
        self.strings = data.dictionary.string_table
        self.location = functools.lru_cache(None)(self.find_location)
        self.stack = functools.lru_cache(None)(self.find_stack)
        self.attr = functools.lru_cache(None)(self.find_attr)

    def value(self, any_value):
        kind = any_value.WhichOneof("value")
        if kind is None:
            return ("empty",)
        found = getattr(any_value, kind)
        if kind == "array_value":
            return (kind, tuple(map(self.value, found.values)))
        if kind == "kvlist_value":
            return (kind, tuple(self.key_value(v) for v in found.values))
        if kind == "string_value_strindex":
            return ("string_value", self.strings[found])
        return (kind, repr(found) if kind == "double_value" else found)

    def key_value(self, key_value):
        index = getattr(key_value, "key_strindex", 0)
        return Attr(key_value.key or self.strings[index], self.value(key_value.value))

    def key_values(self, attributes):
        return frozenset(map(self.key_value, attributes)) - {NO_ATTR}

    def find_attr(self, index):
        entry = self.data.dictionary.attribute_table[index]
        return Attr(self.strings[entry.key_strindex], self.value(entry.value), self.strings[entry.unit_strindex])

    def attrs(self, indices):
        assert all(index >= 0 for index in indices)
        return frozenset(map(self.attr, indices)) - {NO_ATTR}

    def line(self, line):
        f = self.data.dictionary.function_table[line.function_index]
        function = Function(self.strings[f.name_strindex], self.strings[f.system_name_strindex],
                            self.strings[f.filename_strindex], f.start_line)
        return Line(function, line.line, line.column)

    def mapping(self, index):
        m = self.data.dictionary.mapping_table[index]
        return Mapping(m.memory_start, m.memory_limit, m.file_offset, self.strings[m.filename_strindex],
                       self.attrs(m.attribute_indices))

    def find_location(self, index):
        entry = self.data.dictionary.location_table[index]
        lines = entry.lines if hasattr(entry, "lines") else entry.line
        return Location(self.mapping(entry.mapping_index), entry.address, tuple(map(self.line, lines)),
                        self.attrs(entry.attribute_indices))

    def find_stack(self, index):
        return tuple(map(self.location, self.data.dictionary.stack_table[index].location_indices))

    def link(self, index):
        link = self.data.dictionary.link_table[index]
        both = (link.trace_id, link.span_id)
        return both if any(both[0]) or any(both[1]) else None

    def value_type(self, value_type):
        return (self.strings[value_type.type_strindex], self.strings[value_type.unit_strindex])

    def sample(self, sample):
        return Sample(self.stack(sample.stack_index), self.attrs(sample.attribute_indices),
                      self.link(sample.link_index), tuple(sample.values), tuple(sample.timestamps_unix_nano))

    def profile(self, p):
        samples = p.samples if hasattr(p, "samples") else p.sample
        return Profile(self.value_type(p.sample_type), self.value_type(p.period_type), p.period, p.time_unix_nano,
                       p.duration_nano, p.profile_id if any(p.profile_id) else b"", self.attrs(p.attribute_indices),
                       p.dropped_attributes_count, p.original_payload_format, p.original_payload,
                       tuple(map(self.sample, samples)))

    def scope(self, s):
        return Scope(s.scope.name, s.scope.version, self.key_values(s.scope.attributes),
                     s.scope.dropped_attributes_count, s.schema_url, tuple(map(self.profile, s.profiles)))

    def resource(self, r):
        entities = tuple((e.schema_url, e.type, tuple(e.id_keys), tuple(e.description_keys))
                         for e in getattr(r.resource, "entity_refs", ()))
        return Resource(self.key_values(r.resource.attributes), r.resource.dropped_attributes_count, r.schema_url,
                        entities, tuple(map(self.scope, r.scope_profiles)))


def resolve(data):
    message = Message(data)
    return tuple(map(message.resource, data.resource_profiles))


def names(stack):
    """The functions of a stack, leaf first, and the addresses of what has none."""
    return tuple(line.function.name or hex(location.address)
                 for location in stack for line in location.lines or [Line(Function(""))])


def totals(resolved):
    """(sample type, stack of functions): the sum of its values, or the number of its timestamps."""
    found = collections.Counter()
    for resource in resolved:
        for scope in resource.scopes:
            for profile in scope.profiles:
                for sample in profile.samples:
                    total = sum(sample.values) if sample.values else len(sample.times)
                    found[profile.type, names(sample.stack)] += total
    return +found


# ---- pprof ----

PPROF = {  # message: (number, name, type or message, repeated)
    "ValueType": [(1, "type", "INT64", 0), (2, "unit", "INT64", 0)],
    "Label": [(1, "key", "INT64", 0), (2, "str", "INT64", 0), (3, "num", "INT64", 0), (4, "num_unit", "INT64", 0)],
    "Sample": [(1, "location_id", "UINT64", 1), (2, "value", "INT64", 1), (3, "label", "Label", 1)],
    "Line": [(1, "function_id", "UINT64", 0), (2, "line", "INT64", 0)],
    "Location": [(1, "id", "UINT64", 0), (3, "address", "UINT64", 0), (4, "line", "Line", 1)],
    "Function": [(1, "id", "UINT64", 0), (2, "name", "INT64", 0)],
    "Profile": [(1, "sample_type", "ValueType", 1), (2, "sample", "Sample", 1), (4, "location", "Location", 1),
                (5, "function", "Function", 1), (6, "string_table", "STRING", 1)],
}


@functools.lru_cache(None)
def pprof_class():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="pprof.proto", package="pprof", syntax="proto3")
    for name, fields in PPROF.items():
        message = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            made = message.field.add(number=number, name=field, label=3 if repeated else 1)
            if kind in PPROF:
                made.type, made.type_name = made.TYPE_MESSAGE, f".pprof.{kind}"
            else:
                made.type = getattr(made, f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))


def pprof_totals(raw):
    """As totals(), of a pprof."""
    p = pprof_class().FromString(raw)
    functions = {f.id: p.string_table[f.name] for f in p.function}
    frames = {place.id: tuple(functions[line.function_id] or hex(place.address) for line in place.line)
              or (hex(place.address),) for place in p.location}
    types = [(p.string_table[t.type], p.string_table[t.unit]) for t in p.sample_type]
    found = collections.Counter()
    for sample in p.sample:
        stack = tuple(name for i in sample.location_id for name in frames[i])
        for kind, value in zip(types, sample.value):
            found[kind, stack] += value
    return +found
