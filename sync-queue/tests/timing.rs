//! The rules of the queue, each as a script of events on paused time and the runs that must come of
//! it.
#![expect(clippy::unwrap_used, reason = "a set-up that fails fails its test")]

use std::cell::RefCell;
use std::num::NonZeroU16;
use std::time::Duration;

use sync_queue::{Backoff, Depth, Drain, Rate, Settings, Task, channel};
use tokio::time::{Instant, sleep, sleep_until};

use Act::{Close, Must, Skip};

type Key = &'static str;

/// What the script does to the queue.
#[derive(Debug, Clone, Copy)]
enum Act {
    Must(Key),
    Skip(Key),
    Close,
}

/// A run as the sync sees it: when it began (ms), its key and its attempt.
type Run = (u64, Key, u32);

#[derive(Debug, Clone, Copy)]
struct Case {
    rule: &'static str,
    settings: fn() -> Settings,
    /// How long each sync takes (ms).
    sync: u64,
    /// The numbers of the runs that fail, counted from 0.
    failing: &'static [usize],
    script: &'static [(u64, Act)],
    runs: &'static [Run],
    /// How the queue ends, and when (ms), if the script closes it.
    end: Option<(u64, Drain)>,
}

impl Case {
    const DEFAULT: Self = Self {
        rule: "",
        settings,
        sync: 0,
        failing: &[],
        script: &[],
        runs: &[],
        end: None,
    };
}

const COMPLETE: Drain = Drain {
    failed: 0,
    unfinished: 0,
};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// No rate limit, and a backoff of 5 ms doubling to 40 ms without jitter.
fn settings() -> Settings {
    Settings {
        retry: Backoff::new(millis(5), millis(40)),
        ..Settings::default()
    }
}

fn once_a_second() -> Settings {
    Settings {
        rate: Rate::every(millis(1_000)).unwrap(),
        ..settings()
    }
}

fn twice_then_once_a_second() -> Settings {
    Settings {
        rate: Rate::every(millis(1_000))
            .unwrap()
            .with_burst(NonZeroU16::new(2).unwrap()),
        ..settings()
    }
}

fn ingress_default() -> Settings {
    Settings {
        rate: Rate::per_second(0.3).unwrap(),
        ..settings()
    }
}

fn shutdown_within_50() -> Settings {
    Settings {
        shutdown_within: Some(millis(50)),
        ..settings()
    }
}

fn at_once() -> Settings {
    Settings {
        shutdown_within: Some(Duration::ZERO),
        ..settings()
    }
}

fn unbounded() -> Settings {
    Settings {
        shutdown_within: None,
        ..once_a_second()
    }
}

async fn check(cases: &[Case]) {
    for case in cases {
        let (runs, end) = play(case).await;
        assert_eq!(runs, case.runs, "{}", case.rule);
        if let Some(expected) = case.end {
            assert_eq!(end, expected, "{}", case.rule);
        }
    }
}

/// Plays the script of a case, and lets everything come to rest before the queue is closed.
async fn play(case: &Case) -> (Vec<Run>, (u64, Drain)) {
    let (handle, queue) = channel((case.settings)());
    let begun = Instant::now();
    let elapsed = || u64::try_from(begun.elapsed().as_millis()).unwrap();
    let runs = RefCell::new(Vec::new());
    let script = async {
        for (at, act) in case.script {
            sleep_until(begun + millis(*at)).await;
            match *act {
                Must(key) => assert!(handle.enqueue(key), "{}", case.rule),
                Skip(key) => assert!(handle.enqueue_skippable(key), "{}", case.rule),
                Close => handle.close(),
            }
        }
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(handle.depth(), Depth::default(), "{}", case.rule);
        drop(handle);
    };
    let worker = async {
        let drain = queue
            .run(async |task: Task<Key>| {
                let number = runs.borrow().len();
                runs.borrow_mut().push((elapsed(), task.key, task.attempt));
                if case.sync > 0 {
                    sleep(millis(case.sync)).await;
                }
                if case.failing.contains(&number) {
                    Err("refused")
                } else {
                    Ok(())
                }
            })
            .await;
        (elapsed(), drain)
    };
    let ((), end) = tokio::join!(script, worker);
    (runs.into_inner(), end)
}

#[tokio::test(start_paused = true)]
async fn enqueuing() {
    check(&[
        Case {
            rule: "nothing enqueued, nothing run",
            ..Case::DEFAULT
        },
        Case {
            rule: "an event runs at once",
            script: &[(7, Must("a"))],
            runs: &[(7, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a skippable event with nothing to cover it runs at once",
            script: &[(7, Skip("a"))],
            runs: &[(7, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a queued key is not queued twice",
            sync: 10,
            script: &[
                (0, Must("a")),
                (1, Must("b")),
                (2, Must("b")),
                (3, Must("b")),
            ],
            runs: &[(0, "a", 1), (10, "b", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a key that is being synced is queued again",
            sync: 10,
            script: &[(0, Must("a")), (5, Must("a")), (6, Must("a"))],
            runs: &[(0, "a", 1), (10, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a key enqueued at the instant its sync ends runs again",
            sync: 10,
            script: &[(0, Must("a")), (10, Must("a"))],
            runs: &[(0, "a", 1), (10, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "one sync at a time, in the order of arrival",
            sync: 10,
            script: &[(0, Must("a")), (1, Must("c")), (2, Must("b"))],
            runs: &[(0, "a", 1), (10, "c", 1), (20, "b", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "must-run entries run first",
            sync: 10,
            script: &[(0, Must("a")), (1, Skip("b")), (2, Must("c"))],
            runs: &[(0, "a", 1), (10, "c", 1)],
            ..Case::DEFAULT
        },
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn skipping() {
    check(&[
        Case {
            rule: "a later sync for any key covers a skippable entry",
            sync: 10,
            script: &[
                (0, Must("a")),
                (1, Skip("b")),
                (2, Skip("c")),
                (3, Skip("d")),
            ],
            runs: &[(0, "a", 1), (10, "b", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a sync that had begun already does not cover it",
            sync: 10,
            script: &[(0, Must("a")), (5, Skip("b"))],
            runs: &[(0, "a", 1), (10, "b", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a sync begun after the first but before the last enqueue does not cover it",
            sync: 10,
            script: &[
                (0, Must("a")),
                (1, Skip("b")),
                (2, Must("c")),
                (15, Skip("b")),
            ],
            runs: &[(0, "a", 1), (10, "c", 1), (20, "b", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a failed sync covers nothing",
            sync: 10,
            failing: &[1],
            script: &[(0, Must("a")), (1, Skip("b")), (2, Must("c"))],
            runs: &[(0, "a", 1), (10, "c", 1), (20, "b", 1), (30, "c", 2)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a must-run entry is never covered",
            sync: 10,
            script: &[(0, Must("a")), (1, Must("b")), (1, Must("c"))],
            runs: &[(0, "a", 1), (10, "b", 1), (20, "c", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a must-run enqueue upgrades a skippable entry",
            sync: 10,
            script: &[
                (0, Must("a")),
                (1, Skip("b")),
                (2, Must("c")),
                (3, Must("b")),
            ],
            runs: &[(0, "a", 1), (10, "b", 1), (20, "c", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a skippable enqueue does not downgrade a must-run entry",
            sync: 10,
            script: &[
                (0, Must("a")),
                (1, Must("b")),
                (2, Must("c")),
                (3, Skip("c")),
            ],
            runs: &[(0, "a", 1), (10, "b", 1), (20, "c", 1)],
            ..Case::DEFAULT
        },
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn rate_limit() {
    check(&[
        Case {
            rule: "the first acts at once, the limit applies to what follows",
            settings: once_a_second,
            script: &[(500, Must("a")), (500, Must("b")), (501, Must("c"))],
            runs: &[(500, "a", 1), (1_500, "b", 1), (2_500, "c", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "0.3 syncs a second, rounded up to the timer's millisecond",
            settings: ingress_default,
            script: &[(0, Must("a")), (1, Must("b")), (2, Must("c"))],
            runs: &[(0, "a", 1), (3_334, "b", 1), (6_668, "c", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "the next after a quiet time acts at once again",
            settings: once_a_second,
            script: &[(0, Must("a")), (1_700, Must("a"))],
            runs: &[(0, "a", 1), (1_700, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a quiet time is paid back by no more than the burst",
            settings: twice_then_once_a_second,
            script: &[
                (9_000, Must("a")),
                (9_000, Must("b")),
                (9_000, Must("c")),
                (9_000, Must("d")),
            ],
            runs: &[
                (9_000, "a", 1),
                (9_000, "b", 1),
                (10_000, "c", 1),
                (11_000, "d", 1),
            ],
            ..Case::DEFAULT
        },
        Case {
            rule: "what arrives during the wait is merged into one run",
            settings: once_a_second,
            script: &[
                (0, Must("a")),
                (100, Must("a")),
                (500, Skip("b")),
                (800, Must("a")),
                (999, Skip("c")),
            ],
            runs: &[(0, "a", 1), (1_000, "a", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "skipped entries take no permit",
            settings: once_a_second,
            sync: 10,
            script: &[
                (0, Must("a")),
                (5, Skip("b")),
                (6, Skip("c")),
                (2_000, Must("d")),
            ],
            runs: &[(0, "a", 1), (1_000, "b", 1), (2_000, "d", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "the limit is between starts, not between an end and a start",
            settings: once_a_second,
            sync: 1_500,
            script: &[(0, Must("a")), (1, Must("b")), (2, Must("c"))],
            runs: &[(0, "a", 1), (1_500, "b", 1), (3_000, "c", 1)],
            ..Case::DEFAULT
        },
        Case {
            rule: "retries take permits",
            settings: once_a_second,
            failing: &[0, 1],
            script: &[(0, Must("a"))],
            runs: &[(0, "a", 1), (1_000, "a", 2), (2_000, "a", 3)],
            ..Case::DEFAULT
        },
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn failures() {
    check(&[
        Case {
            rule: "the delay doubles up to the cap",
            failing: &[0, 1, 2, 3, 4],
            script: &[(0, Must("a"))],
            runs: &[
                (0, "a", 1),
                (5, "a", 2),
                (15, "a", 3),
                (35, "a", 4),
                (75, "a", 5),
                (115, "a", 6),
            ],
            ..Case::DEFAULT
        },
        Case {
            rule: "the delay counts from the end of the failed sync",
            sync: 100,
            failing: &[0],
            script: &[(0, Must("a"))],
            runs: &[(0, "a", 1), (105, "a", 2)],
            ..Case::DEFAULT
        },
        Case {
            rule: "a success resets the delay",
            failing: &[0, 1, 3],
            script: &[(0, Must("a")), (100, Must("a"))],
            runs: &[
                (0, "a", 1),
                (5, "a", 2),
                (15, "a", 3),
                (100, "a", 1),
                (105, "a", 2),
            ],
            ..Case::DEFAULT
        },
        Case {
            rule: "keys back off on their own, and others run meanwhile",
            failing: &[0, 1, 2],
            script: &[(0, Must("a")), (1, Must("b")), (7, Must("c"))],
            runs: &[
                (0, "a", 1),
                (1, "b", 1),
                (5, "a", 2),
                (6, "b", 2),
                (7, "c", 1),
                (15, "a", 3),
            ],
            ..Case::DEFAULT
        },
        Case {
            rule: "a failed skippable entry is retried as must-run",
            failing: &[0],
            script: &[(0, Skip("a")), (1, Must("b"))],
            runs: &[(0, "a", 1), (1, "b", 1), (5, "a", 2)],
            ..Case::DEFAULT
        },
        Case {
            rule: "news end a backoff but keep the count",
            failing: &[0, 1, 2],
            script: &[(0, Must("a")), (8, Skip("a"))],
            runs: &[(0, "a", 1), (5, "a", 2), (8, "a", 3), (28, "a", 4)],
            ..Case::DEFAULT
        },
        Case {
            rule: "news during the run that fails make the retry immediate, as must-run",
            sync: 10,
            failing: &[0],
            script: &[(0, Must("a")), (5, Skip("a")), (6, Must("b"))],
            runs: &[(0, "a", 1), (10, "a", 2), (20, "b", 1)],
            ..Case::DEFAULT
        },
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn shutdown() {
    check(&[
        Case {
            rule: "what is queued still runs",
            sync: 10,
            script: &[(0, Must("a")), (1, Must("b")), (2, Skip("c")), (3, Close)],
            runs: &[(0, "a", 1), (10, "b", 1)],
            end: Some((20, COMPLETE)),
            ..Case::DEFAULT
        },
        Case {
            rule: "an idle queue ends at once",
            script: &[(3, Close)],
            end: Some((3, COMPLETE)),
            ..Case::DEFAULT
        },
        Case {
            rule: "the rate limit holds during the drain",
            settings: unbounded,
            script: &[(0, Must("a")), (1, Must("b")), (2, Must("c")), (3, Close)],
            runs: &[(0, "a", 1), (1_000, "b", 1), (2_000, "c", 1)],
            end: Some((2_000, COMPLETE)),
            ..Case::DEFAULT
        },
        Case {
            rule: "a delayed key has its last try at once",
            failing: &[0, 1, 2],
            script: &[(0, Must("a")), (17, Close)],
            runs: &[(0, "a", 1), (5, "a", 2), (15, "a", 3), (17, "a", 4)],
            end: Some((17, COMPLETE)),
            ..Case::DEFAULT
        },
        Case {
            rule: "a sync that fails after the close has a last try",
            sync: 10,
            failing: &[0],
            script: &[(0, Must("a")), (3, Close)],
            runs: &[(0, "a", 1), (10, "a", 2)],
            end: Some((20, COMPLETE)),
            ..Case::DEFAULT
        },
        Case {
            rule: "a last try that fails is the last",
            sync: 10,
            failing: &[0, 1],
            script: &[(0, Must("a")), (3, Close)],
            runs: &[(0, "a", 1), (10, "a", 2)],
            end: Some((
                20,
                Drain {
                    failed: 1,
                    unfinished: 0,
                },
            )),
            ..Case::DEFAULT
        },
        Case {
            rule: "at the deadline the running sync is dropped and no other starts",
            settings: shutdown_within_50,
            sync: 40,
            script: &[(0, Must("a")), (1, Must("b")), (2, Must("c")), (5, Close)],
            runs: &[(0, "a", 1), (40, "b", 1)],
            end: Some((
                55,
                Drain {
                    failed: 0,
                    unfinished: 2,
                },
            )),
            ..Case::DEFAULT
        },
        Case {
            rule: "no time to shut down ends a running sync at once",
            settings: at_once,
            sync: 40,
            script: &[(0, Must("a")), (5, Close)],
            runs: &[(0, "a", 1)],
            end: Some((
                5,
                Drain {
                    failed: 0,
                    unfinished: 1,
                },
            )),
            ..Case::DEFAULT
        },
    ])
    .await;
}
