# SPDX-License-Identifier: Apache-2.0
"""Allocates at the end of 100,000 calls of every kind and writes, by stack as sys._getframe has it, how often: to the
file argv[1] as JSON, [[[function, file, line], ...] innermost first, calls]. The block has a size that no other has.
argv[2]: how many calls. Threads, coroutines, generators, sub-interpreters; for every Python from 3.8 on."""
import asyncio
import contextlib
import functools
import itertools
import json
import os
import random
import sys
import threading
import traceback

BYTES = 9973
told, lock = {}, threading.Lock()
compared = 0


def leaf():
    global compared
    frame, frames = sys._getframe(0), []
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    block = bytes(BYTES); line = sys._getframe(0).f_lineno
    del block
    key = tuple([(frames[0][0], frames[0][1], line)] + frames[1:])
    with lock:
        told[key] = told.get(key, 0) + 1
    if compared < 200:
        compared += 1
        shown = [(entry.name, entry.filename, entry.lineno) for entry in reversed(traceback.extract_stack())][1:]
        assert [(name.rsplit(".", 1)[-1], file, line) for name, file, line in frames][1:] == shown, (frames, shown)


def plain(depth, choices):
    step(depth - 1, choices)


class Thing:
    def __init__(self, depth, choices):
        step(depth - 1, choices)

    def method(self, depth, choices):
        step(depth - 1, choices)

    @staticmethod
    def static(depth, choices):
        step(depth - 1, choices)

    @property
    def attribute(self):
        step(self.depth - 1, self.choices)

    def __lt__(self, other):
        step(self.depth - 1, self.choices)
        return True


def make(depth, choices):
    thing = Thing.__new__(Thing)
    thing.depth, thing.choices = depth, choices
    return thing


def generate(depth, choices):
    step(depth - 1, choices)
    yield 1
    step(depth - 1, choices)


def delegate(depth, choices):
    yield from generate(depth, choices)


async def inner(depth, choices):
    step(depth - 1, choices)


async def awaiting(depth, choices):
    await inner(depth, choices)


async def asynchronous(depth, choices):
    step(depth - 1, choices)
    yield 1


async def iterating(depth, choices):
    async for _ in asynchronous(depth, choices):
        step(depth - 1, choices)


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


@contextlib.contextmanager
def managed(depth, choices):
    step(depth - 1, choices)
    try:
        yield
    finally:
        step(0, choices)


def entered(depth, choices):
    with managed(depth, choices):
        step(0, choices)


def failing(depth, choices):
    try:
        raise ValueError(depth)
    except ValueError:
        step(depth - 1, choices)
    finally:
        step(0, choices)


def evaluated(depth, choices):
    eval("step(depth - 1, choices)", {"step": step, "depth": depth, "choices": choices})


KINDS = [
    plain,
    lambda depth, choices: step(depth - 1, choices),
    lambda depth, choices: Thing(depth, choices),
    lambda depth, choices: make(depth, choices).method(depth, choices),
    Thing.static,
    lambda depth, choices: make(depth, choices).attribute,
    lambda depth, choices: sorted([make(depth, choices), make(depth, choices)]),
    lambda depth, choices: list(generate(depth, choices)),
    lambda depth, choices: sum(delegate(depth, choices)),
    lambda depth, choices: drive(awaiting(depth, choices)),
    lambda depth, choices: drive(iterating(depth, choices)),
    lambda depth, choices: [step(depth - 1, choices) for _ in range(1)],
    lambda depth, choices: {step(depth - 1, choices): 1 for _ in range(1)},
    lambda depth, choices: list(map(functools.partial(plain, depth), [choices])),
    functools.partial(plain),
    functools.lru_cache(maxsize=0)(plain),
    entered,
    failing,
    evaluated,
]


def step(depth, choices):
    if depth <= 0 or remaining[0] <= 0:
        remaining[0] -= 1
        leaf()
    else:
        KINDS[choices.randrange(len(KINDS))](depth, choices)


class Choices(random.Random):
    __hash__ = object.__hash__


remaining = [0]


def calls(count, kinds):
    """Ways down that choices of so many kinds lead, again and again."""
    remaining[0] = count
    for way in itertools.count():
        choices = Choices(way % kinds)
        step(choices.randrange(1, 6), choices)
        if remaining[0] <= 0:
            break


async def task(seed):
    for _ in range(20):
        await asyncio.sleep(0)
        await awaiting(2, Choices(seed))


async def tasks():
    await asyncio.gather(*(task(seed) for seed in range(5)))


def subinterpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return
    path = sys.argv[1] + ".sub"
    text = """
import json, sys
def tell():
    frame, frames = sys._getframe(0), []
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    block = bytes(%d); line = sys._getframe(0).f_lineno
    frames[0] = (frames[0][0], frames[0][1], line)
    json.dump(frames, open(%r, "w"))
def outer():
    tell()
outer()
""" % (BYTES, path)
    name = interpreters.create()
    failed = interpreters.run_string(name, text)
    assert not failed, failed
    frames = tuple(tuple(frame) for frame in json.load(open(path)))
    os.unlink(path)
    told[frames] = told.get(frames, 0) + 1
    interpreters.destroy(name)


calls(int(sys.argv[2]), 500)
asyncio.run(tasks())
threads = [threading.Thread(target=calls, args=(50, kinds)) for kinds in (3, 5, 7)]
for thread in threads:
    thread.start()
    thread.join()
subinterpreter()
json.dump([[frames, count] for frames, count in told.items()], open(sys.argv[1], "w"))
