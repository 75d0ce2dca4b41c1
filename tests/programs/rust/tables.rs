// SPDX-License-Identifier: Apache-2.0
// Hash tables with places that were left, and with more that never were full: only some of the
// places have an element.
use std::collections::HashMap;
use std::io::Read;

const ALL: u64 = 1000;
const LEFT: u64 = 300;

fn main() {
    let mut names: HashMap<u64, String> = HashMap::new();
    for i in 0..ALL {
        names.insert(i, format!("a name that is long enough for the heap {}", i));
    }
    for i in LEFT..ALL {
        names.remove(&i);
    }
    let mut lists: HashMap<u32, Vec<u32>> = HashMap::with_capacity(500);
    for i in 0..10u32 {
        lists.insert(i, vec![i; 100]);
    }
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("{} {}", names.len(), lists.len());
}
