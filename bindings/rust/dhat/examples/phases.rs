// SPDX-License-Identifier: Apache-2.0
//! Two phases of a program, each with a profiler and a file of its own.

use std::hint::black_box;
use std::path::Path;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn nest(depth: usize) -> Vec<u64> {
    match depth {
        0 => black_box(vec![9; 64]),
        _ => black_box(nest(depth - 1)),
    }
}

fn main() {
    std::panic::set_hook(Box::new(|info| drop(info.to_string()))); // what it allocates is not counted
    println!("begun");
    let file = Path::new(".").join("load.json");
    let loading = dhat::Profiler::builder().file_name(&file).build();
    let rows: Vec<Vec<u32>> = (0..100).map(|row| vec![row; 25]).collect();
    dhat::assert_is_panic(dhat::Profiler::new_heap, "dhat: creating a profiler while a profiler is already running");
    println!("{}", file.exists());
    drop(loading);
    println!("{}", file.exists());

    let name = format!("deep-{}.json", rows.len());
    let deepening = dhat::Profiler::builder().trim_backtraces(Some(4)).file_name(name.clone()).build();
    drop(rows); // of the first phase
    drop(nest(30));
    println!("{:?}", dhat::HeapStats::get());
    drop(deepening);
    println!("{}", Path::new(&name).exists());
}
