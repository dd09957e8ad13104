#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads orders, packs them, and keeps more of them than it should."""
import hashlib
import json
import zlib

kept = []


def make_orders(n):
    return json.dumps([{"id": i, "name": f"customer {i}", "lines": list(range(i % 20))} for i in range(n)])


def pack(text):
    return zlib.compress(text.encode(), 6)


def remember(packed):
    kept.append(bytearray(packed) * 4)


def main():
    digest = hashlib.sha256()
    for i in range(60):
        packed = pack(make_orders(1500 + i))
        digest.update(zlib.decompress(packed))
        remember(packed)
    print(f"{len(kept)} kept, {digest.hexdigest()[:16]}")


main()
