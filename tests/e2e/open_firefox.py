#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `cairn open` in Firefox: each screen is drawn from the disk, keys and search work, nothing is asked
for, nothing goes wrong; the live one of `cairn serve` follows. tests/e2e/open_page.py looks at everything else, in Chromium."""

import os
import pathlib

import cairn_test as t
import firefox
from commanded import Commanded
from served import Server

t.need("firefox-esr")
KEY = 'document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "%s", bubbles: true, cancelable: true }));'
# Colours on a canvas: a picture that was not drawn has one.
COLOURS = """const canvas = document.querySelector("main canvas"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const seen = new Set(); for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); return seen.size;"""


def look(page, state, what):
    """Opens the page anew with a state."""
    browser.call("WebDriver:Navigate", url="about:blank")
    browser.call("WebDriver:Navigate", url=pathlib.Path(page).resolve().as_uri() + state)
    t.check(browser.wait('document.body.dataset.ready === "1"'), f"{what}: {browser.run('return document.body.innerText')[:300]}")
    browser.run('window.wrong = []; addEventListener("error", (event) => wrong.push(event.message))')


def end(what):
    t.check_equal(f"{what}: what was asked for, what went wrong",
                  browser.run('return [performance.getEntriesByType("resource").map((one) => one.name), wrong]'), [[], []])


_, leak = t.record(t.program("leak"))
t.run([str(t.BUILD / "tests/snapshots_recording"), "snapshots.cairn"])
for name, subjects in (("leak", [leak]), ("at", ["snapshots.cairn@780ms", "snapshots.cairn@3.9s"])):
    result = t.run_cairn("open", "-o", name + ".html", *subjects)
    t.check_equal(f"open {name}: {result.err.decode(errors='replace')}", result.status, 0)

browser = firefox.Firefox(os.path.abspath("firefox"))
try:
    look("leak.html", "", "overview")
    t.check("leak ended with status 3" in browser.run("return document.querySelector('main').innerText"), "overview: the trust line")
    t.check(browser.run(COLOURS) > 3, "overview: the timeline is drawn")
    end("overview")
    look("leak.html", "#view=flame&by=exit", "flame graph")
    t.check(browser.wait("document.querySelector('.flame canvas').width > 300"), "flame graph: no canvas")
    browser.run("document.querySelector('.flame canvas').focus();" + KEY % "ArrowDown" + KEY % "ArrowDown" + KEY % "Enter")
    t.check("leak_large" in browser.run("return document.querySelector('#live').textContent"), "flame graph: keys")
    t.check("zoom=" in browser.run("return location.hash"), "flame graph: Enter zooms")
    t.check(browser.run(COLOURS) > 3, "flame graph: frames are drawn")
    browser.run("const search = document.querySelector('#search'); search.value = 'leak_shared'; search.dispatchEvent(new Event('input'))")
    t.check(browser.wait("document.querySelector('.note').textContent.includes('leak_shared')"), "flame graph: search")
    end("flame graph")
    look("leak.html", "#view=table&by=exit", "table")
    t.check("leak_large" in browser.run("return document.querySelector('.t-row').innerText"), "table: the largest is first")
    browser.run("document.querySelector('.t-row').click()")
    t.check("Frames, innermost first" in browser.run("return document.querySelector('.side').innerText"), "table: details")
    end("table")
    look("at.html", "#view=flame", "two snapshots")
    browser.run("document.querySelector('.flame canvas').focus();" + KEY % "ArrowDown" + KEY % "ArrowDown")
    t.check("+4.0 MiB" in browser.run("return document.querySelector('#live').textContent"), "two snapshots: the change")
    end("two snapshots")
    with Commanded("run.cairn") as program, Server(program.pid) as server:
        program.do("early 5000")
        browser.call("WebDriver:Navigate", url=server.url + "/#view=table&by=exit")
        t.check(browser.wait("document.querySelector('.live-now')?.textContent.startsWith('live \u00b7')"), "live: no events")
        program.do("late 3000000")
        t.check(browser.wait("document.querySelector('.t-row').innerText.includes('late')"), "live: it does not follow")
finally:
    browser.close()
t.finish()
