// SPDX-License-Identifier: Apache-2.0

// A Go program with cgo over SQLite: notes in a database in memory, and searches in them, each of which forgets to end
// its statement.
package main

/*
#cgo LDFLAGS: -lsqlite3
#include <sqlite3.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

type Store struct{ db *C.sqlite3 }

func Open() *Store {
	store := &Store{}
	name := C.CString(":memory:")
	defer C.free(unsafe.Pointer(name))
	if C.sqlite3_open(name, &store.db) != C.SQLITE_OK {
		panic("sqlite3_open")
	}
	store.run(store.prepare("create table notes(text)"))
	return store
}

func (store *Store) prepare(sql string) *C.sqlite3_stmt {
	var statement *C.sqlite3_stmt
	text := C.CString(sql)
	defer C.free(unsafe.Pointer(text))
	if C.sqlite3_prepare_v2(store.db, text, -1, &statement, nil) != C.SQLITE_OK {
		panic(sql)
	}
	return statement
}

func (store *Store) run(statement *C.sqlite3_stmt) {
	C.sqlite3_step(statement)
	C.sqlite3_finalize(statement)
}

func (store *Store) Add(note string) {
	store.run(store.prepare(fmt.Sprintf("insert into notes values('%s')", note)))
}

func (store *Store) Search(word string) int {
	statement := store.prepare(fmt.Sprintf("select text from notes where text like '%%%s%%'", word))
	found := 0
	for C.sqlite3_step(statement) == C.SQLITE_ROW {
		found++
	}
	return found // without C.sqlite3_finalize(statement)
}

func main() {
	store := Open()
	for i := 0; i < 2000; i++ {
		store.Add(fmt.Sprintf("note %d about thing %d", i, i%97))
	}
	found := 0
	for i := 0; i < 200; i++ {
		found += store.Search(fmt.Sprintf("thing %d", i%97))
	}
	fmt.Println(found)
	C.sqlite3_close(store.db)
}
