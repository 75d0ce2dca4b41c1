#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaks beside LeakSanitizer: the same blocks by the same functions, with the same suppression file; rules
for common libraries; --baseline; --error-exitcode."""

import json
import re

import cairn_test as t

t.need("gcc")

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *volatile sink;
#define LEAKER(name, size, count) \
    __attribute__((noinline)) static void name(void) { for (int i = 0; i < count; i++) sink = malloc(size); }
LEAKER(leak_small, 24, 100)
LEAKER(leak_large, 70000, 3)
LEAKER(leak_known_one, 50, 7)
LEAKER(leak_known_two, 60, 2)
__attribute__((noinline)) static void no_leak(void) { free(malloc(1000)); }
/* in a thread whose stack is gone at the end, and with it forgotten pointers */
static void *work(void *has_more) {
    leak_small(); leak_large(); leak_known_one(); leak_known_two(); no_leak();
    if (has_more) leak_small();
    sink = 0;
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    printf("text\n");
    pthread_create(&thread, 0, work, argc > 1 ? argv : 0);
    pthread_join(thread, 0);
    return 0;
}
"""
RULES = "# what we know\n\nleak:leak_known\nleak:^no_such_function$\n"

with open("leaker.c", "w", encoding="utf-8") as file:
    file.write(SOURCE)
with open("rules.txt", "w", encoding="utf-8") as file:
    file.write(RULES)
flags = ["-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread"]
t.check_equal("gcc", t.run(["gcc", *flags, "-o", "plain", "leaker.c"]).status, 0)
t.check_equal("gcc, lsan", t.run(["gcc", *flags, "-fsanitize=leak", "-o", "lsan", "leaker.c"]).status, 0)


def lsan(rules):
    """{function: (bytes, blocks)} and the lines of used suppressions."""
    options = "suppressions=rules.txt" if rules else ""
    result = t.run(["./lsan"], env={"LSAN_OPTIONS": options})
    text = result.err.decode()
    found = {}
    for size, blocks, body in re.findall(
            r"leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:\n(.*?)\n\n", text + "\n\n", re.S):
        function = re.findall(r"in (leak_\w+)", body)
        old = found.get(function[0] if function else body, (0, 0))
        found[function[0] if function else body] = (old[0] + int(size), old[1] + int(blocks))
    used = re.findall(r"^ +(\d+) +(\d+) (leak\S+)$", text, re.M)
    return found, sorted((int(blocks), int(size), rule) for blocks, size, rule in used)


def cairn(path, *arguments):
    found = {}
    for stack in t.report(path, "--view", "leaks", "--by", "exit", *arguments)["rows"]:
        names = t.functions(stack)
        if stack["at_exit_blocks"]:
            leaker = [name for name in names if name.startswith("leak_")]
            key = leaker[0] if leaker else names[-1]
            old = found.get(key, (0, 0))
            found[key] = (old[0] + stack["at_exit_bytes"], old[1] + stack["at_exit_blocks"])
    return found


def leaks(path, *arguments, status=0):
    result = t.run_cairn("leaks", *arguments, path)
    t.check_equal(f"leaks {arguments}: status", result.status, status)
    return result.out.decode() if not result.err else result.err.decode()


_, first = t.record(["./plain"])
_, more = t.record(["./plain", "more"])
judged, _ = lsan(False)
if not judged:
    t.cannot_run_here("LeakSanitizer does not work here")
t.check_equal("all leaks, as LeakSanitizer finds them", cairn(first), judged)
judged, used = lsan(True)
t.check_equal("suppressed, as LeakSanitizer does", cairn(first, "--suppressions", "rules.txt"), judged)
t.check_equal("the judge's suppression", used, [(9, 470, "leak_known")])
screen = leaks(first, "--suppressions", "rules.txt", "--bytes")
t.check(re.search(r"suppressed:\n +470 +9 blocks +leak_known\n", screen), f"counts: {screen}")
t.check("no_such_function" not in screen, "a rule that took nothing out is not listed")
t.check("libc: buffers of open streams" in screen, f"common rules: {screen}")
t.check("_IO_file_doallocate" in leaks(first, "--no-suppressions"), "--no-suppressions shows the buffer")

t.check_equal("--baseline: what is more", set(cairn(more, "--baseline", first)), {"leak_small"})
t.check_equal("--baseline of itself", cairn(first, "--baseline", first), {})
leaks(first, "--error-exitcode", "23", status=23)
leaks(first, "--error-exitcode", "23", "--baseline", first, status=0)
leaks(first, "--error-exitcode", "0", status=0)
for arguments, words in ((["--suppressions", "none.txt"], "none.txt"),
                         (["--suppressions", "leaker.c"], "leaker.c:5"),
                         (["--error-exitcode", "300"], "error-exitcode")):
    t.check(words in leaks(first, *arguments, status=2), f"{arguments}: does not say {words}")
t.check_equal("other views take no suppressions",
              t.run_cairn("report", "--suppressions", "rules.txt", first).status, 2)

# each view is of what is left: nothing of no_leak, and the suppressions hold
for view, shows in (("tree", ["--print"]), ("functions", []), ("lines", []), ("stacks", []), ("types", [])):
    screen = leaks(first, "--view", view, *shows, "--suppressions", "rules.txt")
    if view not in ("types", "lines"):
        t.check("leak_small" in screen and "leak_large" in screen, f"leaks --view {view}: {screen}")
    t.check("no_leak" not in screen and "leak_known_one" not in screen, f"only leaks in --view {view}: {screen}")
    t.check("at the end" in screen, f"--view {view} says of when: {screen}")
    t.check(re.search(r"suppressed:\n(.*\n)* +470 B +9 blocks +leak_known\n", screen), f"--view {view}: {screen}")
for view in ("leaks", "functions"):
    rows = json.loads(t.run_cairn("leaks", "--view", view, "--json", "--suppressions", "rules.txt", first).out)
    t.check(re.match(r"suppressed: .* blocks?$", rows["notes"][-1]), f"rows of {view} say what was suppressed: {rows['notes']}")
    t.check("leak_known_one" not in str(rows["rows"]), f"rows of {view}: only leaks")
document = json.loads(t.run_cairn("leaks", "--json", first).out)
t.check_equal("--json is ranked by what is left", document["stacks"],
              sorted(document["stacks"], key=lambda stack: -stack["at_exit_bytes"]))

# the program's own rules, read from its file at every level of optimization, and without PIE
OWN = 'const char *__lsan_default_suppressions(void) { return %s; }\n'
for number, flags in enumerate((["-O0"], ["-O2"], ["-O2", "-fcf-protection=full"],
                                ["-O1", "-no-pie", "-fno-pie"], ["-O2", "-rdynamic"])):
    with open("own.c", "w", encoding="utf-8") as file:
        file.write(SOURCE + OWN % '"# ours\\nleak:leak_known\\n"')
    t.run(["gcc", "-g", *flags, "-fno-builtin", "-pthread", "-o", f"own{number}", "own.c"])
    _, recorded = t.record([f"./own{number}"])
    shown = t.run_cairn("leaks", recorded).out.decode()
    t.check(re.search(r"9 blocks  leak_known", shown), f"own rules with {flags}: {shown}")
    t.check("leak_small" in shown and "leak_known_one" not in shown, f"own rules with {flags}: {shown}")
    shown = t.run_cairn("leaks", "--no-suppressions", recorded).out.decode()
    t.check("suppressed" not in shown, f"--no-suppressions with {flags}: {shown}")
with open("own.c", "w", encoding="utf-8") as file:
    file.write(SOURCE + OWN % 'getenv("X") ? "leak:a" : "leak:b"')
t.run(["gcc", "-g", "-fno-builtin", "-pthread", "-o", "own", "own.c"])
_, recorded = t.record(["./own"])
shown = t.run_cairn("leaks", recorded).out.decode()
t.check("does more than return a text" in shown, f"a function that computes: {shown}")
t.finish()
