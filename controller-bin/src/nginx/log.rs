//! What NGINX says on its standard error: passed on, and its last lines kept for our own messages.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};

/// How many lines are kept.
const KEPT: usize = 200;

/// How many bytes of a line are kept.
const LONGEST: usize = 2_000;

/// The last lines that NGINX logged. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorLog(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    /// How many lines there were before the first one that is kept.
    dropped: u64,
    kept: VecDeque<String>,
}

/// A point in the log: how many lines came before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl ErrorLog {
    /// Reads lines until the other end is closed, passing each on to our own standard error.
    pub(crate) async fn follow(self, from: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(from);
        let mut stderr = tokio::io::stderr();
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            // Who closes our standard error does not want to read it.
            let _unread = stderr.write_all(&line).await;
            let shown = line.get(..LONGEST).unwrap_or(&line);
            self.push(String::from_utf8_lossy(shown).trim_end().to_owned());
        }
    }

    pub(crate) fn push(&self, line: String) {
        let mut lines = self.lines();
        lines.kept.push_back(line);
        if lines.kept.len() > KEPT {
            lines.kept.pop_front();
            lines.dropped += 1;
        }
    }

    /// The point after the last line.
    pub(crate) fn mark(&self) -> Mark {
        let lines = self.lines();
        Mark(lines.dropped + lines.kept.len() as u64)
    }

    /// The lines after a point, as far as they are kept.
    pub(crate) fn since(&self, mark: Mark) -> Vec<String> {
        let lines = self.lines();
        let skip = usize::try_from(mark.0.saturating_sub(lines.dropped)).unwrap_or(usize::MAX);
        lines.kept.iter().skip(skip).cloned().collect()
    }

    /// The lines after a point with which that master gave up on workers that end as soon as they are started.
    pub(crate) fn dead_workers(&self, mark: Mark, pid: u32) -> Vec<String> {
        let sign = format!("[alert] {pid}#");
        let mut lines = self.since(mark);
        let is_given_up = |line: &str| line.contains(&sign) && line.contains("cannot be respawned");
        if lines.iter().any(|line| is_given_up(line)) {
            lines.retain(|line| line.contains("[alert]") || line.contains("[emerg]"));
            lines
        } else {
            Vec::new()
        }
    }

    /// The lines after a point with which that process gave up what it was doing.
    pub(crate) fn emergencies(&self, mark: Mark, pid: u32) -> Vec<String> {
        let sign = format!("[emerg] {pid}#");
        let mut lines = self.since(mark);
        lines.retain(|line| line.contains(&sign));
        lines
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_a_mark_are_told() {
        let log = ErrorLog::default();
        log.push("one".into());
        let mark = log.mark();
        assert!(log.since(mark).is_empty());
        log.push("two".into());
        assert_eq!(log.since(mark), ["two"]);
        assert_eq!(log.since(Mark::default()), ["one", "two"]);
        for number in 0..KEPT {
            log.push(number.to_string());
        }
        assert_eq!(log.since(mark).len(), KEPT);
        assert_eq!(log.since(mark).first().map(String::as_str), Some("0"));
    }

    #[test]
    fn emergencies_of_other_processes_do_not_count() {
        let log = ErrorLog::default();
        let mark = log.mark();
        log.push("2026/11/30 05:00:00 [emerg] 12#12: bind() to 0.0.0.0:80 failed".into());
        log.push("2026/11/30 05:00:00 [emerg] 123#123: still could not bind()".into());
        log.push("2026/11/30 05:00:00 [notice] 12#12: signal process started".into());
        assert_eq!(log.emergencies(mark, 12).len(), 1);
    }

    #[test]
    fn workers_that_cannot_live_are_noticed() {
        let log = ErrorLog::default();
        let mark = log.mark();
        log.push("[alert] 20#20: chdir(\"/none\") failed".into());
        assert!(log.dead_workers(mark, 12).is_empty());
        log.push("[notice] 12#12: signal 17 (SIGCHLD) received from 20".into());
        log.push(
            "[alert] 12#12: worker process 20 exited with fatal code 2 and cannot be respawned"
                .into(),
        );
        assert_eq!(log.dead_workers(mark, 12).len(), 2);
        assert!(log.dead_workers(mark, 13).is_empty());
    }

    #[tokio::test]
    async fn a_stream_is_kept_line_by_line() {
        let log = ErrorLog::default();
        let long = "x".repeat(3 * LONGEST);
        let text = format!("{long}\nlast");
        log.clone().follow(text.as_bytes()).await;
        let kept = log.since(Mark::default());
        assert_eq!(
            kept.iter().map(String::len).collect::<Vec<_>>(),
            [LONGEST, 4]
        );
    }
}
