// SPDX-License-Identifier: Apache-2.0
// Async functions that await each other on an executor of the test's own, resumed by it after they were pending: plain
// ones, async blocks, closures, methods of traits, boxed futures. Built by tests/e2e/rust_async.py.
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

struct Yield(bool);
impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn take(size: usize) {
    KEPT.lock().unwrap().push(Vec::with_capacity(size));
}

async fn load(size: usize) {
    take(size);
    Yield(false).await;
    take(size + 1);
}

struct Session;
impl Session {
    async fn serve(&self, size: usize) {
        load(size).await; // serve
        let block = async {
            Yield(false).await;
            take(size + 2);
        };
        block.await;
    }
}

fn boxed(size: usize) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        Yield(false).await;
        load(size).await;
    })
}

async fn outer(size: usize) {
    Session.serve(size).await;
    boxed(size + 10).await;
    let closure = || take(size + 20);
    closure();
}

struct Nothing;
impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

fn run<F: Future>(future: F) -> F::Output {
    let waker: Waker = Arc::new(Nothing).into();
    let mut context = Context::from_waker(&waker);
    let mut future = Box::pin(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn main() {
    run(outer(10000));
    println!("done");
}
