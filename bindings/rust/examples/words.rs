// SPDX-License-Identifier: Apache-2.0
//! Counts words of its own text, and keeps them: `cargo build --example words && cairn run target/debug/examples/words`.
use std::alloc::System;
use std::collections::BTreeMap;

#[global_allocator]
static A: cairn::Alloc<System> = cairn::Alloc(System);

#[inline(never)]
fn count_words(text: &str, counts: &mut BTreeMap<String, usize>) {
    for word in text.split_whitespace() {
        *counts.entry(word.to_string()).or_insert(0) += 1;
    }
}

fn main() {
    let mut counts = BTreeMap::new();
    let _region = cairn::Region::new("counting");
    for _ in 0..100 {
        count_words(include_str!("words.rs"), &mut counts);
    }
    println!("{} words", counts.len());
    std::mem::forget(counts);
}
