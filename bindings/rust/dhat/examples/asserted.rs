// SPDX-License-Identifier: Apache-2.0
//! An assertion that fails saves the profile, panics, and is the last one of its profiler.

use std::panic::{catch_unwind, AssertUnwindSafe};

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn said(work: impl FnOnce()) -> String {
    let problem = catch_unwind(AssertUnwindSafe(work)).expect_err("it did not panic");
    match problem.downcast::<String>() {
        Ok(text) => *text,
        Err(problem) => problem.downcast::<&str>().expect("a text").to_string(),
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    println!("{}", said(|| dhat::assert!(true)));
    let profiler = dhat::Profiler::builder().testing().file_name("asserted.json").build();
    let blocks = [Box::new(1u64), Box::new(2u64)];
    let stats = dhat::HeapStats::get();
    dhat::assert!(stats.curr_blocks == blocks.len());
    println!("{}", said(|| dhat::assert_eq!(stats.curr_bytes, 17, "of {} blocks", blocks.len())));
    println!("{}", said(|| dhat::assert!(true)));
    println!("{}", said(|| drop(dhat::HeapStats::get())));
    drop(profiler);
    let _profiler = dhat::Profiler::builder().testing().file_name("asserted_again.json").build();
    println!("{}", said(|| dhat::assert_ne!(2 + 2, 4)));
    drop(_profiler);
    let _profiler = dhat::Profiler::builder().testing().file_name("asserted_again.json").build();
    println!("{}", said(|| dhat::assert!(blocks.is_empty(), "{} blocks", blocks.len())));
    drop(_profiler);
    let _profiler = dhat::Profiler::new_heap();
    println!("{}", said(|| dhat::assert!(true, "out of place")));
    std::mem::forget(_profiler);
}
