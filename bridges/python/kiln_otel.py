# SPDX-License-Identifier: Apache-2.0
"""Links what profilers see of this process to the spans of OpenTelemetry's SDK for Python.

    import kiln_otel
    kiln_otel.install()                 # behind trace.set_tracer_provider(...)

or, without a line of code, OTEL_PYTHON_CONTEXT=kiln in the environment of a process that has this package.

Whenever a context is attached or detached, and whenever an event loop goes from one task to the other, the span that is
current is written to where agents look for it (OpenTelemetry's thread context, OTEP 4947), by libkiln.  Nothing is sent,
no thread is started.  A thread whose current span cannot be followed (an event loop or greenlets that this module does
not know) shows none: a sample without a link is better than one with a wrong one.
"""
import asyncio
import asyncio.events
import ctypes
import ctypes.util
import os
import pathlib
import sys

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context.context import _RuntimeContext
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext

__all__ = ["KilnRuntimeContext", "install", "uninstall"]


class _Attribute(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


def _candidates():
    if os.environ.get("KILN_LIBRARY"):
        yield os.environ["KILN_LIBRARY"]
    beside = pathlib.Path(__file__).with_name("libkiln.so")
    if beside.exists():
        yield str(beside)
    yield ctypes.util.find_library("kiln") or "libkiln.so.0"


def _load():
    """libkiln.  Its functions take a moment: they are called without letting go of the interpreter's lock."""
    failures = []
    for name in _candidates():
        try:
            library = ctypes.PyDLL(name)
        except OSError as failure:
            failures.append(str(failure))
            continue
        library.kiln_context_publish.argtypes = [ctypes.POINTER(_Attribute), ctypes.c_size_t]
        library.kiln_span_set.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint8]
        library.kiln_span_set.restype = library.kiln_span_clear.restype = None
        return library
    raise OSError(f"libkiln was not found, KILN_LIBRARY can name it: {'; '.join(failures)}")


def _texts(attributes):
    for key, value in attributes.items():
        if isinstance(value, (str, bool, int, float)):
            yield key.encode(), str(value).encode()


def _publish(library, attributes):
    pairs = [_Attribute(key, value) for key, value in _texts(attributes)]
    code = library.kiln_context_publish((_Attribute * len(pairs))(*pairs), len(pairs))
    if code < 0:
        raise OSError(-code, f"the process' context cannot be published: {os.strerror(-code)}")


def _cannot_follow():
    """Whether something switches contexts here that tells nobody."""
    loop = asyncio._get_running_loop()  # pylint: disable=protected-access
    if loop is not None and not isinstance(loop, asyncio.BaseEventLoop):
        return True
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return True
    greenlet = sys.modules.get("greenlet")
    return greenlet is not None and greenlet.getcurrent().parent is not None


class KilnRuntimeContext(_RuntimeContext):
    """A runtime context of OpenTelemetry that keeps contexts where another one does, and shows whose span is current."""

    def __init__(self, inner=None):
        self._inner = inner or ContextVarsRuntimeContext()
        self._library = _load()
        self._set, self._clear = self._library.kiln_span_set, self._library.kiln_span_clear
        self._published = False
        _follow_loops(self)

    def attach(self, context):
        token = self._inner.attach(context)
        self.show(context)
        return token

    def get_current(self):
        return self._inner.get_current()

    def detach(self, token):
        self._inner.detach(token)
        self.show(self._inner.get_current())

    def publish(self, attributes):
        _publish(self._library, attributes)
        self._published = True

    def show(self, context):
        """The thread works for the span of this context.  A span of another process is none of ours."""
        span = trace.get_current_span(context)
        ids = span.get_span_context()
        if not ids.is_valid or ids.is_remote or _cannot_follow():
            self._clear()
            return
        if not self._published:
            self._publish_of(span)
        self._set(ids.trace_id.to_bytes(16, "big"), ids.span_id.to_bytes(8, "big"), ids.trace_flags)

    def _publish_of(self, span):
        self._published = True
        resource = getattr(span, "resource", None)
        try:
            self.publish(resource.attributes if resource else {})
        except OSError:  # the program goes on without links
            pass


# ---- event loops: each callback and each step of a task runs in a context of its own ----

# pylint: disable=protected-access
_PLAIN_RUN, _PLAIN_TO_THREAD = asyncio.events.Handle._run, asyncio.to_thread
_PLAIN_CREATE_TASK = asyncio.BaseEventLoop.create_task


def _follow_loops(runtime):
    def run(handle):
        runtime.show(handle._context.run(runtime.get_current))
        try:
            return _PLAIN_RUN(handle)
        finally:
            runtime.show(runtime.get_current())

    def create_task(loop, *args, **kwargs):
        task = _PLAIN_CREATE_TASK(loop, *args, **kwargs)
        if loop.get_task_factory() is not None:  # an eager one has run the task's first step already
            runtime.show(runtime.get_current())
        return task

    def shown(func):
        def call(*args, **kwargs):
            runtime.show(runtime.get_current())
            try:
                return func(*args, **kwargs)
            finally:
                runtime._clear()
        return call

    async def to_thread(func, /, *args, **kwargs):
        return await _PLAIN_TO_THREAD(shown(func), *args, **kwargs)

    asyncio.events.Handle._run = run
    asyncio.BaseEventLoop.create_task = create_task
    asyncio.to_thread = asyncio.threads.to_thread = to_thread


def _resource():
    """Who this process is: as its provider says, else as the environment does."""
    provider = trace.get_tracer_provider()
    resource = getattr(provider, "resource", None)
    if resource is None:
        from opentelemetry.sdk.resources import Resource  # pylint: disable=import-outside-toplevel
        resource = Resource.create()
    return resource.attributes


def install(attributes=None):
    """Follows spans from now on, and publishes who this process is: the attributes, by default the provider's."""
    runtime = otel_context._RUNTIME_CONTEXT
    if not isinstance(runtime, KilnRuntimeContext):
        runtime = KilnRuntimeContext(runtime)
        otel_context._RUNTIME_CONTEXT = runtime
    runtime.publish(_resource() if attributes is None else attributes)
    runtime.show(runtime.get_current())
    return runtime


def uninstall():
    """As if it had never been installed."""
    runtime = otel_context._RUNTIME_CONTEXT
    if not isinstance(runtime, KilnRuntimeContext):
        return
    otel_context._RUNTIME_CONTEXT = runtime._inner
    asyncio.events.Handle._run = _PLAIN_RUN
    asyncio.BaseEventLoop.create_task = _PLAIN_CREATE_TASK
    asyncio.to_thread = asyncio.threads.to_thread = _PLAIN_TO_THREAD
    runtime._clear()
    runtime._library.kiln_context_withdraw()
