// SPDX-License-Identifier: Apache-2.0
// A heap as programs in Rust have it, for tests of types: Vec, Box, Rc, Arc, String, HashMap,
// VecDeque, BTreeMap, slices, enumerations, from variables that last and from those of functions.
// It says "ready" and waits for a line.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

struct Item {
    id: u64,
    name: String,
    more: Option<Box<Item>>,
}

enum Choice {
    Nothing,
    Text(String),
    Items(Vec<Item>),
}

struct Registry {
    items: Vec<Item>,
    boxed: Vec<Box<Item>>,
    by_name: HashMap<String, Box<Item>>,
    shared: Rc<RefCell<Item>>,
    again: Rc<RefCell<Item>>,
    choice: Choice,
    other: Choice,
    none: Choice,
    counted: Arc<Item>,
    queue: VecDeque<String>,
    tree: BTreeMap<u64, String>,
    text: Box<str>,
    slice: Box<[Item]>,
}

static TABLE: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[inline(never)]
fn item(id: u64) -> Item {
    let inner = Item { id: id + 1000, name: format!("inner {:040}", id), more: None };
    Item {
        id,
        name: format!("item number {:030}", id),
        more: if id % 2 == 0 { Some(Box::new(inner)) } else { None },
    }
}

#[inline(never)]
fn wait(registry: &Registry) -> usize {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let is_there = registry.slice.iter().all(|item| item.id > 0)
        && registry.counted.more.is_some()
        && Rc::ptr_eq(&registry.shared, &registry.again)
        && matches!(registry.none, Choice::Nothing)
        && matches!((&registry.choice, &registry.other), (Choice::Text(_), Choice::Items(_)));
    let others = registry.boxed.len() + registry.by_name.len() + registry.queue.len();
    let rest = registry.tree.len() + registry.text.len();
    if is_there && others + rest > 0 { registry.items.len() } else { 0 }
}

fn main() {
    for i in 0..20 {
        TABLE.lock().unwrap().push(format!("row {:040}", i));
    }
    let shared = Rc::new(RefCell::new(item(500)));
    let registry = Box::new(Registry {
        items: (0..20).map(item).collect(),
        boxed: (20..40).map(|i| Box::new(item(i))).collect(),
        by_name: (40..60).map(|i| (format!("key {:050}", i), Box::new(item(i)))).collect(),
        again: shared.clone(),
        shared,
        choice: Choice::Text(format!("{:060}", 1)),
        other: Choice::Items((60..70).map(item).collect()),
        none: Choice::Nothing,
        counted: Arc::new(item(800)),
        queue: (0..9).map(|i| format!("queue {:050}", i)).collect(),
        tree: (0..30).map(|i| (i, format!("tree {:050}", i))).collect(),
        text: format!("{:070}", 3).into_boxed_str(),
        slice: (90..95).map(item).collect::<Vec<_>>().into_boxed_slice(),
    });
    std::process::exit(if wait(&registry) == 20 { 3 } else { 1 });
}
