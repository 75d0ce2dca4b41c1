// SPDX-License-Identifier: Apache-2.0
//! The heap profiler cairn inside a Rust program, for where it cannot be preloaded.
//!
//! ```ignore
//! use std::alloc::System;
//! #[global_allocator]
//! static A: cairn::Alloc<System> = cairn::Alloc(System);
//! ```
//!
//! The program records itself if it was asked to, by `cairn run PROGRAM` or the variable `CAIRN_OUTPUT`;
//! otherwise the allocator hands on. Where libcairn.so is preloaded that one records, and the functions here
//! answer as if there was none. Where the library is not (another system than x86-64 Linux with glibc) the
//! allocator hands on, too.
#![warn(missing_docs)]

use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};

pub mod dhat;
mod ledger;
#[cfg(cairn_embed)]
#[path = "embed.rs"]
mod library;
#[cfg(not(cairn_embed))]
#[path = "absent.rs"]
mod library;

use library::table;

/// The system's allocator, recorded.
pub struct Alloc<A>(pub A);

/// What was allocated, and is live.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls that returned a block.
    pub allocations: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Bytes, as requested.
    pub allocated_bytes: u64,
    /// Allocated minus freed bytes.
    pub live_bytes: i64,
    /// The most that `live_bytes` was.
    pub peak_bytes: i64,
}

// include/cairn/cairn.h: struct cairn_api_table, as far as it is used here.
#[repr(C)]
struct Table {
    version: u32,
    bytes: u32,
    is_recording: extern "C" fn() -> c_int,
    set_enabled: extern "C" fn(c_int, c_int),
    is_enabled: extern "C" fn(c_int) -> c_int,
    region_begin: extern "C" fn(*const c_char),
    region_end: extern "C" fn(*mut Stats) -> c_int,
    stats: extern "C" fn(c_int, *mut Stats) -> c_int,
    region_stats: extern "C" fn(*const c_char, *mut Stats) -> c_int,
    report: extern "C" fn(c_int, *const c_char, usize, usize) -> c_int,
    _between: [usize; 9], // pool_create to histogram
    context_with: extern "C" fn(u32, *const c_char, *const c_char) -> u32,
    context_current: extern "C" fn() -> u32,
    context_enter: extern "C" fn(u32),
    context_leave: extern "C" fn() -> c_int,
}

/// Whom a question is about.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// All threads.
    Process,
    /// The calling thread.
    Thread,
}

/// True if this process is recorded.
pub fn is_loaded() -> bool {
    (table().is_recording)() != 0
}

/// Figures since the start; `None` if this process is not recorded.
pub fn stats(who: Who) -> Option<Stats> {
    let mut found = Stats::default();
    ((table().stats)(who as c_int, &mut found) != 0).then_some(found)
}

// As C has it, without the heap: what is beyond 255 bytes or a NUL is cut off.
fn with_name<T>(name: &str, work: impl FnOnce(*const c_char) -> T) -> T {
    let mut text = [0u8; 256];
    let length = name.len().min(text.len() - 1);
    text[..length].copy_from_slice(&name.as_bytes()[..length]);
    work(text.as_ptr() as *const c_char)
}

/// What was allocated in regions of this name, by all threads; `None` if there was none.
pub fn region_stats(name: &str) -> Option<Stats> {
    let mut found = Stats::default();
    let is_there = with_name(name, |text| (table().region_stats)(text, &mut found));
    (is_there != 0).then_some(found)
}

/// A region of the program (cairn report --view regions): from its making to its end, on this thread.
pub struct Region {
    _of_this_thread: PhantomData<*const ()>,
}

impl Region {
    /// Begins a region within the one that this thread is in.
    pub fn new(name: &str) -> Region {
        with_name(name, |text| (table().region_begin)(text));
        Region { _of_this_thread: PhantomData }
    }

    /// Ends it and says what this thread did in it; `None` if this process is not recorded.
    pub fn end(self) -> Option<Stats> {
        std::mem::forget(self);
        let mut found = Stats::default();
        ((table().region_end)(&mut found) != 0).then_some(found)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        (table().region_end)(std::ptr::null_mut());
    }
}

/// A set of labels, key=value, that can be handed to other threads and tasks (cairn report --view contexts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(u32);

impl Context {
    /// The labels that this thread is in.
    pub fn current() -> Context {
        Context((table().context_current)())
    }

    /// The set with a label more, or with another value for that key.
    pub fn with(self, key: &str, value: &str) -> Context {
        Context(with_name(key, |key| with_name(value, |value| (table().context_with)(self.0, key, value))))
    }

    /// What this thread allocates has these labels too, until the result is dropped.
    pub fn enter(self) -> Entered {
        (table().context_enter)(self.0);
        Entered { _of_this_thread: PhantomData }
    }

    /// The function, to be run in this context on whatever thread: `thread::spawn(context.carry(work))`.
    pub fn carry<T>(self, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        move || {
            let _entered = self.enter();
            work()
        }
    }

    /// The future, which is in this context whenever it is polled: for tokio and other executors.
    pub fn carry_future<F: std::future::Future>(self, future: F) -> Carried<F> {
        Carried { context: self, future }
    }
}

/// Of `Context::enter`.
pub struct Entered {
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        (table().context_leave)();
    }
}

/// Of `Context::carry_future`.
pub struct Carried<F> {
    context: Context,
    future: F,
}

impl<F: std::future::Future> std::future::Future for Carried<F> {
    type Output = F::Output;

    fn poll(self: std::pin::Pin<&mut Self>, waker: &mut std::task::Context<'_>) -> std::task::Poll<F::Output> {
        let _entered = self.context.enter();
        // The future is pinned with what holds it, and is not moved out.
        unsafe { self.map_unchecked_mut(|carried| &mut carried.future) }.poll(waker)
    }
}

/// Runs `work` and says what this thread did meanwhile; `None` if this process is not recorded.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Option<Stats>) {
    (table().region_begin)(std::ptr::null());
    let region = Region { _of_this_thread: PhantomData };
    let result = work();
    (result, region.end())
}

/// Panics if `work` takes more than so many allocations and bytes. Not recorded, it only works.
#[track_caller]
pub fn assert_at_most<T>(allocations: u64, bytes: u64, work: impl FnOnce() -> T) -> T {
    let (result, done) = measure(work);
    if let Some(done) = done {
        assert!(
            done.allocations <= allocations && done.allocated_bytes <= bytes,
            "heap usage: {} allocations of {} bytes; at most {allocations} of {bytes}",
            done.allocations,
            done.allocated_bytes
        );
    }
    result
}
