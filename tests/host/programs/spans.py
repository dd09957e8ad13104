#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: spans.py LIBRARY [install]

Works for spans of OpenTelemetry's SDK until it is killed: two threads (0, 1), four tasks of an event loop (2 to 5) that
take turns within their spans, and a thread that these wait for (6, for whoever asked).  Which function of LIBRARY
(burning.c) burns says whose span it is; the first bytes of a span's id say the same.
"""
import asyncio
import contextvars
import ctypes
import sys
import threading

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

BURNING = ctypes.CDLL(sys.argv[1])
WHO = contextvars.ContextVar("who", default=(0, 0))


class TellingIds(IdGenerator):
    """Ids whose first two bytes are who works and how deep, and one more."""

    def __init__(self):
        self.random = RandomIdGenerator()

    def generate_trace_id(self):
        return self.random.generate_trace_id()

    def generate_span_id(self):
        who, deep = WHO.get()
        return (who + 1) << 56 | deep << 48 | self.random.generate_span_id() >> 16


def burn(who, deep):
    BURNING[f"burn_{who}_{deep}"]()


def span(who, deep):
    WHO.set((who, deep))
    return TRACER.start_as_current_span(f"{who}-{deep}")


def thread(who):
    while True:
        burn(who, 0)
        with span(who, 1):
            burn(who, 1)
            with span(who, 2):
                burn(who, 2)
            burn(who, 1)


async def task(who):
    while True:
        burn(who, 0)
        await asyncio.sleep(0)
        with span(who, 1):
            burn(who, 1)
            await asyncio.sleep(0)
            burn(who, 1)
            with span(who, 2):
                await asyncio.sleep(0.0001)
                burn(who, 2)
                await asyncio.sleep(0)
            burn(who, 1)
            if who == 5:
                with span(6, 2):
                    await asyncio.to_thread(burn, 6, 2)


async def tasks():
    await asyncio.gather(*(task(who) for who in range(2, 6)))


trace.set_tracer_provider(TracerProvider(resource=Resource.create({"service.name": "spans-py"}),
                                         id_generator=TellingIds()))
TRACER = trace.get_tracer("spans")
if sys.argv[2:] == ["install"]:
    import kiln_otel
    kiln_otel.install()
for number in range(2):
    threading.Thread(target=thread, args=(number,), daemon=True).start()
asyncio.run(tasks())
