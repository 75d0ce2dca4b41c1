// SPDX-License-Identifier: Apache-2.0
//! Threads that allocate at once; what they hand over is freed elsewhere.

use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

#[repr(align(64))]
struct Line([u8; 64]);

fn main() {
    let (sender, receiver) = mpsc::channel::<Vec<Box<Line>>>();
    let ready = std::sync::Arc::new(std::sync::Barrier::new(5));
    let workers: Vec<_> = (0..4u8)
        .map(|id| {
            let (sender, ready) = (sender.clone(), ready.clone());
            thread::spawn(move || {
                ready.wait();
                let mut lines = Vec::with_capacity(1000);
                for _ in 0..1000 {
                    lines.push(Box::new(Line([id; 64])));
                    drop(Box::new(id));
                }
                sender.send(lines).unwrap();
                ready.wait();
            })
        })
        .collect();
    drop(sender);
    let profiler = dhat::Profiler::builder().testing().build();
    ready.wait();
    let mut lines: Vec<Vec<Box<Line>>> = Vec::with_capacity(4);
    for _ in 0..4 {
        lines.push(receiver.recv().unwrap());
    }
    let full = dhat::HeapStats::get();
    println!("{}", full.total_blocks >= 4 * (1 + 2000) + 1 && full.total_blocks < 4 * 2001 + 40);
    println!("{}", full.curr_bytes >= 4 * 72_000 + 96 && full.curr_bytes < 4 * 72_000 + 9_000);
    println!("{}", lines.iter().flatten().map(|line| line.0[0] as usize).sum::<usize>());
    drop(lines);
    let left = dhat::HeapStats::get();
    println!("{}", full.curr_blocks - left.curr_blocks);
    println!("{}", full.curr_bytes - left.curr_bytes);
    println!("{}", left.max_bytes >= full.curr_bytes);
    drop(profiler);
    ready.wait();
    for worker in workers {
        worker.join().unwrap();
    }
}
