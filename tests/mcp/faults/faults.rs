// SPDX-License-Identifier: Apache-2.0
// Five faults beside honest work: faults NAME. The line to be found has its name behind it.
use std::collections::HashMap;

struct Row {
    name: String,
    value: usize,
}

fn read_table(count: usize) -> Vec<Row> {
    (0..count).map(|i| Row { name: format!("row {}", i), value: i }).collect()
}

#[inline(never)]
fn answer(number: usize) -> usize {
    let reply = vec![number as u8; 700];
    std::hint::black_box(&reply).len()
}

#[inline(never)]
fn sessions(count: usize) {
    for i in 0..count {
        let session = Box::new([i as u8; 300]); // leak
        answer(i);
        if i % 7 == 0 {
            std::mem::forget(std::hint::black_box(session));
        }
    }
}

#[inline(never)]
fn look_ups(count: usize) -> usize {
    let mut cache: HashMap<usize, Vec<u8>> = HashMap::new();
    for i in 0..count {
        let page = cache.entry(i).or_insert_with(|| vec![1; 2000]); // cache
        std::hint::black_box(page);
        answer(i);
    }
    cache.len()
}

#[inline(never)]
fn sort_table(rows: &[Row]) -> usize {
    let keys: Vec<u64> = vec![rows.len() as u64; rows.len() * 300]; // peak
    std::hint::black_box(&keys).len()
}

#[inline(never)]
fn parse(rows: &[Row]) -> usize {
    let mut sum = 0;
    for _ in 0..100 {
        for row in rows {
            let name = row.name.clone(); // churn
            sum += std::hint::black_box(&name).len() + row.value;
        }
    }
    sum
}

#[inline(never)]
fn join(count: usize) -> usize {
    let mut text: Vec<u8> = Vec::new();
    for i in 0..count {
        text.reserve_exact(60); // grown
        text.extend_from_slice(&[i as u8; 60]);
        answer(i);
    }
    text.len()
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let rows = read_table(2000);
    let sum = match name.as_str() {
        "leak" => {
            sessions(20000);
            0
        }
        "cache" => look_ups(5000),
        "peak" => sort_table(&rows),
        "churn" => parse(&rows),
        "grown" => join(2000),
        _ => 0,
    };
    println!("{}", sum + rows.len());
}
