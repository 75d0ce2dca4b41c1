#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cairn run --frames=go changes nothing: a Go program has the same output, status, masks of signals, directory and
environment as without cairn, also where its goroutines move their stacks, are preempted by signals, and call C and
back; and a program without Go is as it was."""

import os

import cairn_test as t

LOOK = """
package main

/*
#include <stdlib.h>
static void *volatile kept;
static void allocate(int bytes) {
    void *block = malloc((size_t)bytes);
    kept = block;
    free(block);
}
extern void goBack(int);
static void call_back(int depth) { goBack(depth); }
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

//export goBack
func goBack(depth C.int) { deep(int(depth)) }

func deep(depth int) {
	var room [512]byte
	room[depth%512] = 1
	C.allocate(C.int(8 + depth))
	if depth%5 == 4 {
		C.call_back(C.int(depth - 1))
	} else if depth > 0 {
		deep(depth - 1)
	}
	runtime.KeepAlive(&room)
}

func main() {
	var all sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 300; i++ {
				deep(i % 90)
				if i%50 == 0 {
					runtime.GC()
				}
			}
		}()
	}
	all.Wait()
	text, _ := os.ReadFile("/proc/thread-self/status")
	for _, line := range strings.Split(string(text), "\\n") {
		if strings.HasPrefix(line, "SigI") || strings.HasPrefix(line, "SigC") {
			fmt.Println(line)
		}
	}
	place, _ := os.Getwd()
	names := []string{}
	for _, name := range os.Environ() {
		name = strings.Split(name, "=")[0]
		if !strings.HasPrefix(name, "CAIRN_") && name != "LD_PRELOAD" && name != "_" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	fmt.Println(place, names)
	os.Exit(7)
}
"""
OPTION = ["--frames=go"]
shell = ["sh", "-c", "exec 7</dev/null; ls /proc/self/fd | wc -l; ulimit -a; trap; exit 3"]
t.record(shell, options=OPTION)[0].check_like("no Go", t.run(shell))

if t.run(["sh", "-c", "go version && gcc --version"]).status == 0:
    place = t.fresh_path("look")
    os.mkdir(place)
    with open(f"{place}/look.go", "w", encoding="utf-8") as source:
        source.write(LOOK)
    environment = {**os.environ, "GOCACHE": t.GO_CACHE, "GO111MODULE": "off", "GOFLAGS": "", "HOME": place}
    made = t.run(["go", "build", "-o", f"{place}/look", f"{place}/look.go"], env=environment)
    t.check_equal("the program is built", made.status, 0)
    plain = t.run([f"{place}/look"])
    t.check_equal("plain", plain.status, 7)
    result, recording = t.record([f"{place}/look"], options=OPTION)
    result.check_like("recorded", plain)
    found = t.report(recording)
    t.check(any(frame["function"] == "main.deep" for stack in found["stacks"] for frame in stack["frames"]),
            "stacks have Go frames")
else:
    t.skip_part("Go is not installed (golang-go)")
t.finish()
