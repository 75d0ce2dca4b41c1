// SPDX-License-Identifier: Apache-2.0
//! A promise that is broken, after one that was kept: only then is a file written.

use std::panic::{catch_unwind, AssertUnwindSafe};

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn join_slowly(parts: &[&str]) -> String {
    let mut joined = String::new();
    for part in parts {
        joined += part;
        joined.shrink_to_fit();
    }
    joined
}

fn said(work: impl FnOnce()) -> String {
    let problem = catch_unwind(AssertUnwindSafe(work)).expect_err("it did not panic");
    problem.downcast_ref::<String>().cloned().unwrap_or_else(|| problem.downcast_ref::<&str>().unwrap().to_string())
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    let parts = ["first", "second", "third"];
    let kept = dhat::Profiler::builder().testing().file_name("kept.json").build();
    dhat::assert!(parts.len() == 3);
    drop(kept);
    let _profiler = dhat::Profiler::builder().testing().file_name("broken.json").build();
    let joined = join_slowly(&parts);
    dhat::assert!(joined.len() == 16, "the text is whole");
    let stats = dhat::HeapStats::get();
    println!("{}", said(|| dhat::assert_eq!(stats.total_blocks, 1, "joined {} parts", parts.len())));
    println!("{:?}", ["kept.json", "broken.json"].map(|file| std::path::Path::new(file).exists()));
    println!("{}", said(|| dhat::assert!(true)));
}
