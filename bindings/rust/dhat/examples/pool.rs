// SPDX-License-Identifier: Apache-2.0
//! A test of a pool of buffers: what it allocates, keeps and gives back, to the byte.

use std::hint::black_box;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

struct Pool {
    idle: Vec<Vec<u8>>,
    size: usize,
}

impl Pool {
    fn new(places: usize, size: usize) -> Pool {
        Pool { idle: Vec::with_capacity(places), size }
    }

    fn lend(&mut self) -> Vec<u8> {
        self.idle.pop().unwrap_or_else(|| Vec::with_capacity(self.size))
    }

    fn take_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.idle.push(buffer);
    }
}

fn check_pool() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let mut pool = Pool::new(2, 1000);
    let (first, second) = (pool.lend(), pool.lend());
    pool.take_back(first);
    pool.take_back(second);
    let cold = dhat::HeapStats::get();
    dhat::assert_eq!((cold.total_blocks, cold.max_bytes), (3, 2048));
    for round in 0..10u8 {
        let mut buffer = pool.lend();
        buffer.extend_from_slice(&[round; 900]);
        pool.take_back(buffer);
    }
    let warm = dhat::HeapStats::get();
    dhat::assert_eq!(cold, warm, "ten rounds of a warm pool allocate nothing");
    drop(pool);
    let end = dhat::HeapStats::get();
    dhat::assert_eq!((end.curr_blocks, end.curr_bytes), (0, 0));
}

fn check_equal_peaks() {
    let _profiler = dhat::Profiler::builder().testing().build();
    drop(black_box(vec![0u8; 100]));
    let one = dhat::HeapStats::get();
    let halves = black_box([vec![0u8; 50], vec![0u8; 50]]);
    let two = dhat::HeapStats::get();
    println!("peaks: {:?} {:?}", (one.max_blocks, one.max_bytes), (two.max_blocks, two.max_bytes));
    drop(halves);
}

fn check_conditions() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let name = String::from("pool");
    dhat::assert_eq!(name.to_uppercase(), "POOL");
    dhat::assert_ne!(name.repeat(2), name, "twice");
    dhat::assert!(format!("{name}s").ends_with('s'));
    let stats = dhat::HeapStats::get();
    println!("conditions: {:?}", (stats.total_blocks, stats.total_bytes));
    let handed = vec![3u8; 4096];
    std::thread::spawn(move || drop(black_box(handed))).join().unwrap();
    let stats = dhat::HeapStats::get();
    dhat::assert!(stats.curr_bytes < 4096, "{stats:?}");
}

fn main() {
    check_pool();
    check_equal_peaks();
    check_conditions();
}
