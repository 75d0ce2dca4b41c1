// SPDX-License-Identifier: Apache-2.0
// A program of Go with a heap of its own: lists, buffers and maps, in use and not. It writes the profile that
// Go's library makes of it to the file that is named, prints how many objects of each size there are, and waits
// for its input to end. Without a file it keeps no profile at all.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

type node struct {
	next *node
	data [100]byte
}

var list *node
var buffers [][]byte
var table = map[string][]int{}
var write func(path string)

func push() { list = &node{next: list} } // is inlined

//go:noinline
func grow(count int) {
	for i := 0; i < count; i++ {
		push()
	}
}

//go:noinline
func fill(count, size int) {
	for i := 0; i < count; i++ {
		buffers = append(buffers, make([]byte, size))
	}
}

//go:noinline
func deep(level, count int) {
	if level > 0 {
		deep(level-1, count)
		return
	}
	for i := 0; i < count; i++ {
		table[fmt.Sprint(i)] = make([]int, 10)
	}
}

//go:noinline
func forget(count int) {
	for i := 0; i < count; i++ {
		_ = fmt.Sprint("forgotten ", i)
	}
}

func main() {
	grow(100000)
	fill(300, 100000)
	fill(2000, 3000)
	deep(50, 20000)
	func() { forget(100000) }()
	runtime.GC()
	runtime.GC()
	debug.SetGCPercent(-1)
	if write != nil {
		write(os.Args[1])
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	println("all", stats.HeapInuse)
	for _, class := range stats.BySize {
		if class.Mallocs > class.Frees {
			println("size", class.Size, class.Mallocs-class.Frees)
		}
	}
	println("ready")
	os.Stdin.Read(make([]byte, 1))
	fmt.Println(len(buffers), len(table), list.data[0])
}
