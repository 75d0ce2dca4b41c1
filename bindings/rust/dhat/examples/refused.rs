// SPDX-License-Identifier: Apache-2.0
//! What cannot be is refused: two profilers, questions to none, or of the other kind.

use std::panic::{catch_unwind, AssertUnwindSafe};

#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

fn is_refused<T>(work: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    println!("no profiler: {} {}", is_refused(dhat::HeapStats::get), is_refused(dhat::AdHocStats::get));
    let heap = dhat::Profiler::builder().testing().build();
    println!("a second one: {} {}", is_refused(dhat::Profiler::new_heap), is_refused(dhat::Profiler::new_ad_hoc));
    println!("heap: {} {}", is_refused(dhat::HeapStats::get), is_refused(dhat::AdHocStats::get));
    dhat::ad_hoc_event(3);
    drop(heap);
    println!("dropped: {}", is_refused(dhat::HeapStats::get));
    let events = dhat::Profiler::builder().ad_hoc().testing().build();
    dhat::ad_hoc_event(5);
    dhat::ad_hoc_event(6);
    println!("ad hoc: {} {}", is_refused(dhat::HeapStats::get), is_refused(dhat::AdHocStats::get));
    let stats = dhat::AdHocStats::get();
    dhat::assert_eq!((stats.total_events, stats.total_units), (2, 11));
    drop(events);
}
