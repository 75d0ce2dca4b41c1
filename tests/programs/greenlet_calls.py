# SPDX-License-Identifier: Apache-2.0
"""Greenlets that switch to each other out of deep calls, between their own frames and those of C (sorted), with frames of
the hub around them; each allocation is written down by stack as sys._getframe has it: as python_calls.py does, to the file
argv[1]. argv[2]: how many switches."""
import functools
import json
import random
import sys

import greenlet

BYTES = 9973
told = {}


def leaf():
    frame, frames = sys._getframe(0), []
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    block = bytes(BYTES); line = sys._getframe(0).f_lineno
    del block
    key = tuple([(frames[0][0], frames[0][1], line)] + frames[1:])
    told[key] = told.get(key, 0) + 1


def deeper(depth, choices):
    leaf()
    if depth == 0:
        hub.switch()
    elif choices.random() < 0.3:
        sorted([2, 1], key=functools.partial(keyed, depth, choices))
    else:
        deeper(depth - 1, choices)
    leaf()


def keyed(depth, choices, number):
    deeper(depth - 1, choices)
    return number


def body(number):
    choices = random.Random(number)
    while True:
        deeper(choices.randrange(1, 6), choices)


def begin_another(number):
    """A greenlet whose parent is one that is deep in calls itself."""
    made = greenlet.greenlet(body, parent=hub)
    made.switch(number)
    return made


def run():
    choices = random.Random(7)
    living = [begin_another(number) for number in range(20)]
    for number in range(int(sys.argv[2])):
        at = choices.randrange(len(living))
        if choices.random() < 0.02:
            living[at].throw()  # it ends in the middle of its calls
            living[at] = begin_another(number + 100)
        living[at].switch()
        leaf()


hub = greenlet.getcurrent()
run()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    json.dump([[frames, calls] for frames, calls in told.items()], out)
