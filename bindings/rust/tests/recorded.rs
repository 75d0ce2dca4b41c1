// SPDX-License-Identifier: Apache-2.0
//! To be run with CAIRN_OUTPUT set (tests/e2e/rust.py); without it, what holds then.
use std::alloc::System;
use std::future::Future;

#[global_allocator]
static A: cairn::Alloc<System> = cairn::Alloc(System);

#[repr(align(256))]
struct Wide([u8; 300]);

#[test]
fn figures_are_exact() {
    let (kept, done) = cairn::measure(|| {
        drop(vec![0u8; 1000]);
        let mut grown: Vec<u8> = Vec::with_capacity(10);
        grown.resize(100, 1);
        let wide = Box::new(Wide([7; 300]));
        assert_eq!(&*wide as *const Wide as usize % 256, 0);
        (grown, wide.0[299])
    });
    assert_eq!((kept.0.len(), kept.1), (100, 7));
    if let Some(done) = done {
        assert_eq!((done.allocations, done.frees), (4, 3));
        assert_eq!(done.allocated_bytes, 1000 + 10 + 100 + 512);
        assert_eq!((done.live_bytes, done.peak_bytes), (100, 1000));
    }
    assert_eq!(done.is_some(), std::env::var_os("CAIRN_OUTPUT").is_some());
}

#[test]
fn regions_nest() {
    let outer = cairn::Region::new("outer");
    let kept = vec![1u8; 50];
    {
        let _inner = cairn::Region::new("inner");
        drop(vec![1u8; 70]);
    }
    if let Some(done) = outer.end() {
        assert_eq!((done.allocated_bytes, done.live_bytes), (120, 50));
        assert_eq!(cairn::region_stats("inner").unwrap().allocated_bytes, 70);
        assert!(cairn::region_stats("nowhere").is_none());
    }
    drop(kept);
}

#[test]
fn contexts_travel() {
    let context = cairn::Context::current().with("tenant", "7").with("endpoint", "/a");
    assert_eq!(context, cairn::Context::current().with("endpoint", "/a").with("tenant", "7"));
    assert_eq!(context == context.with("tenant", "8"), !cairn::is_loaded());
    std::thread::spawn(context.carry(move || assert_eq!(cairn::Context::current(), context))).join().unwrap();
    let mut future = Box::pin(context.carry_future(async move { cairn::Context::current() == context }));
    struct Quiet;
    impl std::task::Wake for Quiet {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let waker = std::sync::Arc::new(Quiet).into();
    let mut task = std::task::Context::from_waker(&waker);
    assert_eq!(future.as_mut().poll(&mut task), std::task::Poll::Ready(true));
    let entered = context.enter();
    assert_eq!(cairn::Context::current(), context);
    drop(entered);
    assert_eq!(cairn::Context::current() == context, !cairn::is_loaded());
}

#[test]
fn too_much_panics() {
    cairn::assert_at_most(1, 100, || vec![0u8; 100]);
    let result = std::panic::catch_unwind(|| cairn::assert_at_most(0, 0, || vec![0u8; 100]));
    assert_eq!(result.is_err(), cairn::is_loaded());
}
