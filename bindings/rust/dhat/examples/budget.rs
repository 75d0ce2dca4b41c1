// SPDX-License-Identifier: Apache-2.0
//! A test of how much a function may allocate.

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn join(words: &[&str]) -> String {
    let mut joined = String::with_capacity(words.iter().map(|word| word.len() + 1).sum());
    for word in words {
        joined.push_str(word);
        joined.push('-');
    }
    joined
}

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let joined = join(&["one", "two", "three"]);
    let stats = dhat::HeapStats::get();
    dhat::assert_eq!(stats.total_blocks, 1);
    dhat::assert_eq!(stats.total_bytes, 14);
    dhat::assert!(stats.curr_bytes <= 14, "{} bytes are left", stats.curr_bytes);
    drop(joined);
    let stats = dhat::HeapStats::get();
    dhat::assert_eq!(stats.curr_blocks, 0);
    dhat::assert_ne!(stats.max_bytes, 0, "nothing was seen");
    println!("{:?}", (stats.total_blocks, stats.total_bytes, stats.max_blocks, stats.max_bytes));
}
