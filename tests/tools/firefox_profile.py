# SPDX-License-Identifier: Apache-2.0
"""The Firefox Profiler's processed profile (version 49), checked as strictly as its documentation describes it, and
what its native allocations say: as the profiler counts them, by address."""

import collections
import json

COLUMNS = {
    "stackTable": {"frame", "prefix", "category", "subcategory"},
    "frameTable": {"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID",
                   "implementation", "line", "column"},
    "funcTable": {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"},
    "resourceTable": {"lib", "name", "host", "type"},
    "nativeSymbols": {"libIndex", "address", "name", "functionSize"},
    "markers": {"data", "name", "startTime", "endTime", "phase", "category"},
    "samples": {"stack", "time"},
    "nativeAllocations": {"time", "weight", "stack", "memoryAddress", "threadId"},
}
NOT_COLUMNS = {"length", "weightType"}


def check(is_right, what):
    if not is_right:
        raise ValueError(what)


def refers(table, column, target, may_lack=False):
    lacking = (None, -1) if may_lack else ()
    return all(value in lacking or 0 <= value < target for value in table[column])


class Profile:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.data = json.load(file)
        meta = self.data["meta"]
        check(meta["preprocessedProfileVersion"] == 49 and meta["categories"][0]["color"] == "grey", "meta")
        [self.thread] = self.data["threads"]
        thread, strings = self.thread, self.thread["stringArray"]
        for name, columns in COLUMNS.items():
            table = thread[name]
            check({key for key in table if key not in NOT_COLUMNS} - {"weight"} == columns - {"weight"}, f"columns of {name}")
            check(all(len(table[key]) == table["length"] for key in columns if table[key] is not None), f"length of {name}")
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        check(len(set(strings)) == len(strings), "a string twice")
        check(all(prefix is None or 0 <= prefix < i for i, prefix in enumerate(stacks["prefix"])), "prefixes")
        check(refers(stacks, "frame", frames["length"]) and refers(frames, "func", functions["length"]), "frames")
        check(refers(functions, "name", len(strings)) and refers(functions, "fileName", len(strings), True), "names")
        check(refers(functions, "resource", thread["resourceTable"]["length"], True), "resources")
        check(refers(thread["resourceTable"], "lib", len(self.data["libs"])), "libraries")
        check(refers(thread["nativeAllocations"], "stack", stacks["length"], True), "stacks of allocations")
        check(isinstance(thread["pid"], str) and refers(thread["markers"], "name", len(strings)), "pid, markers")
        for counter in self.data["counters"]:
            samples = counter["samples"]
            check(len(samples["time"]) == len(samples["count"]) == samples["length"], "counter")
            check(samples["time"] == sorted(samples["time"]), "times of the counter")
        times = thread["nativeAllocations"]["time"]
        check(times == sorted(times), "times of allocations")
        self.moments = [(time, strings[name]) for time, name in zip(thread["markers"]["startTime"], thread["markers"]["name"])]

    def names(self, stack):
        """Functions of a stack, outermost first."""
        thread, found = self.thread, []
        while stack is not None:
            function = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
            found.append(thread["stringArray"][thread["funcTable"]["name"][function]])
            stack = thread["stackTable"]["prefix"][stack]
        return tuple(reversed(found))

    def events(self):
        allocations = self.thread["nativeAllocations"]
        return zip(allocations["time"], allocations["weight"], allocations["stack"], allocations["memoryAddress"])

    def retained(self, until=float("inf")):
        """Bytes by stack of what was allocated and not freed up to that time."""
        blocks, found = {}, collections.Counter()
        for time, weight, stack, address in self.events():
            if time > until:
                break
            if weight > 0:
                check(address not in blocks, "an address twice")
                blocks[address] = (weight, stack)
            else:
                check(blocks.pop(address) == (-weight, stack), "freed otherwise than allocated")
        for weight, stack in blocks.values():
            found[self.names(stack)] += weight
        return found

    def allocated(self):
        found = collections.Counter()
        for _, weight, stack, _ in self.events():
            if weight > 0:
                found[self.names(stack)] += weight
        return found

    def at_peak(self):
        return sum(self.retained(next(time for time, name in self.moments if name == "peak")).values())
