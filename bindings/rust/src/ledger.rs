// SPDX-License-Identifier: Apache-2.0
//! Exact figures of the blocks that were allocated since a moment, for `dhat::HeapStats`: a table of those that live,
//! and sums, under one lock. It takes its memory from the system's allocator directly, and calls nothing that allocates.
//! A block that it does not know was there before, and is none of its own.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(true) };
}

/// Says whether new blocks of this thread are counted; returns what held before. Those that are known stay so.
pub(crate) fn count_thread(is_counted: bool) -> bool {
    IS_COUNTED.with(|cell| cell.replace(is_counted))
}

fn is_thread_counted() -> bool {
    IS_COUNTED.with(Cell::get)
}

/// Blocks and bytes since `Ledger::begin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub total_blocks: u64,
    pub total_bytes: u64,
    pub blocks: usize,
    pub bytes: usize,
    pub peak_blocks: usize,
    pub peak_bytes: usize,
}

impl Sums {
    // Takes the latest of equal peaks, as dhat does.
    fn add(&mut self, size: usize) {
        self.total_blocks += 1;
        self.total_bytes += size as u64;
        self.blocks += 1;
        self.bytes += size;
        if self.bytes >= self.peak_bytes {
            (self.peak_bytes, self.peak_blocks) = (self.bytes, self.blocks);
        }
    }

    fn remove(&mut self, size: usize) {
        self.blocks -= 1;
        self.bytes -= size;
    }
}

#[derive(Clone, Copy)]
struct Slot {
    address: usize, // 0: free
    size: usize,
}

/// Open addressing with linear probing; at most half full.
struct Table {
    slots: *mut Slot,
    bits: u32,
    used: usize,
}

const FIRST_BITS: u32 = 10;

impl Table {
    const fn new() -> Table {
        Table { slots: std::ptr::null_mut(), bits: 0, used: 0 }
    }

    fn layout(bits: u32) -> Layout {
        Layout::array::<Slot>(1 << bits).unwrap()
    }

    fn home(&self, address: usize) -> usize {
        ((address >> 4) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_shr(64 - self.bits) as usize
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & ((1 << self.bits) - 1)
    }

    /// The slot of the address, or the free one where it would be.
    unsafe fn find(&self, address: usize) -> usize {
        let mut at = self.home(address);
        while (*self.slots.add(at)).address != 0 && (*self.slots.add(at)).address != address {
            at = self.next(at);
        }
        at
    }

    /// False without memory.
    unsafe fn grow(&mut self) -> bool {
        let bits = if self.bits == 0 { FIRST_BITS } else { self.bits + 1 };
        let slots = System.alloc_zeroed(Table::layout(bits)) as *mut Slot;
        if slots.is_null() {
            return false;
        }
        let old = std::mem::replace(self, Table { slots, bits, used: self.used });
        old.each(|slot| *self.slots.add(self.find(slot.address)) = slot);
        old.release();
        true
    }

    unsafe fn each(&self, mut work: impl FnMut(Slot)) {
        for i in 0..if self.bits == 0 { 0 } else { 1usize << self.bits } {
            if (*self.slots.add(i)).address != 0 {
                work(*self.slots.add(i));
            }
        }
    }

    unsafe fn release(self) {
        if self.bits != 0 {
            System.dealloc(self.slots as *mut u8, Table::layout(self.bits));
        }
    }

    unsafe fn insert(&mut self, address: usize, size: usize) -> bool {
        if (self.bits == 0 || self.used >= 1 << (self.bits - 1)) && !self.grow() {
            return false;
        }
        let at = self.find(address);
        self.used += ((*self.slots.add(at)).address == 0) as usize;
        *self.slots.add(at) = Slot { address, size };
        true
    }

    /// Moves what lies behind the gap to where it is found without that slot.
    unsafe fn take(&mut self, address: usize) -> Option<usize> {
        if self.bits == 0 {
            return None;
        }
        let mut gap = self.find(address);
        let found = *self.slots.add(gap);
        if found.address == 0 {
            return None;
        }
        let mask = (1usize << self.bits) - 1;
        let mut at = self.next(gap);
        while (*self.slots.add(at)).address != 0 {
            let home = self.home((*self.slots.add(at)).address);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                *self.slots.add(gap) = *self.slots.add(at);
                gap = at;
            }
            at = self.next(at);
        }
        (*self.slots.add(gap)).address = 0;
        self.used -= 1;
        Some(found.size)
    }
}

struct Inside {
    sums: Sums,
    table: Table,
    is_whole: bool,
}

/// A block that is being resized: taken out of the table, and still in the sums.
pub(crate) struct Resized(Option<usize>);

pub(crate) struct Ledger {
    is_counting: AtomicBool,
    is_locked: AtomicBool,
    process: AtomicU32, // the number of the process that counts
    inside: UnsafeCell<Inside>,
}

// The lock guards what is inside.
unsafe impl Sync for Ledger {}

impl Ledger {
    pub const fn new() -> Ledger {
        let sums = Sums { total_blocks: 0, total_bytes: 0, blocks: 0, bytes: 0, peak_blocks: 0, peak_bytes: 0 };
        Ledger {
            is_counting: AtomicBool::new(false),
            is_locked: AtomicBool::new(false),
            process: AtomicU32::new(0),
            inside: UnsafeCell::new(Inside { sums, table: Table::new(), is_whole: true }),
        }
    }

    /// None in a child that was forked while another thread held the lock: it would wait for ever.
    fn locked<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> Option<T> {
        let mut waits = 0u32;
        while self.is_locked.swap(true, Ordering::Acquire) {
            waits += 1;
            if waits % 1000 == 0 && std::process::id() != self.process.load(Ordering::Relaxed) {
                self.is_counting.store(false, Ordering::Relaxed);
                return None;
            }
            std::thread::yield_now();
        }
        // Nobody else is inside.
        let result = work(unsafe { &mut *self.inside.get() });
        self.is_locked.store(false, Ordering::Release);
        Some(result)
    }

    #[inline]
    fn is_counting(&self) -> bool {
        self.is_counting.load(Ordering::Relaxed)
    }

    pub fn begin(&self) {
        self.process.store(std::process::id(), Ordering::Relaxed);
        self.forget();
        self.is_counting.store(true, Ordering::SeqCst);
    }

    /// The sums, and that no block was left out for want of memory.
    pub fn sums(&self) -> Option<(Sums, bool)> {
        self.locked(|inside| (inside.sums, inside.is_whole))
    }

    pub fn end(&self) {
        self.is_counting.store(false, Ordering::SeqCst);
        self.forget();
    }

    fn forget(&self) {
        self.locked(|inside| {
            let table = std::mem::replace(&mut inside.table, Table::new());
            unsafe { table.release() };
            inside.sums = Sums::default();
            inside.is_whole = true;
        });
    }

    pub fn add(&self, block: *mut u8, size: usize) {
        if self.is_counting() && !block.is_null() && is_thread_counted() {
            self.locked(|inside| inside.add(block as usize, size));
        }
    }

    /// Before the block is given back: from then on another thread may get the same address.
    pub fn remove(&self, block: *mut u8) {
        if self.is_counting() {
            self.locked(|inside| {
                if let Some(size) = unsafe { inside.table.take(block as usize) } {
                    inside.sums.remove(size);
                }
            });
        }
    }

    pub fn resize_begin(&self, block: *mut u8) -> Resized {
        Resized(match self.is_counting() {
            true => self.locked(|inside| unsafe { inside.table.take(block as usize) }).flatten(),
            false => None,
        })
    }

    /// `moved`: NULL where the block stays as it was.
    pub fn resize_end(&self, was: Resized, block: *mut u8, moved: *mut u8, size: usize) {
        if !self.is_counting() {
            return;
        }
        self.locked(|inside| match (was.0, moved.is_null()) {
            (Some(old), true) => inside.is_whole &= unsafe { inside.table.insert(block as usize, old) },
            (None, true) => (),
            (None, false) if !is_thread_counted() => (),
            (old, false) => {
                old.into_iter().for_each(|old| inside.sums.remove(old));
                inside.add(moved as usize, size);
            }
        });
    }
}

impl Inside {
    fn add(&mut self, address: usize, size: usize) {
        if unsafe { self.table.insert(address, size) } {
            self.sums.add(size);
        } else {
            self.is_whole = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_agrees_with_a_map() {
        let mut table = Table::new();
        let mut map = std::collections::HashMap::new();
        let mut random = 1u64;
        for _ in 0..200_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let address = 16 + ((random >> 40) as usize % 5000) * 16;
            if random >> 63 == 0 {
                assert!(unsafe { table.insert(address, random as usize) });
                map.insert(address, random as usize);
            } else {
                assert_eq!(unsafe { table.take(address) }, map.remove(&address));
            }
            assert_eq!(table.used, map.len());
        }
        let mut count = 0;
        unsafe { table.each(|slot| count += (map[&slot.address] == slot.size) as usize) };
        assert_eq!(count, map.len());
        unsafe { table.release() };
    }

    #[test]
    fn failed_resize_changes_nothing() {
        static LEDGER: Ledger = Ledger::new();
        LEDGER.begin();
        let (block, moved) = (0x1000 as *mut u8, 0x2000 as *mut u8);
        LEDGER.add(block, 10);
        let was = LEDGER.resize_begin(block);
        LEDGER.resize_end(was, block, std::ptr::null_mut(), 1000);
        let was = LEDGER.resize_begin(block);
        LEDGER.resize_end(was, block, moved, 30);
        LEDGER.remove(block);
        let (sums, is_whole) = LEDGER.sums().unwrap();
        assert!(is_whole);
        assert_eq!((sums.total_blocks, sums.total_bytes, sums.blocks, sums.bytes), (2, 40, 1, 30));
        assert_eq!((sums.peak_blocks, sums.peak_bytes), (1, 30));
        LEDGER.remove(moved);
        assert_eq!(LEDGER.sums().unwrap().0.bytes, 0);
        LEDGER.end();
    }
}
