// SPDX-License-Identifier: Apache-2.0
//! Words of four texts, counted in a thread each, one after the other.

use std::collections::BTreeMap;
use std::thread;

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

type Census = BTreeMap<String, usize>;

fn compose_text(seed: usize) -> String {
    let mut text = String::new();
    for at in 0..500 {
        text.push_str(&format!("Word{} ", (at * seed) % 97));
    }
    text
}

fn count_words(text: &str) -> Census {
    let mut census = Census::new();
    for word in text.split_whitespace() {
        *census.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    census
}

fn main() {
    println!("begun"); // the buffer of standard output is from before
    let _profiler = dhat::Profiler::new_heap();
    let mut all = Census::new();
    for seed in 1..=4 {
        let part = thread::spawn(move || count_words(&compose_text(seed))).join().unwrap();
        for (word, count) in part {
            *all.entry(word).or_insert(0) += count;
        }
    }
    std::mem::forget(vec![7u8; 12_345]);
    println!("{} words, {} kinds", all.values().sum::<usize>(), all.len());
}
