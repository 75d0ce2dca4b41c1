#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn check --series and cairn history: made-up histories of git with planted steps, each found at its commit with
its stack; equal runs (a thousand in `make check-long`, which also finds one call of ten million a hundred times) without one; histories of other projects and rewritten ones; two
writers; what is written for forges; bisection."""

import json
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree as xml

import cairn_test as t

t.need("git")
RUNS = 1000 if t.IS_LONG else 8
VARYING_RUNS = 1000 if t.IS_LONG else 14
MANY_CALLS = 10_000_000
SCRATCH = pathlib.Path.cwd()
PROGRAM = str(t.PROGRAMS / "planned")
PLAN = {"fill_map": (10, 1000), "load_table": (5, 300), "parse": (100, 64), "leak": (0, 16)}
SARIF_PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
SARIF_SCHEMA = "package/lib/schemas/sarif-2.1.0-rtm.5.json"


class Project:
    """A repository with a plan in it, and the tool run there."""

    def __init__(self, name, source=None):
        self.path = SCRATCH / name
        self.plan = dict(PLAN)
        if source:
            self.git("clone", "-q", *source, str(self.path), cwd=SCRATCH)
            return
        self.path.mkdir()
        self.git("init", "-q", "-b", "main", ".")
        (self.path / ".gitignore").write_text("*.db\n*.xml\n*.md\n*.json\n*.html\n", encoding="utf-8")

    def git(self, *words, cwd=None):
        made = subprocess.run(
            ["git", *words], cwd=cwd or self.path, check=True, stdout=subprocess.PIPE,
            env=t.environment({"GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n",
                               "GIT_COMMITTER_EMAIL": "e"}))
        return made.stdout.decode().strip()

    def write(self, **changes):
        self.plan.update(changes)
        text = "".join(f"{name} {count} {size}\n" for name, (count, size) in self.plan.items())
        (self.path / "plan").write_text(text, encoding="utf-8")

    def commit(self, subject, **changes):
        self.write(**changes)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def run(self, *words, status=0):
        result = t.run([t.CAIRN, *map(str, words)], cwd=self.path)
        text = result.out.decode() + result.err.decode()
        t.check_equal(f"cairn {' '.join(map(str, words))}: status ({text})", result.status, status)
        return text

    def record(self, *options, status=0, file="h.db"):
        return self.run("check", "--series", file, *options, "--", PROGRAM, "plan", status=status)

    def history(self, *options, file="h.db"):
        return json.loads(self.run("history", file, "--json", *options))


def steps_of(history):
    return {(step["bad"]["hash"], step["measure"]): step for step in history["steps"]}


def has_stack(step, function):
    return any(function in stack["frames"] for stack in step["stacks"])


def check_planted(seed):
    """A history with changes at some commits, of one call and more, up and down."""
    choice = random.Random(seed)
    project = Project(f"planted{seed}")
    project.commit("first")
    project.record()
    planted = {}
    for number in range(16):
        if choice.random() < 0.4:
            name = choice.choice(sorted(PLAN))
            count, size = project.plan[name]
            more = choice.choice([1, 1, 2, 7]) * (-1 if count > 10 and choice.random() < 0.4 else 1)
            planted[project.commit(f"{name} {more:+}", **{name: (count + more, size)})] = (name, more, size)
        else:
            project.commit(f"nothing {number}")
        project.record()
    found = steps_of(project.history())
    t.check(len(planted) >= 3, f"seed {seed} plants steps")
    t.check_equal(f"seed {seed}: commits with a step in calls",
                  {commit for commit, measure in found if measure == "calls"}, set(planted))
    t.check_equal(f"seed {seed}: steps elsewhere", {commit for commit, _ in found} - set(planted), set())
    for commit, (name, more, size) in planted.items():
        for measure, change in (("calls", more), ("bytes", more * size)):
            step = found.get((commit, measure))
            if not t.check(step, f"seed {seed}: {name} {more:+} at {commit}: {measure}"):
                continue
            t.check_equal(f"{name}: {measure}", step["after"] - step["before"], change)
            t.check_equal(f"{name}: one commit", step["commits"], 1)
            t.check_equal(f"{name}: the stack of {measure}",
                          [(stack["after"] - stack["before"], name in stack["frames"])
                           for stack in step["stacks"]], [(change, True)])
        if name == "leak":
            t.check((commit, "exit") in found and has_stack(found[commit, "exit"], "leak"), "a leak is one at exit")
    return project


def check_equal_runs():
    project = Project("equal")
    project.commit("first")
    for number in range(RUNS):
        if number:
            project.git("commit", "-q", "--allow-empty", "-m", f"empty {number}")
        text = project.record()
        t.check(("nothing moved" if number else "the first commit") in text, f"run {number} raises no alarm: {text}")
    history = project.history()
    t.check_equal("equal runs: commits", len(history["commits"]), RUNS)
    t.check_equal("equal runs: steps", history["steps"], [])
    with sqlite3.connect(project.path / "h.db") as database:
        sets, = database.execute("SELECT count(DISTINCT stack_set) FROM figures").fetchone()
        t.check_equal("equal runs share their stacks", sets, 1)
    t.check("no steps" in project.run("history", "h.db"), "the table says so")
    project.commit("one call", parse=(101, 64))
    text = project.record()
    t.check("parse" in text and re.search(r"calls: \d+ calls → \d+ calls, \+1\b", text), f"one call more: {text}")
    return project


def check_varying_runs():
    """Threads and samples: what varies by itself makes no steps."""
    for name, options, command in (("threads", [], t.program("freers", "threads", 4)),
                                   ("sampled", ["--sample", "--rate", "4K"], t.program("containers", 1))):
        project = Project(name)
        for number in range(VARYING_RUNS):
            project.commit(f"empty {number}")
            _, recording = t.record(command, options=[*options, *(["--seed", str(number + 1)] if options else [])])
            project.run("check", "--series", "h.db", recording)
        history = project.history()
        points = history["series"][0]["points"]
        t.check(not points[0]["is_exact"], f"{name}: figures are not exact")
        values = {point["peak"] for point in points}
        print(f"{name}: {len(values)} different peaks")
        t.check_equal(f"{name}: steps in the peak", [s for s in history["steps"] if s["measure"] == "peak"], [])


def check_one_call_of_many():
    """One call more of ten million, a hundred times in a row."""
    project = Project("many")
    commits = [project.commit("first", parse=(MANY_CALLS, 64))]
    project.record()
    for number in range(100):
        commits.append(project.commit(f"one more {number}", parse=(MANY_CALLS + number + 1, 64)))
        text = project.record()
        t.check(re.search(r"moved planned calls: .*, \+1 ", text) and "parse ← main" in text, f"{number}: {text}")
    found = {commit: step for (commit, measure), step in steps_of(project.history("--top", 0)).items() if measure == "calls"}
    t.check_equal("commits with a step in calls", set(found), set(commits[1:]))
    t.check_equal("steps", {(step["after"] - step["before"], has_stack(step, "parse")) for step in found.values()}, {(1, True)})


def check_projects(project):
    other = Project("other")
    other.commit("of another project", parse=(3, 3))
    text = other.record(file=project.path / "h.db", status=1)
    t.check("history of another project" in text, f"another project: {text}")
    t.check("in the order of recording" in other.run("history", project.path / "h.db"), "its order is not git's")
    before = project.history()
    last = before["commits"][-1]["hash"]
    project.git("commit", "-q", "--amend", "-m", "rewritten", "--allow-empty")
    text = project.record()
    t.check(f"commit {last[:10]} of the run before is no ancestor" in text, f"rewritten history: {text}")
    after = project.history()
    t.check_equal("the rewritten commit is left out", (after["commits_left_out"], last in
                                                      [c["hash"] for c in after["commits"]]), (1, False))
    t.check("history was rewritten" in project.run("history", "h.db"), "the table says that it was rewritten")
    shallow = Project("shallow", source=["--depth", "1", f"file://{project.path}"])
    shutil.copy(project.path / "h.db", shallow.path / "h.db")
    t.check("not checked" not in shallow.record(), "a shallow clone has the commit")
    shallow.git("commit", "-q", "--amend", "-m", "elsewhere")
    shallow.run("check", "--series", "h.db", "--commit", "HEAD", "--", PROGRAM, "plan")
    plain = SCRATCH / "plain"
    plain.mkdir()
    (plain / "plan").write_text("parse 1 1\n", encoding="utf-8")
    for words, status, what in (([], 2, "--commit ID says"), (["--commit", "r1"], 0, "plain.db")):
        result = t.run([t.CAIRN, "check", "--series", "plain.db", *words, "--", PROGRAM, "plan"], cwd=plain)
        text = (result.out + result.err).decode()
        t.check_equal(f"without git {words}: {text}", result.status, status)
        t.check(what in text, f"without git {words}: {text}")


def check_changes():
    project = Project("changed")
    project.commit("first")
    project.record()
    project.write(parse=(103, 64))
    t.check("with changes that are not committed" in project.record(), "changes are said")
    found = project.history()["steps"]
    t.check_equal("changes are a step", {s["bad"]["is_changed"] for s in found}, {True})
    project.commit("committed")
    project.record()
    history = project.history()
    t.check_equal("they are no part of the line later", [c["is_changed"] for c in history["commits"]], [False, False])
    t.check("not committed" in history["note"], f"which is said: {history['note']}")
    t.check_equal("the commit has the step", {s["bad"]["subject"] for s in history["steps"]}, {"committed"})


def check_runs_that_vary():
    """A test that varies by itself is run again before a figure is said to have moved; a real change is found."""
    project = Project("varying")
    (project.path / "vary.sh").write_text(f"""n=$(($(cat n) + 7)); echo $n > n
echo "parse $(($1 + n % 10)) 64" > varied
exec {PROGRAM} varied
""", encoding="utf-8")
    (project.path / "n").write_text("0\n", encoding="utf-8")
    (project.path / ".gitignore").write_text("*.db\nn\nvaried\n", encoding="utf-8")
    for number in range(6):
        project.commit(f"empty {number}")
        text = project.run("check", "--series", "h.db", "--", "sh", "vary.sh", 1000)
        t.check("moved planned" not in text, f"run {number} raises no alarm: {text}")
        t.check_equal(f"run {number}: a test that may have moved runs again", "once more" in text, number == 1)
    project.commit("more")
    text = project.run("check", "--series", "h.db", "--", "sh", "vary.sh", 1200)
    t.check("once more" in text and re.search(r"moved planned calls: .*\+20\d .*runs vary", text), f"a step: {text}")


def check_too_few_runs():
    """What is not judged is not said to be unmoved."""
    project = Project("few")
    for number, threads in enumerate((4, 6)):
        project.commit(f"empty {number}")
        _, recording = t.record(t.program("freers", "threads", threads))
        text = project.run("check", "--series", "h.db", recording)
    t.check(re.search(r"not known \S+ calls: .*1 run is before it", text), f"which figure: {text}")
    t.check("nothing moved that is known since the commit before; of " in text, f"what is not judged: {text}")
    text = project.run("history", "h.db")
    t.check("not known yet" in text and "no steps that are known" in text, f"the table: {text}")
    t.check("calls" in {one["measure"] for one in project.history()["not_known"]}, "JSON")


def check_opposite():
    """What moved the other way is named too, if the figure is not to be understood without it."""
    project = Project("opposite")
    project.commit("first")
    project.record()
    project.commit("more and less", parse=(150, 64), load_table=(1, 300))
    text = project.record()
    step = text[text.index("bytes: "):]
    t.check(re.search(r"\+3\.1 KiB  parse .*\n +-1\.2 KiB  keep . load_table ", step), f"both: {step}")
    project.commit("hardly less", parse=(300, 64), load_table=(0, 300))
    t.check("load_table" not in project.record().split("bytes: ")[1], "what is small is not named")


def check_waste():
    """Of a process, what it wastes is a figure too."""
    with t.Process([t.CAIRN, "run", "-q", "-o", "hold.cairn", "--", *t.program("hold")], env=t.environment(),
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        t.check_equal("the program holds", run.stdout.readline(), b"holding\n")
        pid, = [child for child in t.children_of(run.pid) if t.is_called(child, "hold")]
        text = t.run_cairn("check", "--series", "waste.db", "--commit", "now", "--max-waste", "100%", pid)
        t.check_equal(f"a process: {text.out} {text.err}", text.status, 0)
        run.communicate(b"", timeout=t.PATIENCE_S)
    shown = t.run_cairn("history", "waste.db", "--json")
    point, = json.loads(shown.out)["series"][0]["points"]
    t.check_equal("--series, too", t.run_cairn("history", "--series", "waste.db", "--json").out, shown.out)
    t.check_equal("both", t.run_cairn("history", "--series", "waste.db", "other.db").status, 2)
    t.check(point["waste"] is not None and point["exit"] >= 20000 * 500, f"a process: {point}")


def check_writers():
    project = Project("writers")
    project.commit("first")
    words = [t.CAIRN, "check", "--series", "h.db", "--", PROGRAM, "plan"]
    writers = [t.Process(words, cwd=project.path, env=t.environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT) for _ in range(8)]
    for writer in writers:
        out, _ = writer.communicate(timeout=t.TIMEOUT_S)
        t.check_equal(f"one of several writers: {out.decode()}", writer.returncode, 0)
    t.check_equal("runs of several writers", len(project.history()["series"][0]["points"]), len(writers))


def check_files(project):
    for name, data, what in (("text.db", b"this is no data base\n" * 100, "not a database"),
                             ("gone.db", None, "there is no history"), ("dir/x.db", None, "no history")):
        if data:
            (project.path / name).write_bytes(data)
        t.check(what in project.run("history", name, status=1), f"{name}: {what}")
        if data:
            t.check(what in project.record(file=name, status=1), f"{name} is not written over")
            t.check_equal(f"{name} stays", (project.path / name).read_bytes(), data)
    with sqlite3.connect(project.path / "foreign.db") as database:
        database.execute("CREATE TABLE t(a)")
    t.check("no history of cairn" in project.run("history", "foreign.db", status=1), "a foreign database")
    t.check("no history of cairn" in project.record(file="foreign.db", status=1), "a foreign database, written")
    (project.path / "place").mkdir()
    project.record(file="place")
    t.check((project.path / "place/cairn-history.db").exists(), "a directory gets a file")
    before = (project.path / "h.db").read_bytes()
    project.run("check", "--series", "h.db", "--", "sh", "-c", "exit 3", status=1)
    t.check_equal("what failed is not appended", (project.path / "h.db").read_bytes(), before)
    for words, what in ((["--by", "much"], "--by"), (["a.db", "b.db"], "b.db"), (["--build", "make"], "bisect"),
                        (["--", "x"], "bisect"), (["bisect"], "no command")):
        t.check(what in project.run("history", *words, status=2), f"{words}: {what}")
    t.check("no test is called" in project.run("history", "h.db", "--test", "nobody", status=1), "an unknown test")


def sarif_is_valid(path):
    try:
        import jsonschema
    except ImportError:
        t.skip_part("python3-jsonschema is not installed")
        return
    kept = t.BUILD / "sarif"
    if not (kept / SARIF_SCHEMA).exists():
        kept.mkdir(exist_ok=True)
        if not shutil.which("npm") or t.run(["npm", "pack", "--silent", SARIF_PACKAGE], cwd=kept, timeout=60).status:
            t.skip_part("npm cannot fetch the schema of SARIF")
            return
        archive, = kept.glob("*.tgz")
        t.run(["tar", "xzf", str(archive), SARIF_SCHEMA], cwd=kept)
    schema = json.loads((kept / SARIF_SCHEMA).read_text(encoding="utf-8"))
    data = json.loads(path.read_text(encoding="utf-8"))
    wrong = [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(data)]
    t.check_equal(f"{path.name} by the schema of SARIF", wrong, [])
    broken = dict(data, version="1.0")
    t.check(list(jsonschema.Draft7Validator(schema).iter_errors(broken)), "the validator finds what is wrong")


def check_benchmarks(project):
    """The newest commit's figures as github-action-benchmark and Bencher take them are those of --json."""
    project.run("history", "h.db", "--benchmark", "list.json", "--bencher", "metrics.json")
    listed = json.loads((project.path / "list.json").read_text(encoding="utf-8"))
    metrics = json.loads((project.path / "metrics.json").read_text(encoding="utf-8"))
    shown = project.history()
    newest = len(shown["commits"]) - 1
    t.check_equal("tests at the newest commit", list(metrics), ["planned"])
    series = next(one for one in shown["series"] if (one["test"], one["program"], one["region"]) == ("planned", "planned", None))
    points = [point for point in series["points"] if point["commit"] == newest]
    for name in ("calls", "exit", "bytes"):
        values = sorted(point[name] for point in points)
        value = values[len(values) // 2]
        t.check_equal(f"Bencher: {name}", metrics["planned"][name], {"value": value, "lower_value": values[0], "upper_value": values[-1]})
        found = next(one for one in listed if one["name"] == f"planned: {name}")
        t.check_equal(f"list: {name}", (found["value"], found["unit"]), (value, "calls" if name == "calls" else "bytes"))
    t.check(all(set(one) <= {"name", "unit", "value", "range", "extra"} for one in listed), f"{listed}")
    project.run("history", "h.db", "--by", "calls", "--benchmark", "list.json")
    listed = json.loads((project.path / "list.json").read_text(encoding="utf-8"))
    t.check_equal("nothing but calls", [one["name"] for one in listed], ["planned: calls"])


def check_outputs(project):
    files = ["--junit", "o.xml", "--markdown", "o.md", "--sarif", "o.json", "--annotations"]
    project.commit("more of the map", fill_map=(29, 1000))
    text = project.record(*files, "--max-calls", "5", "--max-peak", "1G", status=1)
    source = "tests/programs/planned.c"
    t.check(re.search(r"::error file=.*planned\.c,line=\d+,title=cairn%3A memory calls::planned calls: .*%0A", text),
            f"the budget is an annotation: {text}")
    t.check(re.search(r"::notice file=.*planned\.c,line=\d+,title=cairn%3A memory peak::", text), "the step is one")
    data = json.loads((project.path / "o.json").read_text(encoding="utf-8"))
    results = data["runs"][0]["results"]
    t.check_equal("SARIF: levels", {(r["ruleId"], r["level"]) for r in results} >= {
        ("memory/calls", "error"), ("memory/peak", "note")}, True)
    places = [r["locations"][0]["physicalLocation"] for r in results if "locations" in r]
    t.check(places and all(p["artifactLocation"]["uri"].endswith(source) and p["region"]["startLine"] > 1
                           for p in places), f"SARIF: places {places}")
    sarif_is_valid(project.path / "o.json")
    suite = xml.parse(project.path / "o.xml").getroot().find("testsuite")
    cases = {(c.get("name"), c.find("failure") is not None) for c in suite}
    t.check(cases >= {("calls", True), ("peak", False)}, f"JUnit: {cases}")
    t.check("| moved | planned | peak |" in (project.path / "o.md").read_text(encoding="utf-8"), "Markdown")
    project.record()  # --max-calls failed the check, not the program: both runs are kept
    text = project.run("history", "h.db", *files, "--error-exitcode", "9", "--html", "o.html", status=9)
    t.check("::error file=" in text, f"a step up is an error of the history: {text}")
    sarif_is_valid(project.path / "o.json")
    suite = xml.parse(project.path / "o.xml").getroot().find("testsuite")
    t.check(int(suite.get("failures")) >= 1 and "fill_map" in suite[0].find("failure").text, "JUnit of the history")
    page = (project.path / "o.html").read_text(encoding="utf-8")
    t.check("fill_map" in page and "<script" not in page and "http" not in page, "the page needs nothing else")
    t.check(page.count("<figure>") == page.count("</figure>") >= 5, "the page has a chart for each figure")
    project.commit("less & <less>", fill_map=(5, 1000))
    project.record()
    project.run("history", "h.db", "--error-exitcode", "9", "--html", "o.html", status=0)
    page = (project.path / "o.html").read_text(encoding="utf-8")
    t.check("less &amp; &lt;less&gt;" in page and "<less>" not in page, "the page escapes")
    lines = project.run("history", "h.db", "--by", "calls", "--bytes").splitlines()
    t.check(any("calls" in line and "█" in line for line in lines), f"a line of the table: {lines}")


def check_bisect():
    project = Project("bisected")
    project.commit("first")
    project.record()
    commits = [project.commit(f"work {number}", **({"load_table": (6, 300)} if number == 7 else {}))
               for number in range(12)]
    project.record()
    step, = [s for s in project.history()["steps"] if s["measure"] == "calls"]
    t.check_equal("the step's range", step["commits"], 12)
    t.check("cairn history bisect" in project.run("history", "h.db"), "bisect is named")
    (project.path / "plan").write_text("", encoding="utf-8")
    t.check("files differ" in project.run("history", "bisect", "--series", "h.db", "--", PROGRAM, "plan", status=1),
            "changes are not lost")
    project.git("checkout", "-q", "plan")
    text = project.run("history", "bisect", "--series", "h.db", "--by", "calls", "--build", "test -f plan", "--",
                       PROGRAM, "plan")
    t.check(f"{commits[7][:10]}  work 7" in text and "load_table" in text, f"bisect: {text}")
    step, = [s for s in project.history()["steps"] if s["measure"] == "calls"]
    t.check_equal("what it measured is kept", (step["bad"]["hash"], step["commits"]), (commits[7], 1))
    t.check_equal("the work tree is as it was", project.git("rev-parse", "--abbrev-ref", "HEAD"), "main")
    text = project.run("history", "bisect", "--series", "h.db", "--", PROGRAM, "plan", status=1)
    t.check("each step is of one commit" in text, f"nothing to bisect: {text}")


for number in (1, 2) if t.IS_LONG else (1,):
    check_planted(number)
equal = check_equal_runs()
if t.IS_LONG:
    check_one_call_of_many()
check_varying_runs()
check_runs_that_vary()
check_too_few_runs()
check_changes()
check_opposite()
check_waste()
check_writers()
check_outputs(equal)
check_benchmarks(equal)
check_files(equal)
check_bisect()
check_projects(equal)
t.finish()
