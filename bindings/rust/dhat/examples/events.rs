// SPDX-License-Identifier: Apache-2.0
//! Events of the program's own, with a weight.

fn visit(depth: usize) -> usize {
    dhat::ad_hoc_event(depth);
    if depth == 0 {
        return 1;
    }
    visit(depth - 1) + visit(depth - 1)
}

fn main() {
    dhat::ad_hoc_event(1_000_000);
    let _profiler = dhat::Profiler::new_ad_hoc();
    println!("{} leaves", visit(10));
    let stats = dhat::AdHocStats::get();
    println!("{} events of {} units", stats.total_events, stats.total_units);
}
