# SPDX-License-Identifier: Apache-2.0
"""Other ways to write the same message, all of which protobuf and OTLP allow."""
import base64

import peers


def changed(revision, change):
    """ProfilesData of a revision with changed descriptors."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    pool = descriptor_pool.DescriptorPool()
    for file in ("common/v1/common", "resource/v1/resource", "profiles/v1development/profiles"):
        proto = descriptor_pb2.FileDescriptorProto()
        revision.pool.FindFileByName(f"opentelemetry/proto/{file}.proto").CopyToProto(proto)
        for message in proto.message_type:
            change(message)
        pool.Add(proto)
    name = peers.BASE + "profiles.v1development.ProfilesData"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


# ---- every number in a field of its own ----

def set_unpacked(message):
    for field in message.field:
        is_number = field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING, field.TYPE_BYTES)
        if field.label == field.LABEL_REPEATED and is_number:
            field.options.packed = False


def unpacked(revision, wire):
    return changed(revision, set_unpacked).FromString(wire).SerializeToString()


# ---- fields of a revision to come ----

def add_unknown(message):
    message.field.add(name="from_the_future", number=2000, type=9, label=1)
    message.field.add(name="of_the_future", number=30, type=6, label=3)


def fill_unknown(message):
    message.from_the_future = "hello"
    message.of_the_future.extend([1, 2])
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for child in value if hasattr(value, "add") else [value]:
                fill_unknown(child)


def with_unknown(revision, wire):
    future = changed(revision, add_unknown).FromString(wire)
    fill_unknown(future)
    return future.SerializeToString()


# ---- every message and every list in two pieces ----

def varint(number):
    made = b""
    while number > 0x7F:
        made, number = made + bytes([number & 0x7F | 0x80]), number >> 7
    return made + bytes([number])


def nested(field, wire):
    return varint(field.number << 3 | 2) + varint(len(wire)) + wire


def alone(message, field, value):
    """One field as the library writes it."""
    made = type(message)()
    if hasattr(value, "extend"):
        getattr(made, field.name).extend(value)
    else:
        setattr(made, field.name, value)
    return made.SerializeToString()


def in_pieces(message):
    """Singular messages and packed lists occur twice, which readers must join; only values stay whole."""
    parts = []
    for field, value in message.ListFields():
        many = hasattr(value, "extend")
        if field.type == field.TYPE_MESSAGE and many:
            parts += [nested(field, b"".join(in_pieces(child))) for child in value]
        elif field.type == field.TYPE_MESSAGE and field.message_type.name == "AnyValue":
            parts.append(nested(field, value.SerializeToString()))
        elif field.type == field.TYPE_MESSAGE:
            inner = in_pieces(value)
            half = len(inner) // 2
            parts += [nested(field, b"".join(inner[:half])), nested(field, b"".join(inner[half:]))]
        elif many:
            half = len(value) // 2
            parts += [alone(message, field, value[:half]), alone(message, field, value[half:])]
        else:
            parts.append(alone(message, field, value))
    return parts


# ---- JSON ----

IDS = ("traceId", "spanId", "profileId", "trace_id", "span_id", "profile_id")
NUMBERS = ("intValue", "timeUnixNano", "durationNano", "period", "address", "memoryStart", "memoryLimit", "fileOffset",
           "startLine", "line", "column", "values", "timestampsUnixNano")


def with_ids(node, change):
    """The same JSON with its ids written in another way."""
    if isinstance(node, list):
        return [with_ids(child, change) for child in node]
    if not isinstance(node, dict):
        return node
    return {key: change(value) if key in IDS else with_ids(value, change) for key, value in node.items()}


def hex_of(text):
    return base64.b64decode(text).hex()


def base64_of(text):
    return base64.b64encode(bytes.fromhex(text)).decode()


def loosened(node):
    """As a careless sender writes it: numbers for texts, capital hex, names nobody knows, null."""
    if isinstance(node, list):
        return [loosened(child) for child in node]
    if not isinstance(node, dict):
        return node
    made = {"fromTheFuture": {"deep": [1, {}]}, "schemaUrl": None} if "value" not in node else {}
    for key, value in node.items():
        if key in IDS:
            made[key] = value.upper()
        elif key in NUMBERS and isinstance(value, list) and value and isinstance(value[0], str):
            made[key] = [int(one) for one in value]
        elif key in NUMBERS and isinstance(value, str):
            made[key] = int(value)
        else:
            made[key] = loosened(value)
    return made
