#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Claims against programs that know the truth (tests/truth). Each source is built as twins: of the one the claim is made,
with values as the program's own ledger has them, of the other it is not made. `both`: it is made of both, and its values
tell the two apart. `saves`: the mended program (MENDED, the setting of `fix`, or the twin) has saved what the claim promised,
within a fifth. `make check` builds and runs the twins of each source's first line of flags, `make check-long` all.
Every claim of the table (tool/answer/claims.def) has both twins."""

import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess

import attached
import cairn_test as t

SOURCES = sorted(one for one in (t.SOURCE / "tests/truth").iterdir() if one.suffix in (".c", ".cc"))
KEYS = re.findall(r'^CLAIM\(\w+, "(\w+)"', (t.SOURCE / "tool/answer/claims.def").read_text("utf-8"), re.M)
WITHIN = 0.2
FEW = ("--top", "1")  # nothing here looks at stacks, of which a report may have a GiB
AT_ONCE = 4  # most of them wait
TWINS = t.BUILD / "tests/truth"
WORDS = ("claim", "flags", "run", "run-0", "run-1", "both", "saves", "fix", "needs", "file", "view")


def header_of(source):
    """What the comment at the beginning of a source says."""
    found = {word: [] for word in WORDS}
    for line in source.read_text("utf-8").splitlines():
        match = re.match(r"// ([\w-]+): (.*)", line)
        if match and match[1] in found:
            found[match[1]].append(match[2])
    return found


def ledger_of(out):
    """{name: (least, most) or text} as the program printed it."""
    return {name: text if quoted else (float(least), float(most)) for name, quoted, text, least, most in
            re.findall(r'^ledger (\w+) (?:(")([^"\n]*)"|(\S+) (\S+))$', out, re.M)}


def agrees(value, wanted):
    if isinstance(wanted, str):
        return (value or "") == wanted if not wanted else (value or "").startswith(wanted)
    return value is not None and wanted[0] <= value <= wanted[1]


class Twin:
    """One program of a pair, run and reported."""

    def __init__(self, source, number, holds):
        self.head, self.holds = header_of(source), holds
        self.name = f"{source.stem} {self.head['flags'][number]}, {'true' if holds else 'false'}"
        self.path = f"{source.stem}-{number}-{int(holds)}.cairn"
        self.program = str(TWINS / f"{source.stem}-{number}-{int(holds)}")
        self.claim, self.report, self.ledger = None, None, {}
        self.said = ""  # by another screen than those of cairn report

    def run(self, env=None):
        options = " ".join([*self.head["run"], *self.head[f"run-{int(self.holds)}"]]).split()
        command = [t.CAIRN, "run", "-q", *options, "-o", self.path, self.program]
        ways = {"core save": self.save, "import": self.import_file, "view": self.look, "attach": self.attach, "now": self.look_now, "history": self.follow, "diff": self.compare}
        how = ways.get("".join(self.head["file"]), None)
        out = how(command) if how else t.run(command, env=env).out.decode()
        self.ledger = ledger_of(out)
        self.measured = {name: float(value) for name, value in re.findall(r"^measured (\w+) (\S+)$", out, re.M)}
        self.report = self.report or t.report(self.path, *FEW)
        if self.report and "processes" in self.report:
            self.report = self.report["processes"][0]
        wanted = self.head["claim"][0]
        self.claim = next((one for one in self.report["claims"] if one["key"] == wanted), None)

    def import_file(self, command):
        """Instead of a recording an import of the file that the program writes."""
        out = t.run([self.program, self.path + ".trace"]).out.decode()
        t.check_equal(f"{self.name}: import", t.run_cairn("import", "-o", self.path, self.path + ".trace").status, 0)
        return out

    def meanwhile(self, command, do):
        """What the program prints; `do` is called with its pid while it waits."""
        with t.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment()) as process:
            out = process.stdout.readline().decode()
            while not out.endswith("ready\n"):
                out += process.stdout.readline().decode()
            do(next(iter(t.children_of(process.pid)), process.pid))
            process.stdin.close()
            process.wait()
        return out

    def save(self, command):
        """Instead of a recording the file of `cairn core save`, made while the program waits."""
        def save(pid):
            saved = t.run_cairn("core", str(pid), "save", self.path + ".saved")
            t.check_equal(f"{self.name}: save", saved.status, 0)
        out = self.meanwhile(command, save)
        self.end = t.report(self.path, *FEW)
        self.path += ".saved"
        return out

    def attach(self, _):
        """Instead of a recording from the start one of cairn attach, which begins while the program waits."""
        begun = []
        out = self.meanwhile([self.program], lambda pid: begun.append(attached.Attached(pid, "--exact")))
        self.path = begun[0].path
        begun[0].process.communicate(timeout=t.PATIENCE_S)
        return out

    def look(self, command):
        """Instead of a recording a view of the process, that of the claim's name or another one, while it waits."""
        def look(pid):
            view = ("report", "--view", (self.head["view"] or self.head["claim"])[0])
            self.report = json.loads(t.run_cairn(*view, "--json", str(pid)).out)
            self.said = t.run_cairn(*view, "--print", str(pid)).out.decode()
        return self.meanwhile(command, look)

    def look_now(self, _):
        """Instead of a recording what cairn says of the process that nobody records, while it waits."""
        def look(pid):
            self.report = json.loads(t.run_cairn("report", "--json", str(pid)).out)
            self.said = t.run_cairn("report", str(pid)).out.decode()
        return self.meanwhile([self.program], look)

    def compare(self, command):
        """Instead of one recording the difference of two: the program is told which it is."""
        sides = [self.path.replace(".cairn", f"-{side}.cairn") for side in ("before", "after")]
        for side, path in zip(("before", "after"), sides):
            out = t.run([*command[:command.index("-o") + 1], path, self.program, side]).out.decode()
        self.report = json.loads(t.run_cairn("diff", "--json", *sides).out)
        self.said = t.run_cairn("diff", *sides).out.decode()
        return out

    def follow(self, command):
        """Instead of a recording the history of two commits: the program is told which it is. "new": tests of other names."""
        store, is_new = self.path + ".db", "new" in command
        for side in ("before", "after"):
            path = self.path.replace(".cairn", f"-{side}.cairn")
            out = t.run([t.CAIRN, "run", "-q", "-o", path, self.program, side]).out.decode()
            test = side if is_new else "test"
            said = t.run_cairn("check", "--series", store, "--commit", side, "--test", test, path).out.decode()
        self.report = json.loads(t.run_cairn("history", "--json", store).out)
        self.said = said + t.run_cairn("history", store).out.decode()
        is_said = {"moved": not self.holds, "not_moved": self.holds, "may_have_moved": False}[self.head["claim"][0]]
        t.check(("nothing moved since" in said) == is_said, f"{self.name}: {said}")
        return out

    def has(self, key):
        return any(one["key"] == key for one in self.report["claims"])

    def pictures(self):
        return [one for one in (self.report["rss"]["at_peak"], self.report["rss"]["last"]) if one]

    def least_live(self):
        return min((one["heap_live_bytes"] for one in self.pictures()), default=math.inf)

    def misses(self):
        """Why the program cannot be judged here; None: it can."""
        needs = " ".join(self.head["needs"]).split()
        if "looks" in needs and len(self.report["rss"]["points"]) <= 3:
            return "resident memory was not looked at often enough"
        if "looks" in needs and self.holds and not self.has("resident") and self.head["claim"][0] != "resident":
            return "resident memory was not looked at near its peak"
        if "look-within" in needs and not (self.claim and agrees(self.claim["evidence"]["at_ns"], self.ledger["at_ns"])):
            return "resident memory was not looked at in the time that is meant"
        is_asked = "ages-clock" in needs and self.holds
        if is_asked and self.report["trust"]["ages_error_ms"] > 100:
            return "the clock of ages was late"
        if "look-when-freed" in needs and self.holds and self.least_live() > 0.5 * self.report["peak"]["bytes"]:
            return "resident memory was not looked at after the frees"
        if "look-at-peak" not in needs:
            return self.misses_pages(needs)
        pictures = self.pictures()
        if all(one["heap_live_bytes"] < 0.9 * self.report["peak"]["bytes"] for one in pictures):
            return "resident memory was not looked at when most of it was there"
        return self.misses_pages(needs)

    @staticmethod
    def misses_pages(needs):
        """The same of what the kernel does."""
        if "small-pages" in needs and "[always]" in open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii").read():
            return "the kernel gives huge pages to everybody"
        return None

    def check_values(self, names=None):
        for name, wanted in self.ledger.items():
            if names and name not in names:
                continue
            value = self.claim["evidence"].get(name)
            t.check(name in self.claim["evidence"] and agrees(value, wanted), f"{self.name}: {name} is {value!r}, not {wanted}")


def value_at(twin, path):
    value = getattr(twin, "end", None) or twin.report | {"measured": twin.measured}
    for key in path.split("."):
        value = value[key]
    return value


def mended_of(true, false, source, number):
    """The program mended as its source says, or with the setting that the claim tells; else the twin is it."""
    is_built = "MENDED" in source.read_text("utf-8")
    if not is_built and not true.head["fix"]:
        return false
    mended = Twin(source, number, True)
    mended.path = mended.path.replace(".cairn", "-fixed.cairn")
    if is_built:
        mended.program = str(TWINS / f"{source.stem}-mended")
    mended.run(env=dict(one.split("=", 1) for one in true.head["fix"]))
    return mended


def check_saving(true, mended):
    what, path = true.head["saves"][0].split()
    promised = true.claim["saves"][what]
    saved = value_at(true, path) - value_at(mended, path)
    is_kept = promised <= (1 + WITHIN) * saved if true.claim["saves"]["is_least"] else abs(promised - saved) <= WITHIN * saved
    t.check(is_kept, f"{true.name}: {promised} {what} promised, {saved} saved")


def check_pair(source, number):
    """Runs both and compares; what is said of them."""
    twins = [Twin(source, number, holds) for holds in (True, False)]
    if twins[0].head["file"] == ["attach"] and os.uname().machine != "x86_64":
        t.skip_part(f"{twins[0].name}: cairn attach is tried on x86-64")
        return twins
    for twin in twins:
        twin.run()
        reason = twin.misses()
        if reason:
            t.skip_part(f"{twin.name}: {reason}")
            return twins
    true, false = twins
    found = ", ".join(one["key"] for one in true.report["claims"])
    if not t.check(true.claim, f"{true.name}: no claim, but {found}"):
        return twins
    true.check_values()
    both = " ".join(true.head["both"]).split()
    if not both:
        t.check(not false.claim, f"{false.name}: {false.claim and false.claim['sentence']}")
    elif t.check(false.claim, f"{false.name}: no claim, but {', '.join(one['key'] for one in false.report['claims'])}"):
        false.check_values()
        for name in both:
            t.check(not agrees(false.claim["evidence"][name], true.ledger[name]), f"{source.stem}: {name} does not tell them apart")
    if true.head["saves"] and (number == 0 or "MENDED" not in source.read_text("utf-8")):
        check_saving(true, mended_of(true, false, source, number))
    return twins


def check_texts(twins):
    """The sentence on the screen is that of the claim."""
    true = twins[0]
    if not true.claim or (true.head["file"] and not true.said):
        return
    more = {"heap": ["pages"], "thread_accounts": ["threads"]}
    usual = ["growth"] if true.claim["key"].startswith("growth_") else ["findings", "growth"]
    views = more.get(true.claim["key"], usual)
    said = true.said or t.run_cairn("report", true.path).out.decode()
    for view in [] if true.said else views:
        said += t.run_cairn("report", "--view", view, true.path).out.decode()
    words, sentence = " ".join(said.split()), " ".join(true.claim["sentence"].split())
    told = {"growth_stopped": "flat since", "kept_pages": "on pages without: free memory in arenas"}.get(true.claim["key"], sentence)
    if true.claim["key"] == "growth":  # the view that the finding leads to begins with what grows
        first = re.search(r"^  1 (.*)$", said[said.index("stacks grow" if "stacks grow" in said else "stack grows"):], re.M)
        t.check(first and first[1].startswith("+"), f"{true.name}: the view begins with {first and first[1]}")
    if true.claim["key"].startswith("now_"):  # the process was looked at twice
        told, words = (re.sub(r"[\d.]+", "0", text) for text in (told, words))
    t.check(told in words, f"{true.name}: the screen does not say: {told}\n{said}")


def check_moments(twin):
    """What stacks held at the peak is in the picture over time too, where no snapshot was taken then; and the moment from
    which it may have been as high is among the figures, from which the page has it."""
    t.check_equal("peak.from_ns", twin.report["peak"]["from_ns"], twin.claim["evidence"]["from_ns"])
    said = t.run_cairn("report", "--view", "timeline", twin.path).out.decode()
    for name in ("first_load", "second_load"):
        t.check(re.search(rf"32\.0 MiB at most +{name}", said), f"{name} does not hold all of it:\n{said}")


covered = [header_of(source)["claim"][0] for source in SOURCES]
t.check_equal("claims with twins", sorted(set(covered)), sorted(KEYS))
wanted = os.environ.get("TRUTH", "").split()  # those of these sources alone, by hand
is_whole = t.IS_LONG or bool(wanted)
pairs = [(source, number) for source in SOURCES for number in range(len(header_of(source)["flags"]) if is_whole else 1)
         if not wanted or source.stem in wanted]
if is_whole:
    TWINS = pathlib.Path("twins").resolve()
    for source in {source for source, _ in pairs}:
        made = t.run([str(t.SOURCE / "dev/build-twins.sh"), str(source), str(TWINS)])
        t.check_equal(f"{source.stem} is built: {made.err.decode()}", made.status, 0)
with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    done = list(pool.map(lambda pair: check_pair(*pair), pairs))
for (_, number), twins in zip(pairs, done):
    if number == 0:
        check_texts(twins)
    if twins[0].head["claim"] == ["peak"] and "from_ns" in twins[0].head["both"][0]:
        check_moments(twins[0])
t.finish()
