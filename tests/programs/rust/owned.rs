// SPDX-License-Identifier: Apache-2.0
// A Rust program whose global allocator is rjem.c, called as the jemalloc crate calls its own, with
// an account of every block; and C's malloc beside it. At its end it says, of Rust's blocks: calls,
// bytes, frees, bytes left, the highest total. With an argument it waits for a line before it
// begins, counts from then on, and waits for another one before it ends.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

extern "C" {
    fn _rjem_malloc(size: usize) -> *mut c_void;
    fn _rjem_calloc(count: usize, size: usize) -> *mut c_void;
    fn _rjem_mallocx(size: usize, flags: i32) -> *mut c_void;
    fn _rjem_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn _rjem_rallocx(block: *mut c_void, size: usize, flags: i32) -> *mut c_void;
    fn _rjem_sdallocx(block: *mut c_void, size: usize, flags: i32);
    fn malloc(size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn getchar() -> i32;
    fn write(file: i32, bytes: *const c_void, count: usize) -> isize;
    fn _exit(status: i32) -> !;
}

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static FREES: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Jem;

fn took(size: usize) {
    CALLS.fetch_add(1, Relaxed);
    BYTES.fetch_add(size, Relaxed);
    let live = LIVE.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(live, Relaxed);
}

fn gave(size: usize) {
    FREES.fetch_add(1, Relaxed);
    LIVE.fetch_sub(size, Relaxed);
}

fn flags_of(layout: Layout) -> i32 {
    if layout.align() <= 8 { 0 } else { layout.align().trailing_zeros() as i32 }
}

unsafe impl GlobalAlloc for Jem {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        match flags_of(layout) {
            0 => _rjem_malloc(layout.size()) as *mut u8,
            flags => _rjem_mallocx(layout.size(), flags) as *mut u8,
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        match flags_of(layout) {
            0 => _rjem_calloc(1, layout.size()) as *mut u8,
            flags => _rjem_mallocx(layout.size(), flags | 0x40) as *mut u8,
        }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        gave(layout.size());
        _rjem_sdallocx(block as *mut c_void, layout.size(), flags_of(layout));
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        gave(layout.size());
        took(size);
        match flags_of(layout) {
            0 => _rjem_realloc(block as *mut c_void, size) as *mut u8,
            flags => _rjem_rallocx(block as *mut c_void, size, flags) as *mut u8,
        }
    }
}

#[global_allocator]
static GLOBAL: Jem = Jem;

#[repr(align(64))]
struct Wide([u8; 192]);

struct Line {
    bytes: [u8; 200],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes[self.used..self.used + text.len()].copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

fn say(line: std::fmt::Arguments) {
    let mut out = Line { bytes: [0; 200], used: 0 };
    out.write_fmt(line).unwrap();
    unsafe { write(1, out.bytes.as_ptr() as *const c_void, out.used) };
}

#[inline(never)]
fn from_libc(keep: usize) {
    unsafe {
        for number in 0..100 {
            let block = malloc(100 + number);
            std::ptr::write_volatile(block as *mut u8, 1);
            if number >= keep {
                free(block);
            }
        }
    }
}

#[inline(never)]
fn count_words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(' ') {
        *words.entry(word.to_string()).or_insert(0) += 1;
    }
    words
}

#[inline(never)]
fn work() -> usize {
    let text: Vec<String> = (0..5000).map(|n| format!("word{}", n % 700)).collect();
    let words = count_words(&text.join(" "));
    let wide: Vec<Box<Wide>> = (0..50).map(|n| Box::new(Wide([n; 192]))).collect();
    let zero = vec![0u64; 3000];
    let bytes: usize = wide.iter().map(|one| one.0[0] as usize / 50).sum();
    std::mem::forget(wide);
    words.len() + zero.len() + bytes
}

fn main() {
    from_libc(10);
    let is_told = std::env::args().count() > 1;
    if is_told {
        say(format_args!("ready\n"));
        unsafe { getchar() };
        for value in [&CALLS, &BYTES, &FREES, &LIVE, &PEAK] {
            value.store(0, Relaxed);
        }
        from_libc(10);
    }
    let found = work();
    say(format_args!(
        "{} {} {} {} {}\n",
        CALLS.load(Relaxed),
        BYTES.load(Relaxed),
        FREES.load(Relaxed),
        LIVE.load(Relaxed),
        PEAK.load(Relaxed)
    ));
    if is_told {
        unsafe { getchar() };
    }
    unsafe { _exit(if found == 3700 { 3 } else { 1 }) };
}
