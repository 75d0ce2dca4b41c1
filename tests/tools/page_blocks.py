# SPDX-License-Identifier: Apache-2.0
"""The command blocks of a page of the documentation: found, run in order in one shell and one directory, and compared.

A block is fenced (`sh`) or indented. Lines that begin with `$ ` are commands, and what follows is what they print. In a
block without `$`, each line is a command, with words about it behind three blanks or a `#`; it has to end well. A line
with brackets or an ellipsis is a synopsis: its command and its options must be there.

Comments in the lines above a block say what cannot be seen in it:
    <!-- not run: REASON -->     cannot run in a test; listed with its reason, which names the test that does it
    <!-- long: TEST does it -->  takes long, and a test does the same: it is run in `make check-long` alone
    <!-- needs: PROGRAM... -->   is left out, and listed, where the page's shell does not find one of these
    <!-- status: N -->           a command of the block ends with N
    <!-- figures vary -->        all numbers of the block may be others
    <!-- any order -->           its lines may come in another order
    <!-- goes on: CONDITION -->  its first command of cairn goes on to the end of the page; the next is run once
                                 CONDITION, a command, ends well
    <!-- ended: CONDITION -->    each of its commands goes on until CONDITION ends well, and is then ended by SIGTERM

tests/pages/PAGE.sh, or default.sh there, makes what the page takes for granted. Where that file says `# alone` in its
second line, the page has processes, ports and mounts of its own. A variable DOC_WORD that it sets stands for the WORD
of the page's commands, and `stands TEXT OTHER` (common.sh) replaces any text of them. Durations, rates, addresses,
process ids, commits, resident memory and bars of a curve may be others than shown; all else is exact, but for the
number of blanks. A line `…` stands for any lines, ` …` at the end of a line for its rest."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import threading

import cairn_test as t

SETUPS = t.SOURCE / "tests/pages"
LIMIT_S = 240  # what only a hang reaches on a quiet machine
COMMAND = re.compile(r"(cairn|make|sudo|docker|kubectl|g\+\+|cc|gcc|valgrind|git|python3?|curl|apt|npm|go|duckdb|"
                     r"pytest|heaptrack|perf|bpftrace|clang\+\+|c\+\+|cp|head|sha256sum|[A-Z_]+=\S+|\./\w+|install|jq|sqlite3|cat|"
                     r"mkdir|export) ")
MARK = re.compile(r"^<!-- (not run|long|needs|status|figures vary|any order|goes on|ended)(?:: (.*?))? -->$")
SYNOPSIS = re.compile(r"\[[A-Z@|-]|\.\.\.|…| \| (NAME\b|RECORDING\b|on\b|--)")
ALONE = ["unshare", *(["--user", "--map-root-user"] if os.geteuid() else []), "--pid", "--net", "--mount", "--fork",
         "--mount-proc", "--kill-child"]
TERMINATED = 128 + signal.SIGTERM
UNITS = r"(?:ns|us|ms|s|min|h|m|d)"
VARYING = re.compile("|".join((
    rf"(?P<rate>[+-]?\d[\d.,]* ?[kKMG]?(?:iB|B)?/s)",
    rf"(?P<time>[+-]?\d[\d.,]* {UNITS}\b|\b\d[\d.]*{UNITS}\b)",
    r"(?P<hex>\b0x[0-9a-f]+\b|\b[0-9a-f]{10,16}\b(?=\W|$))",
    r"(?P<bars>[▁▂▃▄▅▆▇█]+)",
    r"(?P<pid>(?<=\.)\d{2,7}(?=\.(?:cairn|events|folded|json)\b)|(?<=\()\d{3,7}(?=\))|(?<=process )\d+|(?<=pid )\d+)",
    r"(?P<file>\(\d[\d.]* [KM]iB\)$|(?<=\.cairn \()\d[\d.]* [KM]iB(?=\)))",
    r"(?P<fit>(?<=fit )\d\.\d+)",
    r"(?P<estimate>± [\d.,]+(?: %| [KMG]iB| B)?|[\d,]+(?= samples| watched)|(?<=about )\d+(?= %)|\d+(?= % freed at once))",
)))
PATTERNS = {"rate": r"[+-]?\d[\d.,]* ?[kKMG]?(?:iB|B)?/s", "time": rf"[+-]?\d[\d.,]* ?{UNITS}", "hex": r"(?:0x)?[0-9a-f]+",
            "bars": "[▁▂▃▄▅▆▇█ ]+", "pid": r"\d+", "file": r"\(?\d[\d.]* [KM]iB\)?", "fit": r"\d\.\d+",
            "estimate": r"(?:± )?[\d.,]+(?: %| [KMG]iB| B)?"}
# Lines about what the kernel and cairn itself hold.
RESIDENT = re.compile(r"\bRSS\b|resident|cairn itself|MiB cairn|KiB cairn")
NUMBER = rf"[+-]?\d[\d.,]*(?: ?(?:(?:[KMGT]i)?B|{UNITS})\b)?(?:/s)?"
HEX = r"\b(?:0x[0-9a-f]+|(?=\d*[a-f])[0-9a-f]{10,16})\b"
# Which parts resident memory has, and whether the names of a system's libraries are installed, is the machine's.
OF_THE_MACHINE = re.compile(r"^\s*(resident  |\+ \d|read at \d|at [\d.]+ m?s$|peaks at (these|different) times: |when RSS was \d|\d+ more: --view findings$|cairn itself \d|no names for \d|\d+ of \d+ frames without|(the )?recording: /tmp)")


# A finding about pages is there if somebody looked at them in time; the lines that follow it lie further in.
OF_PAGES = re.compile(r"^\s*(?:at least )?\d\S* \w+ of .* live were never touched at ")


def without_machine(lines):
    """Lines that another machine prints as well."""
    kept, left_out = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        left_out = indent if OF_PAGES.match(line) else left_out if left_out is not None and indent > left_out else None
        if line.strip() and left_out is None and not OF_THE_MACHINE.match(line):
            kept.append(line)
    return kept


class Block:
    def __init__(self, line, kind, indent, lines, marks):
        self.line, self.kind, self.indent, self.lines, self.marks = line, kind, indent, lines, marks

    def commands(self):
        """[command, lines shown, number of its line in the block]"""
        found = []
        if any(line.startswith("$ ") for line in self.lines):
            for i, line in enumerate(self.lines):
                if line.startswith("$ "):
                    found.append([line[2:], [], i])
                elif found:
                    found[-1][1].append(line)
            for one in found:
                while one[1] and not one[1][-1].strip():
                    one[1].pop()
            return found
        if self.kind not in ("", "sh") or not self.lines or not COMMAND.match(self.lines[0] + " "):
            return []
        joined, start = "", 0
        for i, line in enumerate(self.lines):
            if line.startswith(" ") and not joined:
                continue
            start = start if joined else i
            joined += (line.lstrip() if joined else line).removesuffix("\\")
            if line.endswith("\\") or not joined.strip():
                continue
            found.append([re.sub(r"(\s{3,}|\t)\S.*$", "", joined), None, start])
            joined = ""
        return found


def blocks_of(text):
    """All blocks of a page, with the number of their first line."""
    lines, found, marks, i = text.splitlines(), [], {}, 0
    while i < len(lines):
        line = lines[i]
        if match := MARK.match(line.strip()):
            marks[match[1]], i = match[2], i + 1
            continue
        if line.startswith("```"):
            end = next(k for k in range(i + 1, len(lines)) if lines[k].startswith("```"))
            found.append(Block(i + 1, line.strip("`") or "text", 0, lines[i + 1:end], marks))
            marks, i = {}, end
        elif line.startswith("    ") and (not i or not lines[i - 1].strip() or lines[i - 1].startswith(("#", "<!--"))):
            end = i
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            found.append(Block(i, "", 4, [one[4:] for one in lines[i:end]], marks))
            marks, i = {}, end - 1
        elif line.strip():
            marks = {}
        i += 1
    return found


class Shell:
    """One shell for a page: directory, variables and children stay from command to command."""

    def __init__(self, directory, is_alone, is_whole):
        self.directory = directory
        env = t.environment({"HOME": str(directory), "XDG_CACHE_HOME": str(directory / ".cache"), "LC_ALL": "C.UTF-8",
                             "PATH": f"{directory}/.bin:{pathlib.Path(t.CAIRN).parent}:{os.environ['PATH']}",
                             "SOURCE_DIR": str(t.SOURCE), "BUILD_DIR": str(t.BUILD), "TERM": "dumb", "PAGER": "cat",
                             "CCACHE_DISABLE": "1",  # a compiler's processes are counted
                             "IS_WHOLE": "1" if is_whole else "", "SHARED": os.getcwd(), "GO_CACHE": t.GO_CACHE})
        command = [*(ALONE if is_alone else ()), "bash", "--norc", "--noprofile"]
        self.process = subprocess.Popen(command, cwd=directory, env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)

    def run(self, command):
        """Status and all that was printed."""
        place, out = self.directory / ".command", self.directory / ".out"
        place.write_text(command + "\n")
        alarm = threading.Timer(LIMIT_S * t.load(), self.kill)
        alarm.start()
        self.process.stdin.write(f". '{place}' </dev/null >'{out}' 2>&1; echo $?\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
        alarm.cancel()
        text = out.read_text("utf-8", errors="replace")
        return (int(answer) if answer else None), text

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        self.kill()
        self.process.wait()


def pattern_of(line, is_varying):
    """A shown line as an expression."""
    if is_varying or RESIDENT.search(line):
        parts = re.split(rf"({HEX}|{NUMBER}|[▁▂▃▄▅▆▇█]+)", line.strip())
        text = "".join(("[▁▂▃▄▅▆▇█ ]+" if part[0] in "▁▂▃▄▅▆▇█" else HEX if re.fullmatch(HEX, part) else NUMBER)
                       if i % 2 else re.escape(part) for i, part in enumerate(parts))
    else:
        text, at = "", 0
        line = line.strip()
        for match in VARYING.finditer(line):
            text += re.escape(line[at:match.start()]) + PATTERNS[match.lastgroup]
            at = match.end()
        text += re.escape(line[at:])
    text = re.sub(r"(\\ )+", r"\\s+", text)
    return re.compile(text.replace("…", ".*") if line.startswith("…") or line.endswith(" …") else text)


def differs(shown, printed, is_varying, is_any_order=False):
    """None, or the first line that is not as shown."""
    mine = without_machine(printed.splitlines())
    if is_any_order:
        wanted = [line for line in shown if line.strip() not in ("", "…", "...")]
        absent = [line for line in wanted
                  if not any(pattern_of(line, is_varying).fullmatch(one.strip()) for one in mine)]
        return f"shown:   {absent[0].strip()}\n    not printed" if absent else None
    at, is_any = 0, False
    for line in without_machine(shown):
        if line.strip() in ("…", "..."):
            is_any = True
            continue
        pattern = pattern_of(line, is_varying)
        while is_any and at < len(mine) and not pattern.fullmatch(mine[at].strip()):
            at += 1
        if at == len(mine) or not pattern.fullmatch(mine[at].strip()):
            return f"shown:   {line.strip()}\n    printed: {mine[at].strip() if at < len(mine) else '(nothing)'}"
        at, is_any = at + 1, False
    if at < len(mine) and not is_any:
        return f"not shown: {mine[at].strip()}"
    return None


class Page:
    """A page while it is run: `failures`, `left` (reasons of what is not run), `left_to_long`, `lacking` (what else is not,
    since the machine has no such program), `counts`. `is_whole`: with what takes long."""

    def __init__(self, name, directory, is_whole=True):
        self.name, self.is_whole = name, is_whole
        self.path = t.SOURCE / name
        self.text = self.path.read_text("utf-8")
        self.directory = directory
        self.failures, self.left, self.left_to_long, self.lacking, self.missing = [], [], [], [], None
        self.counts = {"run": 0, "compared": 0, "synopsis": 0}
        self.pids, self.written, self.stands = {}, {}, []
        setup = SETUPS / (name.removesuffix(".md") + ".sh")
        self.setup = setup if setup.exists() else SETUPS / "default.sh"

    def run(self):
        blocks = [block for block in blocks_of(self.text) if block.commands()]
        if not blocks:
            return self
        self.directory.mkdir(parents=True)
        is_alone = self.setup.read_text("utf-8").splitlines()[1].startswith("# alone")
        if is_alone and t.run([*ALONE, "true"]).status:
            self.missing = "no namespaces can be made here"
            return self
        self.shell = Shell(self.directory, is_alone, self.is_whole)
        try:
            if self.set_up():
                for block in blocks:
                    if self.shell.process.poll() is None:
                        self.run_block(block)
        finally:
            self.shell.close()
        return self

    def set_up(self):
        status, printed = self.shell.run(f". '{SETUPS}/common.sh'; . '{self.setup}'")
        if status == t.NOT_HERE:
            self.missing = printed.strip()
        elif status != 0:
            self.failures.append(f"{self.name}: tests/pages: status {status}: {printed[-2000:]}")
        if (self.directory / ".stands").exists():
            lines = (self.directory / ".stands").read_text("utf-8").splitlines()
            self.stands = sorted((line.split("\t") for line in lines), key=lambda one: -len(one[0]))
        return status == 0

    def run_block(self, block):
        where = f"{self.name}:{block.line}"
        if "not run" in block.marks:
            self.left.append((where, block.marks["not run"]))
            return
        if "long" in block.marks:
            self.left_to_long.append((where, block.marks["long"]))
            if not self.is_whole:
                return
        lacking = [word for word in block.marks.get("needs", "").split() if self.shell.run(f"type {word}")[0]]
        if lacking:
            self.lacking.append(f"{where}: {', '.join(lacking)} cannot be used here")
            return
        wanted = int(block.marks.get("status", 0))
        is_well, goes_on = False, block.marks.get("goes on")
        for command, shown, at in block.commands():
            if SYNOPSIS.search(command) and shown is None:
                self.check_synopsis(where, command)
                continue
            ready = self.ready(command)
            if "ended" in block.marks:
                ready = f"ended {shlex.quote(ready)} {shlex.quote(self.ready(block.marks['ended']))}"
            elif goes_on and command.startswith("cairn "):
                ready, goes_on = f"goes_on {shlex.quote(ready)} {shlex.quote(self.ready(goes_on))}", None
            status, printed = self.shell.run(ready)
            if "ended" in block.marks and status == TERMINATED:
                status = 0
            self.counts["run"] += 1
            if status is None:
                self.failures.append(f"{where}: no end: {command}")
                return
            is_well = is_well or status == wanted
            if status != 0 and status != wanted:
                self.failures.append(f"{where}: status {status}: {command}\n    {printed[-1500:]}")
            elif shown is not None:
                self.compare(where, block, command, shown, printed, at)
        if wanted and not is_well:
            self.failures.append(f"{where}: no command ends with {wanted}")

    def ready(self, command):
        """With this run's process ids, and what stands for words of the page."""
        def file_now(match):
            name, pid, ending = match.groups()
            if pid not in self.pids:
                known = {f"{name}.{now}.{ending}" for now in self.pids.values()}
                new = [path.name for path in self.directory.glob(f"{name}.*.{ending}") if path.name not in known]
                if len(new) == 1 and not (self.directory / match[0]).exists():
                    self.pids[pid] = new[0].split(".")[-2]
            return f"{name}.{self.pids.get(pid, pid)}.{ending}"

        for text, other in self.stands:
            command = command.replace(text, other)
        command = re.sub(r"\b([\w-]+)\.(\d{2,7})\.(cairn|events)\b", file_now, command)
        words = self.shell.run("compgen -v DOC_")[1].split()
        for word in sorted((one.removeprefix("DOC_") for one in words), key=len, reverse=True):
            command = re.sub(rf"(?<![\w$-]){word}(?![\w=])", f"$DOC_{word}", command)
        return command

    def check_synopsis(self, where, command):
        self.counts["synopsis"] += 1
        words = command.split()
        status, printed = self.shell.run(f"cairn {words[1]} --help=all")
        if words[0] != "cairn" or status != 0:
            self.failures.append(f"{where}: there is no command {words[1]}")
        for option in re.findall(r"--[a-z][a-z-]+", command):
            if option not in printed:
                self.failures.append(f"{where}: cairn {words[1]} has no {option}")

    def compare(self, where, block, command, shown, printed, at):
        self.counts["compared"] += 1
        difference = differs(shown, printed, "figures vary" in block.marks, "any order" in block.marks)
        if difference:
            self.failures.append(f"{where}: {command}\n    {difference}")
        if difference:
            self.written[block.line + at + 1] = (block.indent, len(shown), printed)
        for line, mine in zip(shown, printed.splitlines()):
            for old, new in zip(re.findall(r"\.(\d{2,7})\.cairn\b", line), re.findall(r"\.(\d{2,7})\.cairn\b", mine)):
                self.pids.setdefault(old, new)


def write(page):
    """The page with what was printed in the place of what is not so; a shortened output stays as it is."""
    lines = page.text.splitlines()
    for first, (indent, count, printed) in sorted(page.written.items(), reverse=True):
        if not any(line.strip() in ("…", "...") for line in lines[first:first + count]):
            for old, new in page.pids.items():
                printed = printed.replace(f".{new}.cairn", f".{old}.cairn")
            lines[first:first + count] = [(" " * indent + line).rstrip() for line in printed.rstrip().splitlines()]
    page.path.write_text("\n".join(lines) + "\n", "utf-8")


def pages():
    return ["README.md"] + sorted(str(path.relative_to(t.SOURCE)) for path in (t.SOURCE / "docs").rglob("*.md"))
