// SPDX-License-Identifier: Apache-2.0
// Async functions that await each other on tokio: in main's own task, in one that another thread runs, in one of this
// thread, joined, selected and with a time limit. Built by tests/e2e/rust_tokio.py.
use std::sync::Mutex;
use std::time::Duration;

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[inline(never)]
fn take(size: usize) {
    KEPT.lock().unwrap().push(Vec::with_capacity(size));
}

async fn load(size: usize) {
    take(size);
    tokio::time::sleep(Duration::from_millis(1)).await;
    take(size + 1);
}

async fn serve(size: usize) {
    load(size).await; // alone
    tokio::join!(load(size + 10), load(size + 20));
    tokio::select! {
        _ = load(size + 30) => {}
        _ = std::future::pending::<()>() => {}
    }
    let _ = tokio::time::timeout(Duration::from_secs(3600), load(size + 40)).await; // limited
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    serve(10000).await;
    tokio::spawn(serve(20000)).await.unwrap();
    let here = tokio::task::LocalSet::new();
    here.run_until(async {
        tokio::task::spawn_local(serve(30000)).await.unwrap();
    })
    .await;
    tokio::task::spawn_blocking(|| take(40000)).await.unwrap();
    println!("done");
}
