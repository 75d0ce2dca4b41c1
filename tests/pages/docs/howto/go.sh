# SPDX-License-Identifier: Apache-2.0
needs go gcc && export GO111MODULE=off GOCACHE=$GO_CACHE && cat >main.go <<'END' && cat >waits.go <<'END2' || return
package main

// #include <stdlib.h>
//
// static void *take(size_t n) {
//     return malloc(n); }
import "C"

import "unsafe"

var kept []unsafe.Pointer

func leaf() {
	// kept, as by a cache
	kept = append(kept, C.take(100))
}

func main() {
	for i := 0; i < 10; i++ {
		mid()
	}
}

func mid() { leaf() }
END
package main

// #include <stdlib.h>
import "C"

import (
	"os"
	"time"
)

func main() {
	for _, err := os.Stat("waits.go"); err == nil; _, err = os.Stat("waits.go") {
		C.free(C.malloc(1000))
		time.Sleep(100 * time.Millisecond)
	}
}
END2
go build -o store main.go && go build -o waits waits.go && cp store program || return
./waits &
DOC_PID=$!
if go build -o notes "$SOURCE_DIR/tests/programs/notes.go" 2>.notes; then sqlite_for_go() { :; }; fi
