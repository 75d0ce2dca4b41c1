// SPDX-License-Identifier: Apache-2.0
//! Each way to get a block: zeroed, aligned, resized, shared, and of no bytes.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::rc::Rc;
use std::sync::Arc;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

struct Nothing;

fn show(what: &str, begin: &dhat::HeapStats) {
    let now = dhat::HeapStats::get();
    println!(
        "{what}: {} blocks, {} bytes, {} live",
        now.total_blocks - begin.total_blocks,
        now.total_bytes - begin.total_bytes,
        now.curr_bytes as i64 - begin.curr_bytes as i64
    );
}

fn main() {
    let _profiler = dhat::Profiler::new_heap();
    let begin = dhat::HeapStats::get();
    let zeroed = vec![0u8; 4096];
    show("zeroed", &begin);
    let (shared, counted) = (Arc::new([1u8; 100]), Rc::new(5u64));
    show("shared", &begin);
    let none = (Box::new(Nothing), Vec::<u64>::new(), String::new());
    show("of no bytes", &begin);
    unsafe {
        let wide = Layout::from_size_align(1000, 4096).unwrap();
        let first = alloc(wide);
        let cleared = alloc_zeroed(wide);
        println!("{} {} {}", first as usize % 4096, cleared as usize % 4096, *cleared.add(999));
        *first = 42;
        show("aligned", &begin);
        let more = realloc(first, wide, 3000);
        println!("{} {}", more as usize % 4096, *more);
        show("resized", &begin);
        dealloc(more, Layout::from_size_align(3000, 4096).unwrap());
        dealloc(cleared, wide);
    }
    show("given back", &begin);
    println!("{} {} {} {}", zeroed.len(), shared.len(), counted, none.1.len());
}
