# SPDX-License-Identifier: Apache-2.0
"""Five faults beside honest work: faults.py NAME. The line to be found has its name behind it."""
import sys

kept = {}
listeners = []


def read_table(count):
    return [{"name": "row %d" % i, "value": i} for i in range(count)]


def answer(number):
    return len(b"x" * 700) + number


class Session:
    def __init__(self, number):
        self.state = bytearray(2000)  # leak
        self.number = number
        self.closed = number % 7 != 0
        if not self.closed:
            listeners.append(self)


def sessions(count):
    for i in range(count):
        Session(i)
        answer(i)


def look_up(number):
    if number not in kept:
        kept[number] = "page %d" % number * 300  # cache
    return kept[number]


def look_ups(count):
    for i in range(count):
        look_up(i)
        answer(i)
    kept.clear()


def sort_table(rows):
    keys = [bytes(40 * 1000) for row in rows]  # peak
    return len(keys)


def parse(count):
    total = 0
    for i in range(count):
        total += len(bytes(600))  # churn
    return total


def join(count):
    text = b""
    for i in range(count):
        text = text + b"a piece of it" * 8  # grown
        answer(i)
    return len(text)


name = sys.argv[1]
rows = read_table(300)
if name == "leak":
    sessions(20000)
if name == "cache":
    look_ups(5000)
if name == "peak":
    sort_table(rows)
if name == "churn":
    parse(100000)
if name == "grown":
    join(2000)
