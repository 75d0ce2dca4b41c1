// SPDX-License-Identifier: Apache-2.0
//! The library as a part of the program.
use crate::{Alloc, Table};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::fs::File;
use std::os::raw::{c_char, c_int};
use std::os::unix::io::AsRawFd;

extern "C" {
    fn cairn_embed_malloc(size: usize) -> *mut c_void;
    fn cairn_embed_calloc(count: usize, size: usize) -> *mut c_void;
    fn cairn_embed_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn cairn_embed_posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    fn cairn_embed_free(block: *mut c_void);
    fn cairn_embed_begin(variables: *const c_char) -> c_int;
    fn cairn_embed_keep(is_kept: c_int);
    fn atexit(work: extern "C" fn()) -> c_int;
    fn cairn_api(version: u32) -> *const Table;
}

/// What malloc aligns to by itself.
const MALLOC_ALIGN: usize = 16;

// The blocks are libc's, as those of System are: each function is the one that System calls.
unsafe impl GlobalAlloc for Alloc<System> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN && layout.align() <= layout.size() {
            return cairn_embed_malloc(layout.size()) as *mut u8;
        }
        let mut block = std::ptr::null_mut();
        let alignment = layout.align().max(std::mem::size_of::<usize>());
        match cairn_embed_posix_memalign(&mut block, alignment, layout.size()) {
            0 => block as *mut u8,
            _ => std::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN && layout.align() <= layout.size() {
            return cairn_embed_calloc(layout.size(), 1) as *mut u8;
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            std::ptr::write_bytes(block, 0, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        cairn_embed_free(block as *mut c_void)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN && layout.align() <= size {
            return cairn_embed_realloc(block as *mut c_void, size) as *mut u8;
        }
        let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            self.dealloc(block, layout);
        }
        moved
    }
}

pub(crate) fn table() -> &'static Table {
    // The library is linked in, and its table lives as long as the program.
    unsafe { &*cairn_api(1) }
}

/// Begins a recording that nobody asked for; `variables`: NAME=VALUE, each ended by NUL, and NUL at the end.
pub(crate) fn begin(variables: &'static [u8]) -> bool {
    unsafe { cairn_embed_begin(variables.as_ptr() as *const c_char) != 0 }
}

/// Removes the file of what `begin` began: none is written at the end.
pub(crate) fn discard() {
    unsafe { cairn_embed_keep(0) }
}

/// Has the process call it when it exits.
pub(crate) fn at_end(work: extern "C" fn()) {
    unsafe { atexit(work) };
}

/// Has the tool write this process' recording so far, in a form of `cairn export`; 0 or an errno.
pub(crate) fn report(file: &File, form: &'static [u8]) -> i32 {
    (table().report)(file.as_raw_fd(), form.as_ptr() as *const c_char, 0, 0)
}
