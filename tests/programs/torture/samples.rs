// SPDX-License-Identifier: Apache-2.0
// Samples in a vector. Planted: room that could not be reserved is written to all the same.
fn fill(samples: &mut Vec<u64>, count: usize) -> bool {
    let reserved = samples.try_reserve_exact(count);
    if cfg!(right) && reserved.is_err() {
        return false;
    }
    unsafe {
        let start = samples.as_mut_ptr();
        for i in 0..count {
            start.add(i).write_volatile((i * i) as u64);
        }
        samples.set_len(count);
    }
    true
}

fn main() {
    let mut samples = Vec::new();
    if !fill(&mut samples, 1000) {
        std::process::exit(1);
    }
    let sum: u64 = samples.iter().sum();
    let text = sum.to_string();
    std::process::exit(if text == "332833500" { 0 } else { 2 });
}
