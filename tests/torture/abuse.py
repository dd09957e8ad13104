# SPDX-License-Identifier: Apache-2.0
"""What hostile and unlucky clients send, byte by byte: nothing here goes through a library that would set it right.

An abuse is a function of a port.  It returns the statuses it got, which may be none: what counts is how the
server is afterwards.
"""
import gzip
import json
import re
import socket
import struct
import time

OTLP = "/v1development/profiles"
PATIENCE_S = 20
TENANT = "abuse"


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def read_all(sock):
    """Everything until the server ends the connection, or has nothing more to say."""
    said = b""
    try:
        while piece := sock.recv(65536):
            said += piece
    except OSError:
        pass
    return said


def talk(port, data):
    """Sends bytes and gives back all that is said to them, as bytes."""
    with connect(port) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return read_all(sock)


def statuses(said):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d\d\d) ", said)]


def post(port, path, body, *headers):
    head = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", "connection: close",
            f"x-scope-orgid: {TENANT}", *headers]
    return talk(port, "\r\n".join(head).encode() + b"\r\n\r\n" + body)


# ---- bombs ----

def gzip_bomb(megabytes):
    return gzip.compress(bytes(1 << 20) * megabytes, 9)


def zstd_bomb(megabytes):
    """A frame of repeated bytes: 128 KiB for four bytes."""
    block = lambda last: struct.pack("<I", last | 1 << 1 | (128 << 10) << 3)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block(0) * (8 * megabytes - 1) + block(1)


def field(number, content):
    """A length-delimited field of protobuf."""
    size, out = len(content), bytearray([number << 3 | 2])
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out) + bytes([size]) + content


def push_request(raw):
    label = lambda name, value: field(1, field(1, name) + field(2, value))
    return field(1, label(b"__name__", b"process_cpu") + label(b"service_name", b"bomb") + field(2, field(1, raw)))


def grpc_frame(message, compressed):
    return struct.pack(">BI", compressed, len(message)) + message


def form(raw):
    return (b'--b\r\nContent-Disposition: form-data; name="profile"; filename="p"\r\n\r\n' + raw + b"\r\n--b--\r\n")


def bombs(port):
    squeezed = {"gzip": gzip_bomb(200), "zstd": zstd_bomb(200)}
    proto = "content-type: application/x-protobuf"
    said = b""
    for name, bomb in squeezed.items():
        said += post(port, OTLP, bomb, proto, f"content-encoding: {name}")
        said += post(port, OTLP, bomb, "content-type: application/json", f"content-encoding: {name}")
        said += post(port, "/ingest?name=bomb", form(bomb), "content-type: multipart/form-data; boundary=b")
        said += post(port, "/api/v1/profiles?service=bomb", bomb)
        said += post(port, "/push.v1.PusherService/Push", push_request(bomb), "content-type: application/proto")
        said += post(port, "/push.v1.PusherService/Push", grpc_frame(push_request(bomb), 0),
                     "content-type: application/grpc", "te: trailers")
        service = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
        said += post(port, service, grpc_frame(bomb, 1), "content-type: application/grpc", "te: trailers",
                     f"grpc-encoding: {name}")
    many = b"".join(push_request(squeezed["gzip"][:100000] if i % 2 else squeezed["zstd"]) for i in range(40))
    said += post(port, "/push.v1.PusherService/Push", many, "content-type: application/proto")
    return statuses(said)


# ---- profiles that make no sense ----

def otlp_json(services=("odd",), time_ns=None, attributes=0, depth=1, duration=10**9):
    """One profile for each service, with so many attributes and a stack so deep."""
    strings = ["", "cpu", "nanoseconds", "f", *(f"key_{i}" for i in range(attributes))]
    profile = {
        "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
        "timeUnixNano": str(time.time_ns() if time_ns is None else time_ns),
        "durationNano": str(duration),
        "attributeIndices": list(range(1, attributes + 1)),
        "samples": [{"stackIndex": 1, "values": ["7"]}],
    }
    dictionary = {
        "stringTable": strings, "mappingTable": [{}], "linkTable": [{}], "functionTable": [{}, {"nameStrindex": 3}],
        "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
        "stackTable": [{}, {"locationIndices": [1] * depth}],
        "attributeTable": [{}] + [{"keyStrindex": 4 + i, "value": {"stringValue": f"value {i}"}}
                                  for i in range(attributes)],
    }
    resources = [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
                  "scopeProfiles": [{"profiles": [profile]}]} for name in services]
    return json.dumps({"resourceProfiles": resources, "dictionary": dictionary}).encode()


def nonsense(port):
    as_json = "content-type: application/json"
    said = b""
    for time_ns in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
        for duration in (0, 2**64 - 1):
            said += post(port, OTLP, otlp_json(time_ns=time_ns, duration=duration), as_json)
    said += post(port, OTLP, otlp_json(attributes=100000), as_json)
    said += post(port, OTLP, otlp_json(depth=1000000), as_json)
    said += post(port, OTLP, b"[" * 1000000, as_json)
    said += post(port, OTLP, b"\x0a\x80\x80\x80\x80\x08", "content-type: application/x-protobuf")
    said += post(port, OTLP, bytes(range(256)) * 4000, "content-type: application/x-protobuf")
    labels = ",".join(f"l{i}=v" for i in range(8000))
    said += post(port, f"/ingest?name=odd%7B{labels}%7D&from=99999999999999999999&until=-1", b"a;b 1\n")
    said += post(port, "/ingest?name=odd&from=0&until=18446744073709551615&sampleRate=-1",
                 b"a;b 18446744073709551616\n")
    for name in ("../../etc/passwd", "%2e%2e%2f%2e%2e", "a%00b", "%2f", "%ff%fe", "x" * 5000):
        said += post(port, f"/ingest?name={name}", b"a;b 1\n")
        said += post(port, f"/api/v1/profiles?service={name}", b"nothing")
    said += post(port, "/ingest?name=deep&format=lines", b";".join([b"f"] * 500000) + b"\n")
    return statuses(said)


# ---- HTTP/1.1 ----

SMUGGLED = b"GET /healthz HTTP/1.1\r\nhost: smuggled\r\n\r\n"
AMBIGUOUS = (
    b"content-length: 5\r\ntransfer-encoding: chunked",
    b"transfer-encoding: chunked\r\ncontent-length: 5",
    b"content-length: 5\r\ncontent-length: 6",
    b"content-length: 5, 6",
    b"content-length: +5",
    b"content-length: 0x5",
    b"content-length : 5",
    b"content-length: 5\r\n folded: 1",
    b"content-length: 99999999999999999999",
    b"transfer-encoding: xchunked",
    b"transfer-encoding: chunked, identity",
    b"transfer-encoding: identity, chunked",
    b"transfer-encoding:\x0bchunked",
    b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
    b"transfer-encoding\x00: chunked",
    b"x: 1\ncontent-length: 5",
    b"host: other\r\ncontent-length: 5",
)


def smuggle(port):
    """What two servers could understand differently: each gets one answer, a refusal, and the end, or the end."""
    wrong = []
    for headers in AMBIGUOUS:
        said = talk(port, b"POST /healthz HTTP/1.1\r\nhost: localhost\r\n" + headers + b"\r\n\r\n0\r\n\r\n" + SMUGGLED)
        if [code // 100 for code in statuses(said)] not in ([4], [5], []):
            wrong.append((headers, statuses(said)))
    for chunk in (b"5 \r\nabcde\r\n", b"-5\r\n", b"5\nabcde\r\n", b"ffffffffffffffff1\r\n", b"5\r\nabcdeXX",
                  b"0x5\r\n"):
        said = talk(port, b"POST /ingest?name=a HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" + chunk +
                    b"0\r\n\r\n" + SMUGGLED)
        if [code // 100 for code in statuses(said)] not in ([4], [5], []):
            wrong.append((chunk, statuses(said)))
    if wrong:
        raise AssertionError(f"taken for more or less than one bad request: {wrong}")
    return [400]


BEGUN = b"POST /ingest?name=a HTTP/1.1\r\nhost: localhost\r\nx-scope-orgid: abuse\r\n"


def halves(port):
    """Requests that begin and do not go on."""
    socks = []
    for i in range(200):
        try:
            sock = connect(port)
            sock.sendall((BEGUN + b"content-length: 1000000\r\n\r\n" + bytes(5000), b"GET /metr",
                          b"PRI * HTTP/2.0\r\n\r\n", b"", BEGUN + b"transfer-encoding: chunked\r\n\r\nffff\r\n")[i % 5])
            socks.append(sock)
        except OSError:
            pass
    time.sleep(1)
    for sock in socks:
        sock.close()
    return []


def unread(port):
    """Asks for much and reads nothing."""
    socks = []
    for _ in range(30):
        try:
            sock = connect(port)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.settimeout(0.2)
            sock.sendall(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
        except OSError:
            pass
        socks.append(sock)
    time.sleep(1)
    for sock in socks:
        sock.close()
    return []


def crowd(port):
    """More connections than anybody should be able to keep open."""
    socks = []
    for _ in range(1500):
        try:
            socks.append(connect(port))
        except OSError:
            break
    time.sleep(0.5)
    for sock in socks:
        sock.close()
    return []


# ---- HTTP/2 ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value, index=False):
    """A header field of HPACK, not Huffman-coded; with `index` it gets the number 62."""
    def text(data):
        if len(data) < 127:
            return bytes([len(data)]) + data
        rest, out = len(data) - 127, bytearray([127])
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        return bytes(out) + bytes([rest]) + data
    return (b"\x40" if index else b"\x00") + text(name) + text(value)


def request(method=b"GET", path=b"/metrics"):
    return (literal(b":method", method) + literal(b":scheme", b"http") + literal(b":path", path) +
            literal(b":authority", b"kiln") + literal(b"x-scope-orgid", TENANT.encode()))


def flood(port, frames, settings=b""):
    """Sends frames until the server has had enough, and how it put that."""
    with connect(port) as sock:
        sock.settimeout(2)
        try:
            sock.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
            for data in frames:
                sock.sendall(data)
        except OSError:
            pass
        return read_all(sock)


def rapid_reset():
    for i in range(20000):
        stream = 2 * i + 1
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, request()) + frame(RESET, 0, stream, bytes(4))


def endless_head():
    yield frame(HEADERS, 0, 1, request())
    for _ in range(5000):
        yield frame(CONTINUATION, 0, 1, literal(b"x", bytes([97]) * 4000))


def indexed_heads():
    yield frame(HEADERS, END_HEADERS, 1, request(b"POST", b"/ingest") + literal(b"x", b"a" * 3000, True))
    for i in range(1, 120):
        yield frame(HEADERS, END_HEADERS, 2 * i + 1, request(b"POST", b"/ingest") + b"\xbe")


def tiny_window():
    for i in range(100):
        yield frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, request())
    for _ in range(200):
        yield b"".join(frame(WINDOW, 0, 2 * i + 1, struct.pack(">I", 1)) for i in range(100))


def floods(port):
    flood(port, rapid_reset())
    flood(port, (frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 100 for _ in range(200)))
    flood(port, (frame(PING, 0, 0, bytes(8)) * 100 for _ in range(200)))
    flood(port, endless_head())
    flood(port, (frame(DATA, 0, 1) * 100 for _ in range(200)))
    flood(port, tiny_window(), struct.pack(">HI", 4, 1))
    flood(port, [frame(WINDOW, 0, 0, struct.pack(">I", 0x7fffffff)) * 2])
    flood(port, [frame(HEADERS, END_HEADERS, 1, b"\xff" * 100)])
    flood(port, [b"\xff" * 100000])
    return []


def many_heads(port):
    """Streams that wait for bodies, with heads that cost a byte to send and kilobytes to keep."""
    socks = []
    for _ in range(150):
        try:
            sock = connect(port)
            sock.sendall(PREFACE + frame(SETTINGS, 0, 0) + b"".join(indexed_heads()))
            socks.append(sock)
        except OSError:
            pass
    time.sleep(1)
    for sock in socks:
        sock.close()
    return []


ALL = (bombs, nonsense, smuggle, halves, unread, crowd, floods, many_heads)
