//! What an observer is told, and in which order.
#![expect(clippy::unwrap_used, reason = "a set-up that fails fails its test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sync_queue::{Backoff, Depth, Kind, Observer, Rate, Settings, Task, channel_with_observer};
use tokio::time::{Instant, sleep, sleep_until};

type Key = &'static str;

/// Writes down every call.
#[derive(Debug, Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer<Key> for Recorder {
    fn enqueued(&self, key: &Key, kind: Kind) {
        self.note(format!("enqueued {key} {kind:?}"));
    }

    fn merged(&self, key: &Key, kind: Kind) {
        self.note(format!("merged {key} {kind:?}"));
    }

    fn skipped(&self, key: &Key) {
        self.note(format!("skipped {key}"));
    }

    fn started(&self, task: &Task<Key>) {
        self.note(format!(
            "started {} #{} after {:?}",
            task.key, task.attempt, task.waited
        ));
    }

    fn succeeded(&self, task: &Task<Key>, took: Duration) {
        self.note(format!("succeeded {} in {took:?}", task.key));
    }

    fn failed(&self, task: &Task<Key>, took: Duration, retry_in: Option<Duration>) {
        self.note(format!(
            "failed {} in {took:?}, again in {retry_in:?}",
            task.key
        ));
    }

    fn depth(&self, depth: Depth) {
        self.note(format!("depth {}+{}", depth.ready, depth.delayed));
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_is_told_everything_in_order() {
    let recorder = Recorder::default();
    let settings = Settings {
        retry: Backoff::new(Duration::from_millis(5), Duration::from_millis(40)),
        ..Settings::default()
    };
    let (handle, queue) = channel_with_observer(settings, recorder.clone());
    let begun = Instant::now();
    let at = |millis| sleep_until(begun + Duration::from_millis(millis));
    let script = async {
        handle.enqueue("a");
        at(1).await;
        handle.enqueue_skippable("b");
        at(2).await;
        handle.enqueue_skippable("b");
        handle.enqueue_skippable("c");
        at(19).await;
        handle.close();
    };
    let worker = queue.run(async |task: Task<Key>| {
        sleep(Duration::from_millis(10)).await;
        if task.key == "a" {
            Err("refused")
        } else {
            Ok(())
        }
    });
    let ((), drain) = tokio::join!(script, worker);
    assert_eq!((drain.failed, drain.unfinished), (1, 0));
    let mut lines = std::mem::take(&mut *recorder.0.lock().unwrap());
    // Each change is followed by a depth; a repeated one says nothing new.
    lines.dedup();
    assert_eq!(
        lines,
        [
            "enqueued a MustRun",
            "depth 1+0",
            "started a #1 after 0ns",
            "depth 0+0",
            "enqueued b Skippable",
            "depth 1+0",
            "merged b Skippable",
            "depth 1+0",
            "enqueued c Skippable",
            "depth 2+0",
            "failed a in 10ms, again in Some(5ms)",
            "depth 2+1",
            "started b #1 after 9ms",
            "depth 1+1",
            "depth 2+0",
            "succeeded b in 10ms",
            "skipped c",
            "depth 1+0",
            "started a #2 after 20ms",
            "depth 0+0",
            "failed a in 10ms, again in None",
            "depth 0+0",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_said_to_come_when_the_rate_limit_lets_it() {
    let recorder = Recorder::default();
    let settings = Settings {
        rate: Rate::every(Duration::from_secs(3)).unwrap(),
        retry: Backoff::new(Duration::from_millis(5), Duration::from_secs(40)),
        ..Settings::default()
    };
    let (handle, queue) = channel_with_observer(settings, recorder.clone());
    handle.enqueue("a");
    let mut runs = 0;
    let worker = queue.run(async |_: Task<Key>| {
        runs += 1;
        if runs == 1 {
            return Err("refused");
        }
        handle.close();
        Ok(())
    });
    assert_eq!(worker.await.failed, 0);
    let lines = std::mem::take(&mut *recorder.0.lock().unwrap());
    for line in [
        "failed a in 0ns, again in Some(3s)",
        "started a #2 after 3s",
    ] {
        assert!(lines.iter().any(|found| found == line), "{lines:#?}");
    }
}
