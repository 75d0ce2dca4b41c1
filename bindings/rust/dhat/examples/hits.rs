// SPDX-License-Identifier: Apache-2.0
//! Misses of a cache, weighed by what each costs.

use std::collections::BTreeMap;

struct Cache {
    squares: BTreeMap<u32, u64>,
}

impl Cache {
    fn square(&mut self, of: u32) -> u64 {
        *self.squares.entry(of).or_insert_with(|| {
            dhat::ad_hoc_event(of as usize);
            u64::from(of) * u64::from(of)
        })
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    dhat::ad_hoc_event(1_000_000); // before the profiler
    let mut cache = Cache { squares: BTreeMap::new() };
    {
        let _profiler = dhat::Profiler::new_ad_hoc();
        let up: u64 = (1..=10).map(|of| cache.square(of)).sum();
        let down: u64 = (6..=15).rev().map(|of| cache.square(of)).sum();
        println!("{}", up + down);
        std::thread::spawn(|| dhat::ad_hoc_event(0)).join().unwrap();
        println!("{:?}", dhat::AdHocStats::get());
        dhat::assert_is_panic(dhat::HeapStats::get, "dhat: getting heap stats while doing ad hoc profiling");
    }
    dhat::ad_hoc_event(1_000_000); // after it
    dhat::assert_is_panic(dhat::AdHocStats::get, "dhat: getting ad hoc stats when no profiler is running");
    let _profiler = dhat::Profiler::builder().testing().build();
    dhat::assert_is_panic(dhat::AdHocStats::get, "dhat: getting ad hoc stats while doing heap profiling");
}
