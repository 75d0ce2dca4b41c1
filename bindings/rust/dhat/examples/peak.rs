// SPDX-License-Identifier: Apache-2.0
//! Blocks at the peak are those of the moment at which bytes were most.

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn main() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let big = vec![1u8; 10_000];
    let next = vec![1u8; 500];
    drop(big);
    let many: Vec<Box<u64>> = (0..50).map(Box::new).collect();
    let mut grown: Vec<u32> = Vec::with_capacity(4);
    grown.extend(0..4);
    for value in 4..40 {
        grown.push(value);
    }
    let stats = dhat::HeapStats::get();
    dhat::assert_eq!(stats.max_blocks, 2);
    dhat::assert_eq!(stats.max_bytes, 10_500);
    dhat::assert_eq!(stats.curr_blocks, 53);
    println!("{} {} {} {}", stats.total_blocks, stats.total_bytes, stats.curr_blocks, stats.curr_bytes);
    println!("{} {} {}", next.len(), many.len(), grown.len());
}
