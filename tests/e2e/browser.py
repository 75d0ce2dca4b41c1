#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree on a terminal, walked through by keys in tmux: fold, search, sort, invert, callers, callees, the
source beside it; --print, NO_COLOR and a terminal that curses does not know show the printed tree."""

import os
import re

import cairn_test as t
from tmux_screen import Screen


def show(arguments, columns=100, lines=30, env=""):
    return Screen(f"{env} {t.CAIRN} report {arguments}", columns, lines)


_, path = t.record(t.program("containers", 3))
os.symlink(path, "c.cairn")
screen = show("--view tree c.cairn", columns=80)
screen.wait_for(r"at the peak, from the start", "start")
t.check(re.search(r"\? help  q leave\s*$", screen.text), f"keys, in full: {screen.text}")
t.check(re.search(r"\u25be main containers\.cc\n.*\n.*std::map<int, Item>::operator\[\]", screen.text),
        f"the largest path is unfolded: {screen.text}")
t.check(re.search(r"share +total +blocks +function", screen.text.splitlines()[1]), f"columns: {screen.text}")
screen.press("Left", r"\u25b8 main containers\.cc", "fold")
screen.press("Right", r"\u25be main containers\.cc\n.*fill_map", "unfold")
screen.press("/ u n i q u e Enter", r"fill_owned.*\n.*make_unique<Item>", "search unfolds the way")
screen.press("/ x ( Enter", r"parenthesis", "a bad expression says where")
screen.press("/ n o n e x Enter", r"nothing matches", "nothing is found")
screen.press("s", r"at the end, from the start", "sort")
screen.press("s", r"allocated, from the start", "sort again")
screen.press("i", r"by allocating function", "invert")
screen.press("i", r"from the start", "invert back")
screen.press("/ f i l l _ o w Enter", r"fill_owned containers\.cc", "search a function")
screen.press("C", r"callers of fill_owned", "callers")
screen.press("Right", r"fill_owned.*\n.* work containers\.cc:43", "the callers' tree")
screen.press("u", r"from the start", "the whole tree")
screen.press("/ f i l l _ m a p Enter", r"fill_map", "search another function")
screen.press("c", r"callees of fill_map", "callees")
t.check("fill_items" not in screen.text, f"callees are of one function: {screen.text}")
screen.press("v", r"by_number\[i\] = Item\(\)", "the source below")
screen.press("?", r"search \(regular expression\), again", "help, in full")
screen.press("q", r"callees of fill_map", "q closes the help, not the tree")
screen.press("q", r"status 0", "leave")
t.check("peak heap" in screen.text, f"what was there before: {screen.text}")

screen = show("--view tree c.cairn", columns=200)
screen.wait_for(r"main containers\.cc", "wide")
screen.press("v", r"fill_map\(count\);", "the source beside")
screen = show("--view tree c.cairn", columns=80, lines=8, env="NO_COLOR=1")
screen.wait_for(r"main containers\.cc", "small, NO_COLOR")
t.check("\033" not in screen.styled().replace("\033[1m", "").replace("\033[7m", "")
        .replace("\033[0m", "").replace("\033[2m", "").replace("\033[m", "").replace("\033[39m", "")
        .replace("\033[49m", "").replace("\033[0;7m", "").replace("\033[0;2m", "")
        .replace("\033[0;1m", ""), "NO_COLOR: no colour")
screen.press("q", r"status 0", "leave, small")
for how, env in (("--print", ""), ("", "TERM=dumb")):
    screen = show(f"--view tree {how} c.cairn", env=env)
    screen.wait_for(r"(?m)^status 0", f"printed: {how}{env}")
    t.check(re.search(r"\u251c main|\u251c fill_map|\u251c", screen.text), f"printed: {screen.text}")
screen.close()
t.finish()
