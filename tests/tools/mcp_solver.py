# SPDX-License-Identifier: Apache-2.0
"""An agent without a model: it is told a command and what is wrong with it, knows the protocol and no program, and asks cairn
mcp until it can name a line. It asks what answers name below `ask next`, and nothing else.

Its rules are those of docs/agents/SKILL.md. What rises: what is left at the end, if that is a quarter of the peak or more,
else what was held at the peak. What is too large: what was held at the peak. What allocates too often, or too much over time:
the finding of a buffer that is grown, that of short-lived blocks for "often", else who allocates most often, or most bytes.
The line is that of the innermost frame of the program's own in the first stack that is no helper: no other stack has that
place below another caller. Where an answer has one stack, those at the peak are asked for, to tell."""

import collections
import json
import re

NEXT = re.compile(r"^  ([a-z_]+) (\{.*\}): (.*)$", re.MULTILINE)
FIRST = re.compile(r"^ {1,4}(\d+) +(?:<?\d[\d.]* %|\d)")
PLACE = re.compile(r" ([^ ]+\.[a-z]+:\d+)(?: inlined)?$")
SIZE = re.compile(r"^  (?:peak heap|at exit) +([\d.]+) (B|KiB|MiB|GiB)\b", re.MULTILINE)
FINDING = re.compile(r"^  \d+ (.*)", re.MULTILINE)
LEAD = re.compile(r"^ +[<\d.]+ %.* (\S+\.[a-z]+:\d+)(?:$|  )", re.MULTILINE)
GROWN = re.compile(r"(\S+:\d+) grows (?:its buffer|buffers)")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Solved = collections.namedtuple("Solved", "line questions bytes answers")


class Solver:
    def __init__(self, client):
        self.client, self.answers = client, []
        self.own = set()  # files of the program: those of the command, and those that a summary puts at the head of stacks

    def ask(self, tool, arguments):
        text, is_error = self.client.call(tool, **arguments)
        self.answers.append((tool, arguments, text))
        assert not is_error, f"{tool} {arguments}: {text}"
        return text

    def follow(self, text, tool, **wanted):
        """Asks a question that an answer names."""
        for name, words, _ in NEXT.findall(text):
            arguments = json.loads(words)
            if name == tool and {key: value for key, value in arguments.items() if key not in ("recording", "process")} == wanted:
                return self.ask(name, arguments)
        raise AssertionError(f"no question {tool} {wanted} in {text}")

    def record(self, command, language):
        text = self.ask("record", {"command": command, **language})
        self.own |= {place.rpartition(":")[0] for place in LEAD.findall(text)} | set(command)
        return text

    def frequent(self, text, measure):
        """The line that allocates too often, or too many bytes over time."""
        found = self.follow(text, "next")
        findings = FINDING.findall(found)
        grown = next((match for line in findings if (match := GROWN.search(line))), None)
        if grown:
            return grown[1]
        if measure == "calls" and any("short-lived" in line for line in findings):
            return self.line_of(found, "top", group="temporary")
        return self.line_of(found, "top", by=measure)

    def line_of(self, text, tool, **wanted):
        """Asks for stacks, and names the line of the first."""
        stacks = self.stacks_of(self.follow(text, tool, **wanted))
        if len(stacks) == 1 and len(stacks[0]) > 1 and (tool, wanted) != ("top", {}):
            stacks += [stack for stack in self.stacks_of(self.follow(text, "top")) if stack != stacks[0]]
        return guilty_line(stacks)

    def stacks_of(self, text):
        """The places of each stack of an answer that are the program's own, the innermost first."""
        stacks = []
        for line in text.partition("\nask next:")[0].splitlines():
            if FIRST.match(line):
                stacks.append([])
            elif stacks and (place := PLACE.search(line)) and place[1].rpartition(":")[0] in self.own:
                if stacks[-1][-1:] != [place[1]]:
                    stacks[-1].append(place[1])
        return stacks

    def solve(self, command, language, symptom):
        text = self.record(command, language)
        peak, at_exit = [float(number) * UNITS[unit] for number, unit in SIZE.findall(text)[:2]]
        if symptom in ("often", "much"):
            line = self.frequent(text, "calls" if symptom == "often" else "allocated")
        elif symptom == "rises" and at_exit * 4 >= peak:
            line = self.line_of(text, "leaks")
        else:
            line = self.line_of(text, "top")
        size = sum(len(answer.encode()) for _, _, answer in self.answers)
        return Solved(line, len(self.answers), size, self.answers)


def guilty_line(stacks):
    if not stacks:
        return None
    callers = collections.defaultdict(set)
    for stack in stacks:
        for place, caller in zip(stack, [*stack[1:], None]):
            callers[place].add(caller)
    return next((place for place in stacks[0] if len(callers[place]) == 1), None)
