// SPDX-License-Identifier: Apache-2.0
//! What was allocated before the profiler is no part of it, unless it is resized.

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn figures() -> [u64; 6] {
    let stats = dhat::HeapStats::get();
    [
        stats.total_blocks,
        stats.total_bytes,
        stats.curr_blocks as u64,
        stats.curr_bytes as u64,
        stats.max_blocks as u64,
        stats.max_bytes as u64,
    ]
}

fn main() {
    let freed = vec![1u8; 300];
    let kept = vec![2u8; 400];
    let mut resized: Vec<u8> = Vec::with_capacity(10);
    resized.resize(10, 3);
    let profiler = dhat::Profiler::builder().testing().build();
    println!("{:?}", figures());
    drop(freed);
    println!("{:?}", figures());
    resized.reserve_exact(90);
    println!("{:?}", figures());
    resized.shrink_to_fit();
    println!("{:?}", figures());
    drop(profiler);
    drop((resized, vec![4u8; 5000], kept));
    let _profiler = dhat::Profiler::builder().testing().build();
    println!("{:?}", figures());
}
