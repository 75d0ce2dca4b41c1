# SPDX-License-Identifier: Apache-2.0
"""Labels, key=value, that travel with the work: `cairn report --view contexts --context tenant`.

    with cairn.context(tenant=7, endpoint="/search"):
        answer()

    pool.submit(cairn.carried(work), argument)      # on another thread, in the context of this one
    asyncio.get_running_loop().set_task_factory(cairn.task_factory)

A task begins in the context of the one that makes it, as contextvars do, and is in its own whenever it runs, however
tasks take turns on their thread. Where nothing is recorded all of this only calls through."""
import asyncio
import collections.abc
import functools

from . import _library


class context:
    """Within it the calling thread has these labels. It is not to be left by await: a coroutine's labels are those that
    its task was made with (task_factory), or carried() was called in."""

    def __init__(self, number=None, **labels):
        self.labels, self.number = labels, number

    def __enter__(self):
        if not _library.table:
            return self
        number = self.number
        if number is None:
            number = _library.table.context_current()
        for key, value in self.labels.items():
            number = _library.table.context_with(number, key.encode(), str(value).encode())
        _library.table.context_enter(number)
        return self

    def __exit__(self, *about):
        if _library.table:
            _library.table.context_leave()


def current_context():
    """The labels of the calling thread as a number, for context(number); 0: none, or nothing is recorded."""
    return _library.table.context_current() if _library.table else 0


class _Carried(collections.abc.Coroutine):
    """A coroutine that is in its context for each of its steps."""

    def __init__(self, coroutine):
        self._coroutine, self._number = coroutine, current_context()
        self.__name__ = getattr(coroutine, "__name__", "coroutine")
        self.__qualname__ = getattr(coroutine, "__qualname__", self.__name__)

    def __getattr__(self, name):  # cr_frame and others, for debuggers
        return getattr(self._coroutine, name)

    def send(self, value):
        with context(self._number):
            return self._coroutine.send(value)

    def throw(self, *about):
        with context(self._number):
            return self._coroutine.throw(*about)

    def close(self):
        self._coroutine.close()

    def __await__(self):
        """For whoever awaits it instead of making a task of it."""
        value = problem = None
        while True:
            try:
                step = self.throw(problem) if problem else self.send(value)
            except StopIteration as end:
                return end.value
            value = problem = None
            try:
                value = yield step
            except BaseException as thrown:  # to be thrown in there
                problem = thrown


def carried(work):
    """A function, or a coroutine, that runs in the context of here and now, wherever that is."""
    if not _library.table:
        return work
    if asyncio.iscoroutine(work):
        return _Carried(work)
    number = current_context()

    @functools.wraps(work)
    def within(*arguments, **named):
        with context(number):
            return work(*arguments, **named)
    return within


def task_factory(loop, coroutine, **options):
    """For loop.set_task_factory: each task carries the context in which it was made."""
    return asyncio.Task(carried(coroutine), loop=loop, **options)
