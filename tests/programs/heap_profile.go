// SPDX-License-Identifier: Apache-2.0
// The part of heap.go by which it keeps a profile: Go leaves that out of programs without this package.
package main

import (
	"os"
	"runtime/pprof"
)

func init() {
	write = func(path string) {
		file, err := os.Create(path)
		if err != nil {
			panic(err)
		}
		if err := pprof.WriteHeapProfile(file); err != nil {
			panic(err)
		}
		file.Close()
	}
}
