// SPDX-License-Identifier: Apache-2.0
// Go that has C allocate, below frames of many kinds, and counts what runtime.Callers says of each
// call: as "COUNT FUNCTION:LINE ...", innermost first, without the runtime's own. It has no "go f(x)"
// nor "defer f(x)": of the function that Go makes around such a call Callers says nothing.
package main

/*
#include <pthread.h>
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void allocate(int bytes) { void *block = malloc((size_t)bytes); kept = block; free(block); }
extern void goBack(int, int);
__attribute__((noinline)) static void call_back(int depth, int kind) { goBack(depth, kind); kept = NULL; }
static void *thread_main(void *bytes) { goBack(3, *(int *)bytes); return NULL; }
static void call_from_thread(int kind) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, thread_main, &kind)) pthread_join(thread, NULL);
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
)

var lock sync.Mutex
var counts = map[[64]uintptr]int{}

//go:noinline
func note() {
	var stack [64]uintptr
	runtime.Callers(2, stack[:])
	lock.Lock()
	counts[stack]++
	lock.Unlock()
}

type place struct{ bytes int }

type caller interface{ call(depth, kind int) }

func (p *place) call(depth, kind int) { walk(depth-1, kind/3+p.bytes) }

func (p place) leaf() { note(); C.allocate(C.int(p.bytes + 1)) }

func small(bytes int) { place{bytes}.leaf() }

func each[T any](items []T, do func(T)) {
	for _, item := range items {
		do(item)
	}
}

//export goBack
func goBack(depth, kind C.int) { walk(int(depth), int(kind)) }

//go:noinline
func large(depth, kind int) {
	var room [4096]byte
	room[kind%len(room)] = 1
	walk(depth-1, kind/5+int(room[7])-int(room[7]))
}

func walk(depth, kind int) {
	if depth <= 0 {
		small(kind % 7)
		return
	}
	switch kind % 6 {
	case 0:
		large(depth, kind)
	case 1:
		C.call_back(C.int(depth-1), C.int(kind/6))
	case 2:
		each([]int{kind / 6}, func(next int) { walk(depth-1, next) })
	case 3:
		func() {
			defer func() { walk(depth-1, kind/6) }()
			small(1)
		}()
	case 4:
		var over caller = &place{kind % 2}
		over.call(depth, kind)
	default:
		walk(depth-1, kind/6)
		small(2)
	}
}

func tell(path string) {
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	lines := []string{}
	for stack, count := range counts {
		line := strconv.Itoa(count)
		frames := runtime.CallersFrames(stack[:])
		for {
			frame, more := frames.Next()
			if frame.Function != "" && !strings.HasPrefix(frame.Function, "runtime.") {
				line += fmt.Sprintf(" %s:%d", frame.Function, frame.Line)
			}
			if !more {
				break
			}
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, strings.Join(lines, "\n"))
	out.Flush()
	file.Close()
}

func main() {
	total, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		worker := worker
		go func() {
			defer all.Done()
			for i := worker; i < total; i += 4 {
				walk(i%7, i)
			}
		}()
	}
	all.Wait()
	for i := 0; i < 20; i++ {
		C.call_from_thread(C.int(i))
	}
	tell(os.Args[1])
}
