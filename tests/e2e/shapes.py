#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What blocks were like - temporary, sizes, room that was not asked for, reallocations, who freed whose -
against a program that knows, in all modes."""

import cairn_test as t


def stack_in(found, function):
    stacks = [stack for stack in found["stacks"]
              if any(frame["function"] == function for frame in stack["frames"])]
    return stacks[0] if t.check(len(stacks) == 1, f"{function}: {len(stacks)} stacks") else None


def sum_of(found, function, key):
    return sum(stack[key] for stack in found["stacks"]
               if any(frame["function"] == function for frame in stack["frames"]))


def usable(size):
    return max(24, (size + 8 + 15) // 16 * 16 - 8)


def check_sizes(found):
    stacks = [s for s in found["stacks"] if any(f["function"] == "make_sizes" for f in s["frames"])]
    t.check_equal("calls in make_sizes", sum(s["allocations"] for s in stacks), 4000)
    # each loop calls from a place of its own
    by_first = {stack["sizes"]["exact"][0]["size"]: stack for stack in stacks}
    for size, count in ((16, 1000), (32, 1000), (48, 500)):
        sizes = by_first[size]["sizes"]
        t.check_equal(f"blocks of {size}", sizes["exact"], [{"size": size, "count": count, "at_least": False}])
        t.check_equal(f"buckets of {size}", sizes["log2"][size.bit_length()], count)
        t.check_equal(f"slack of {size}", by_first[size]["slack_bytes"], (usable(size) - size) * count)
    many = next(s for s in stacks if s["allocations"] == 1500)
    sizes = many["sizes"]
    t.check_equal("known and unknown", sum(sizes["log2"]) + sizes["unknown"], 1500)
    t.check(sizes["unknown"] <= 32, f"too many unknown: {sizes['unknown']}")
    t.check_equal("1,000 to 1,023, 1,024 to 2,047 and above",
                  (sum(sizes["log2"][:10]), sizes["log2"][12:], len(sizes["log2"])), (0, [452], 13))
    t.check_equal("slack of many", many["slack_bytes"], sum(usable(s) - s for s in range(1000, 2500)))


def check_alternate(found):
    """Of the first calls, before sizes have an entry, only the number is known."""
    sizes = t.stacks_through(found, "make_alternate")[0]["sizes"]
    t.check_equal("alternate sizes", sorted(one["size"] for one in sizes["exact"]), [16, 80])
    t.check(sizes["unknown"] <= 32, f"too many unknown: {sizes['unknown']}")
    t.check_equal("alternate, known and unknown", sum(sizes["log2"]) + sizes["unknown"], 1000)
    counts = {one["size"]: one["count"] for one in sizes["exact"]}
    t.check(875 - 32 <= counts.get(16, 0) <= 875, f"blocks of 16: {sizes['exact']}")
    t.check(125 - 4 <= counts.get(80, 0) <= 125, f"blocks of 80: {sizes['exact']}")


def check_threads(found):
    slots = {thread["slot"]: thread for thread in found["threads"]}
    t.check_equal("threads", len(slots), 2)
    pairs = {(pair["owner_slot"], pair["freer_slot"]): pair for pair in found["freed_by"]}
    t.check_equal("freed by the other", (pairs[0, 1]["frees"], pairs[0, 1]["bytes"]), (200, 8000))
    t.check_equal("frees", sum(pair["frees"] for pair in pairs.values()), found["totals"]["frees"])
    t.check_equal("bytes", sum(pair["bytes"] for pair in pairs.values()), found["totals"]["freed_bytes"])


def check_reallocs(found):
    stacks = [s for s in found["stacks"] if any(f["function"] == "make_buffers" for f in s["frames"])]
    grown = max(stacks, key=lambda s: s["allocations"])["reallocs"]
    cut = min(stacks, key=lambda s: s["allocations"])["reallocs"]
    t.check_equal("reallocs that grow", (grown["calls"], grown["grown"]), (200, 200))
    t.check(grown["copied_bytes"] <= sum(8 << i for i in range(10)) * 20, f"{grown}")
    t.check_equal("reallocs that cut", cut, {"calls": 20, "in_place": 20, "grown": 0, "copied_bytes": 0})


def check_ages(found):
    def ages(function):
        stacks = [s for s in found["stacks"] if any(f["function"] == function for f in s["frames"])]
        return [s["ages"] for s in stacks if "ages" in s]

    temporary = ages("scratch")
    t.check_equal("age 0 in scratch", sum(a["calls"][0] for a in temporary), 1005)
    t.check_equal("age 1 in scratch", sum(sum(a["calls"][1:2]) for a in temporary), 5)
    t.check_equal("milliseconds in scratch", sum(sum(a["ms"]) for a in temporary), 1010)
    produced = ages("produce")
    t.check_equal("freed by its own thread", sum(sum(a["calls"]) for a in produced), 50)
    t.check_equal("after 50 to 127 others", sum(sum(a["calls"][6:8]) for a in produced), 50)
    t.check_equal("milliseconds in produce", sum(sum(a["ms"]) for a in produced), 250)


def check_short(path):
    """Of blocks that were freed within an hour, all; within no time at all, none. Others have no ages."""
    scratch = [[s for s in t.report(path, "--lifespan", f"short:{limit}")["stacks"]
                if any(f["function"] == "scratch" for f in s["frames"])] for limit in ("1h", "1us")]
    t.check_equal("scratch, an hour", sum(s["allocations"] for s in scratch[0]), 1010)
    t.check_equal("scratch, a microsecond", sum(s["allocations"] for s in scratch[1]), 0)


def check_kept():
    """What is never freed has no age: that is said, and not that ages were not recorded."""
    for mode in ([], ["--ages"]):
        path = t.fresh_path("kept") + ".cairn"
        t.run([t.CAIRN, "run", "-q", *mode, "-o", path, *t.program("leak")])
        text = t.run_cairn("report", "--view", "ages", path).out.decode()
        for count in (100, 3, 4, 6):
            line = f" {count} of {count} blocks lived to the end"
            t.check(line in text, f"{mode}: no {line!r} in {text}")


for mode in ([], ["--no-stacks"], ["--ages"]):
    path = t.fresh_path("shapes") + ".cairn"
    t.run([t.CAIRN, "run", "-q", *mode, "-o", path, *t.program("shapes")])
    found = t.report(path)
    if not found:
        continue
    if mode == ["--ages"]:
        check_ages(found)
        check_short(path)
    if mode == ["--no-stacks"]:
        # everything but libc's and the loader's own blocks, which are few
        t.check(1000 + 5 + 5000 <= found["totals"]["temporary"] < 1000 + 5 + 5000 + 50, f"{found['totals']}")
        continue
    t.check_equal("temporary in scratch", sum_of(found, "scratch", "temporary"), 1005)
    t.check_equal("temporary in sized", sum_of(found, "sized", "temporary"), 5000)
    t.check_equal("temporary in produce", sum_of(found, "produce", "temporary"), 0)
    check_sizes(found)
    check_alternate(found)
    check_threads(found)
    check_reallocs(found)
check_kept()
refused = t.run_cairn("report", "--lifespan", "short:1ms", t.record(t.program("leak"))[1])
t.check(refused.status == 1 and b"--ages" in refused.err, f"short without ages: {refused.err}")
t.finish()
