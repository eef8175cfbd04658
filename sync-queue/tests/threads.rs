//! Many threads enqueue at once, in real time: nothing is lost between the lock and the wake-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sync_queue::{Settings, Task, channel};

const THREADS: u64 = 4;
const ENQUEUES: u64 = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_sync_sees_what_every_thread_has_done() {
    let (handle, queue) = channel(Settings::default());
    let version = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(AtomicU64::new(0));

    let running = tokio::spawn(queue.run({
        let (version, seen) = (Arc::clone(&version), Arc::clone(&seen));
        async move |_: Task<u64>| {
            let snapshot = version.load(Ordering::SeqCst);
            tokio::task::yield_now().await;
            seen.store(snapshot, Ordering::SeqCst);
            Ok::<(), String>(())
        }
    }));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (handle, version) = (handle.clone(), Arc::clone(&version));
            thread::spawn(move || {
                for count in 0..ENQUEUES {
                    version.fetch_add(1, Ordering::SeqCst);
                    assert!(handle.enqueue_skippable((thread + count) % 3));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("the thread enqueues everything");
    }
    // Not by the close, which would wake the worker a last time: by the enqueues alone.
    while handle.depth().ready > 0 || seen.load(Ordering::SeqCst) < THREADS * ENQUEUES {
        tokio::task::yield_now().await;
    }
    drop(handle);
    assert!(
        running
            .await
            .expect("the worker does not panic")
            .is_complete()
    );
}
