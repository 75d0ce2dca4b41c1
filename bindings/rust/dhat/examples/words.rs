// SPDX-License-Identifier: Apache-2.0
//! The form of a program that is profiled: an allocator, and a profiler that lives as long as main.

use std::collections::BTreeMap;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn count(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_string()).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let _profiler = dhat::Profiler::new_heap();
    let counts = count("the cairn on the hill and the cairn by the sea");
    let twice = vec![7u8; 1000];
    let stats = dhat::HeapStats::get();
    println!("{} words, {} bytes", counts.len(), twice.len());
    println!("{} bytes live in {} blocks", stats.curr_bytes, stats.curr_blocks);
}
