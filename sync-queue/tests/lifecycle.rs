//! How a queue opens, ends and describes its tasks.

use std::cell::RefCell;
use std::time::Duration;

use sync_queue::{Depth, Drain, Kind, Rate, Settings, Task, channel};
use tokio::time::{Instant, sleep};

type Key = &'static str;

#[tokio::test(start_paused = true)]
async fn a_closed_queue_accepts_nothing() {
    let (handle, queue) = channel(Settings::default());
    let other = handle.clone();
    assert!(handle.enqueue("a"));
    handle.close();
    assert!(other.is_closed());
    assert!(!other.enqueue("b"));
    assert!(!other.enqueue_skippable("b"));
    assert_eq!(
        handle.depth(),
        Depth {
            ready: 1,
            delayed: 0
        }
    );
    let drain = queue
        .run(async |task: Task<Key>| {
            assert_eq!(task.key, "a");
            Ok::<(), Key>(())
        })
        .await;
    assert!(drain.is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_gone_accepts_nothing() {
    let (handle, queue) = channel(Settings::default());
    handle.enqueue("a");
    drop(queue);
    assert!(handle.is_closed());
    assert!(!handle.enqueue("b"));
    assert_eq!(handle.depth(), Depth::default());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_queue() {
    let (handle, queue) = channel::<Key>(Settings::default());
    let other = handle.clone();
    let running = tokio::spawn(queue.run(async |_| Ok::<(), Key>(())));
    drop(handle);
    sleep(millis(100)).await;
    assert!(!running.is_finished());
    drop(other);
    assert!(running.await.unwrap().is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_panic_unwinds_and_closes_the_queue() {
    let (handle, queue) = channel(Settings::default());
    handle.enqueue("a");
    let running = tokio::spawn(
        queue.run(async |task: Task<Key>| -> Result<(), Key> { panic!("{}", task.key) }),
    );
    assert!(running.await.unwrap_err().is_panic());
    assert!(!handle.enqueue("b"));
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_never_waits_and_feeds_itself_still_ends_at_the_deadline() {
    let (handle, queue) = channel(Settings {
        shutdown_within: Some(Duration::ZERO),
        ..Settings::default()
    });
    handle.enqueue(0_u32);
    let mut runs = 0;
    let drain = queue
        .run(async |task: Task<u32>| {
            runs += 1;
            handle.enqueue(task.key + 1);
            if task.key == 100 {
                handle.close();
            }
            Ok::<(), Key>(())
        })
        .await;
    assert_eq!(
        (runs, drain),
        (
            101,
            Drain {
                failed: 0,
                unfinished: 1
            }
        )
    );
}

#[tokio::test(start_paused = true)]
async fn the_task_tells_how_long_its_oldest_event_has_waited() {
    let (handle, queue) = channel(Settings {
        rate: Rate::every(millis(1_000)).unwrap(),
        ..Settings::default()
    });
    let begun = Instant::now();
    let tasks = RefCell::new(Vec::new());
    let script = async {
        handle.enqueue("a");
        sleep(millis(200)).await;
        handle.enqueue_skippable("a");
        sleep(millis(200)).await;
        handle.enqueue_skippable("a");
        drop(handle);
    };
    let worker = queue.run(async |task: Task<Key>| {
        tasks
            .borrow_mut()
            .push((task.enqueued_at - begun, task.waited, task.kind));
        Ok::<(), Key>(())
    });
    let ((), drain) = tokio::join!(script, worker);
    assert!(drain.is_complete());
    assert_eq!(
        tasks.into_inner(),
        [
            (millis(0), millis(0), Kind::MustRun),
            (millis(200), millis(800), Kind::Skippable)
        ]
    );
}

/// The worker can be spawned, and its sync may change what it has captured.
#[tokio::test(start_paused = true)]
async fn a_sync_may_own_state_in_a_spawned_worker() {
    let (handle, queue) = channel(Settings::default());
    let (report, mut reports) = tokio::sync::mpsc::channel(1);
    let mut applied = String::new();
    let running = tokio::spawn(queue.run(async move |task: Task<Key>| {
        sleep(millis(1)).await;
        applied.push_str(task.key);
        report.send(applied.clone()).await
    }));
    handle.enqueue("a");
    assert_eq!(reports.recv().await.as_deref(), Some("a"));
    handle.enqueue("b");
    assert_eq!(reports.recv().await.as_deref(), Some("ab"));
    handle.close();
    assert!(running.await.unwrap().is_complete());
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
