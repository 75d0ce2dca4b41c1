// SPDX-License-Identifier: Apache-2.0
//! The interface of the crate dhat (0.3), for programs and tests that are written for it: figures are as exact, and
//! what a profiler saw is recorded by cairn.
//!
//! ```ignore
//! use cairn::dhat;
//!
//! #[global_allocator]
//! static ALLOC: dhat::Alloc = dhat::Alloc;
//!
//! fn main() {
//!     let _profiler = dhat::Profiler::new_heap();
//!     // ...
//! }
//! ```
//!
//! Differences: stacks are whole, whatever `trim_backtraces` says; ad hoc events are counted, and have no file; of
//! several profilers one after the other each has its own figures, and the file has the stacks of all so far. The file
//! is written by the tool `cairn`, which is looked for in PATH; without it the recording is kept alone.
use crate::ledger::{Ledger, Sums};
use crate::{library, Who};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::raw::c_int;
use std::panic::UnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[doc(inline)]
pub use crate::{dhat_assert as assert, dhat_assert_eq as assert_eq, dhat_assert_ne as assert_ne};

const PROCESS: c_int = Who::Process as c_int;
const THREAD: c_int = Who::Thread as c_int;

static LEDGER: Ledger = Ledger::new();
static PHASE: Mutex<Phase> = Mutex::new(Phase::Ready);
static IS_BEGUN: AtomicBool = AtomicBool::new(false);
static HAS_EARLIER: AtomicBool = AtomicBool::new(false);
static IS_KEPT: AtomicBool = AtomicBool::new(false);
static RECORDING: Mutex<Option<PathBuf>> = Mutex::new(None);

enum Phase {
    Ready,
    Running(Run),
    Asserted,
}

struct Run {
    is_heap: bool,
    is_testing: bool,
    file: PathBuf,
    events: AdHocStats,
}

// Nothing panics while it is held.
fn phase() -> MutexGuard<'static, Phase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's allocator, recorded, and counted while a [`Profiler`] runs.
#[derive(Debug)]
pub struct Alloc;

unsafe impl GlobalAlloc for Alloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = crate::Alloc(System).alloc(layout);
        LEDGER.add(block, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = crate::Alloc(System).alloc_zeroed(layout);
        LEDGER.add(block, layout.size());
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LEDGER.remove(block);
        crate::Alloc(System).dealloc(block, layout)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let was = LEDGER.resize_begin(block);
        let moved = crate::Alloc(System).realloc(block, layout, size);
        LEDGER.resize_end(was, block, moved, size);
        moved
    }
}

/// What of the heap is counted, from its making to its end. One can run at a time.
#[derive(Debug)]
pub struct Profiler {
    _made_here: (),
}

impl Profiler {
    /// Begins to profile the heap. Panics if a profiler is running.
    pub fn new_heap() -> Profiler {
        Profiler::builder().build()
    }

    /// Begins to count ad hoc events. Panics if a profiler is running.
    pub fn new_ad_hoc() -> Profiler {
        Profiler::builder().ad_hoc().build()
    }

    /// Makes a profiler with more to say; of the heap, unless it says otherwise.
    pub fn builder() -> ProfilerBuilder {
        ProfilerBuilder { is_heap: true, is_testing: false, file: None }
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        let was = std::mem::replace(&mut *phase(), Phase::Ready);
        if let Phase::Running(run) = was {
            run.finish(false);
        }
    }
}

/// What [`Profiler::builder`] makes.
#[derive(Debug)]
pub struct ProfilerBuilder {
    is_heap: bool,
    is_testing: bool,
    file: Option<PathBuf>,
}

impl ProfilerBuilder {
    /// Counts ad hoc events instead of the heap.
    pub fn ad_hoc(mut self) -> Self {
        self.is_heap = false;
        self
    }

    /// Allows `dhat::assert!` and its like, and saves nothing unless one of them fails.
    pub fn testing(mut self) -> Self {
        self.is_testing = true;
        self
    }

    /// Names the file; it is dhat-heap.json otherwise.
    pub fn file_name<P: AsRef<Path>>(mut self, file_name: P) -> Self {
        self.file = Some(file_name.as_ref().to_path_buf());
        self
    }

    /// Is there for programs that call it: stacks are whole.
    pub fn trim_backtraces(self, _max_frames: Option<usize>) -> Self {
        self
    }

    /// Begins. Panics if a profiler is running.
    pub fn build(self) -> Profiler {
        let _apart = Apart::begin();
        let usual = if self.is_heap { "dhat-heap.json" } else { "dhat-ad-hoc.json" };
        let file = self.file.unwrap_or_else(|| PathBuf::from(usual));
        let run = Run { is_heap: self.is_heap, is_testing: self.is_testing, file, events: AdHocStats::default() };
        if !run.begin() {
            refuse("dhat: creating a profiler while a profiler is already running");
        }
        Profiler { _made_here: () }
    }
}

/// The recording's place beside the file: NAME.PID.cairn.
fn recording_of(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.cairn", std::process::id()))
}

fn find_tool() -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    std::env::split_paths(&places).map(|place| place.join("cairn")).find(|file| file.is_file())
}

// The library keeps what it is given. The file stays until the end, or the tool would not find the recording of a
// later profiler that is to be saved.
fn begin_recording(file: &Path) -> bool {
    let recording = recording_of(file);
    let mut variables = format!("CAIRN_OFF=1\0CAIRN_OUTPUT={}\0", recording.display());
    *RECORDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(recording);
    if let Some(tool) = find_tool() {
        variables += &format!("CAIRN_TOOL={}\0", tool.display());
    }
    variables.push('\0');
    library::begin(Box::leak(variables.into_bytes().into_boxed_slice()))
}

impl Run {
    /// False if another one runs. Nothing that this allocates is counted.
    fn begin(self) -> bool {
        let mut phase = phase();
        if !matches!(*phase, Phase::Ready) {
            return false;
        }
        let is_heap = self.is_heap;
        if is_heap && !crate::is_loaded() && begin_recording(&self.file) {
            IS_BEGUN.store(true, Ordering::Relaxed);
            library::at_end(discard_unwanted);
        }
        *phase = Phase::Running(self);
        if is_heap {
            if IS_BEGUN.load(Ordering::Relaxed) {
                (library::table().set_enabled)(PROCESS, 1);
            }
            LEDGER.begin();
        }
        true
    }

    fn finish(self, has_failed: bool) {
        let is_saved = has_failed || !self.is_testing;
        if !self.is_heap {
            if is_saved {
                self.events.print();
            }
            return;
        }
        let sums = LEDGER.sums();
        LEDGER.end();
        if IS_BEGUN.load(Ordering::Relaxed) {
            (library::table().set_enabled)(PROCESS, 0);
        }
        if is_saved {
            print(sums);
            save(&self.file);
        }
        HAS_EARLIER.store(true, Ordering::Relaxed);
    }
}

extern "C" fn discard_unwanted() {
    if !IS_KEPT.load(Ordering::Relaxed) {
        library::discard();
    }
}

/// With commas between thousands.
fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i != 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn print(sums: Option<(Sums, bool)>) {
    let (sums, is_whole) = match sums {
        Some(sums) => sums,
        None => return eprintln!("dhat: this process was forked while a thread allocated: its figures are not known"),
    };
    let line = |what, bytes: u64, blocks: u64| {
        eprintln!("dhat: {what:<10} {} bytes in {} blocks", commas(bytes), commas(blocks));
    };
    line("Total:", sums.total_bytes, sums.total_blocks);
    line("At t-gmax:", sums.peak_bytes as u64, sums.peak_blocks as u64);
    line("At t-end:", sums.bytes as u64, sums.blocks as u64);
    if !is_whole {
        eprintln!("dhat: there was no memory to count all blocks: these figures are too small");
    }
}

fn save(file: &Path) {
    if !crate::is_loaded() {
        let is_preloaded = std::env::var("LD_PRELOAD").map_or(false, |list| list.contains("libcairn"));
        return eprintln!(
            "dhat: {} was not written: {}",
            file.display(),
            match (cfg!(cairn_embed), is_preloaded) {
                (_, true) => "cairn records this process from outside: cairn export --format dhat writes it",
                (false, _) => "cairn's library is not in this build, which is for x86-64 Linux with glibc",
                _ => "this process could not be recorded",
            }
        );
    }
    match write(file) {
        Ok(()) => eprintln!(
            "dhat: The data has been saved to {}, and is viewable with dhat/dh_view.html{}",
            file.display(),
            if HAS_EARLIER.load(Ordering::Relaxed) { " (with that of earlier profilers)" } else { "" }
        ),
        Err(reason) => eprintln!("dhat: {} was not written: {reason}", file.display()),
    }
    if IS_BEGUN.load(Ordering::Relaxed) && !IS_KEPT.swap(true, Ordering::Relaxed) {
        if let Some(recording) = &*RECORDING.lock().unwrap_or_else(PoisonError::into_inner) {
            eprintln!("dhat: cairn report {}", recording.display());
        }
    }
}

fn write(file: &Path) -> Result<(), String> {
    const NO_TOOL: i32 = 2;
    let out = File::create(file).map_err(|problem| problem.to_string())?;
    let problem = library::report(&out, b"dhat\0");
    if problem == 0 {
        return Ok(());
    }
    let _ = std::fs::remove_file(file);
    Err(match problem {
        NO_TOOL => "the tool cairn is not in PATH".to_string(),
        _ => std::io::Error::from_raw_os_error(problem).to_string(),
    })
}

/// Counts an event of this weight, if a profiler of ad hoc events runs.
pub fn ad_hoc_event(weight: usize) {
    if let Phase::Running(run) = &mut *phase() {
        run.events.total_events += !run.is_heap as u64;
        run.events.total_units += if run.is_heap { 0 } else { weight as u64 };
    }
}

/// Figures of the heap since the profiler began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Blocks that were allocated; one that is resized is one more.
    pub total_blocks: u64,
    /// Their bytes.
    pub total_bytes: u64,
    /// Blocks that live.
    pub curr_blocks: usize,
    /// Their bytes.
    pub curr_bytes: usize,
    /// Blocks that lived when their bytes were most.
    pub max_blocks: usize,
    /// The most bytes that lived.
    pub max_bytes: usize,
}

/// Figures of ad hoc events since the profiler began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdHocStats {
    /// Calls of [`ad_hoc_event`].
    pub total_events: u64,
    /// The sum of their weights.
    pub total_units: u64,
}

/// While it lives, what this thread allocates is of the profiler: neither counted nor recorded.
struct Apart {
    was_counted: bool,
    was_recorded: bool,
}

impl Apart {
    fn begin() -> Apart {
        let was_recorded = IS_BEGUN.load(Ordering::Relaxed) && (library::table().is_enabled)(THREAD) != 0;
        if was_recorded {
            (library::table().set_enabled)(THREAD, 0);
        }
        Apart { was_counted: crate::ledger::count_thread(false), was_recorded }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        crate::ledger::count_thread(self.was_counted);
        if self.was_recorded {
            (library::table().set_enabled)(THREAD, 1);
        }
    }
}

/// Panics; what that allocates is not of the program.
fn refuse(reason: &'static str) -> ! {
    let _apart = Apart::begin();
    std::panic::panic_any(reason)
}

impl HeapStats {
    /// Panics if no profiler of the heap is running.
    pub fn get() -> HeapStats {
        let refused = match &*phase() {
            Phase::Running(run) if run.is_heap => None,
            Phase::Running(_) => Some("dhat: getting heap stats while doing ad hoc profiling"),
            Phase::Ready => Some("dhat: getting heap stats when no profiler is running"),
            Phase::Asserted => Some("dhat: getting heap stats after the profiler has asserted"),
        };
        let sums = match (refused, LEDGER.sums()) {
            (Some(reason), _) => refuse(reason),
            (None, Some((sums, true))) => sums,
            _ => refuse("dhat: not all blocks could be counted"),
        };
        HeapStats {
            total_blocks: sums.total_blocks,
            total_bytes: sums.total_bytes,
            curr_blocks: sums.blocks,
            curr_bytes: sums.bytes,
            max_blocks: sums.peak_blocks,
            max_bytes: sums.peak_bytes,
        }
    }
}

impl AdHocStats {
    /// Panics if no profiler of ad hoc events is running.
    pub fn get() -> AdHocStats {
        let answer = match &*phase() {
            Phase::Running(run) if !run.is_heap => Ok(run.events.clone()),
            Phase::Running(_) => Err("dhat: getting ad hoc stats while doing heap profiling"),
            Phase::Ready => Err("dhat: getting ad hoc stats when no profiler is running"),
            Phase::Asserted => Err("dhat: getting ad hoc stats after the profiler has asserted"),
        };
        answer.unwrap_or_else(|reason| refuse(reason))
    }

    fn print(&self) {
        eprintln!("dhat: Total:     {} units in {} events", commas(self.total_units), commas(self.total_events));
        eprintln!("dhat: cairn writes no file of ad hoc events");
    }
}

/// For the macros: true if the condition holds. If not, the profile is saved, and the macro is to panic. What the
/// condition allocates is not of the program.
#[doc(hidden)]
pub fn check_condition(is_true: impl FnOnce() -> bool) -> bool {
    let reason = match &*phase() {
        Phase::Ready => Some("dhat: asserting when no profiler is running"),
        Phase::Asserted => Some("dhat: asserting after the profiler has asserted"),
        Phase::Running(run) if !run.is_testing => Some("dhat: asserting while not in testing mode"),
        Phase::Running(_) => None,
    };
    if let Some(reason) = reason {
        refuse(reason);
    }
    let _apart = Apart::begin();
    if is_true() {
        return true;
    }
    let was = std::mem::replace(&mut *phase(), Phase::Asserted);
    if let Phase::Running(run) = was {
        run.finish(true);
    }
    false
}

/// As `std::assert!`, of a running profiler in testing mode: where it fails the profile is saved first.
#[macro_export]
#[doc(hidden)]
macro_rules! dhat_assert {
    ($condition:expr) => {{
        if !$crate::dhat::check_condition(|| $condition) {
            panic!("dhat: assertion failed: {}", stringify!($condition));
        }
    }};
    ($condition:expr, $($argument:tt)+) => {{
        if !$crate::dhat::check_condition(|| $condition) {
            panic!("dhat: assertion failed: {}: {}", stringify!($condition), format_args!($($argument)+));
        }
    }};
}

#[macro_export]
#[doc(hidden)]
macro_rules! dhat_compare {
    ($left:expr, $sign:tt, $right:expr, $more:expr) => {
        if !$crate::dhat::check_condition(|| $left $sign $right) {
            panic!(
                "dhat: assertion failed: `(left {} right)`\n  left: `{:?}`,\n right: `{:?}`{}",
                stringify!($sign), $left, $right, $more
            );
        }
    };
}

/// As `std::assert_eq!`, of a running profiler in testing mode: where it fails the profile is saved first.
#[macro_export]
#[doc(hidden)]
macro_rules! dhat_assert_eq {
    ($left:expr, $right:expr $(,)?) => { $crate::dhat_compare!($left, ==, $right, "") };
    ($left:expr, $right:expr, $($argument:tt)+) => {
        $crate::dhat_compare!($left, ==, $right, format_args!(": {}", format_args!($($argument)+)))
    };
}

/// As `std::assert_ne!`, of a running profiler in testing mode: where it fails the profile is saved first.
#[macro_export]
#[doc(hidden)]
macro_rules! dhat_assert_ne {
    ($left:expr, $right:expr $(,)?) => { $crate::dhat_compare!($left, !=, $right, "") };
    ($left:expr, $right:expr, $($argument:tt)+) => {
        $crate::dhat_compare!($left, !=, $right, format_args!(": {}", format_args!($($argument)+)))
    };
}

/// For tests of programs that panic: panics unless `work` does, with this text.
#[doc(hidden)]
pub fn assert_is_panic<R, F: FnOnce() -> R + UnwindSafe>(work: F, expected: &str) {
    let said = match std::panic::catch_unwind(work) {
        Ok(_) => panic!("assert_is_panic: no panic"),
        Err(said) => said,
    };
    let text = said.downcast_ref::<&str>().copied().or_else(|| said.downcast_ref::<String>().map(String::as_str));
    std::assert_eq!(text, Some(expected));
}
