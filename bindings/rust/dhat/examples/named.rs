// SPDX-License-Identifier: Apache-2.0
//! A file of the program's choice.

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "named.json".to_string());
    let profiler = dhat::Profiler::builder().file_name(&name).trim_backtraces(Some(usize::MAX)).build();
    let kept = vec![0u16; 600];
    let gone = vec![0u32; 700];
    println!("{} {}", kept.len(), gone.len());
    drop(gone);
    drop(profiler);
    println!("{}", std::path::Path::new(&name).is_file());
    drop(kept);
}
