//! Requests to the API server that do not wait for ever, and what their failures mean.

use std::time::Duration;

use tokio::time::{Instant, error::Elapsed, sleep_until, timeout};

/// Why the API server did not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    /// It refused, or could not be reached.
    #[error(transparent)]
    Failed(#[from] kube::Error),
    /// It did not answer.
    #[error("no answer in time")]
    Late(#[from] Elapsed),
}

impl RequestError {
    /// Whether somebody else has written the object first.
    pub(super) fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object, or its namespace, is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the API server would answer other requests better.
    pub(super) fn is_refusal(&self) -> bool {
        self.code()
            .is_some_and(|code| (400..500).contains(&code) && code != 429)
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Failed(kube::Error::Api(status)) => Some(status.code),
            Self::Failed(_) | Self::Late(_) => None,
        }
    }
}

/// Makes a request, but waits no longer than that for the answer.
pub(super) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    Ok(timeout(limit, request).await??)
}

/// Waits for a time; for ever if there is none.
pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_are_told_apart() {
        let refused = |code| {
            let status = Status {
                code,
                ..Status::default()
            };
            RequestError::from(kube::Error::Api(Box::new(status)))
        };
        for (code, conflict, missing, refusal) in [
            (403, false, false, true),
            (404, false, true, true),
            (409, true, false, true),
            (429, false, false, false),
            (503, false, false, false),
        ] {
            let error = refused(code);
            let found = (error.is_conflict(), error.is_missing(), error.is_refusal());
            assert_eq!(found, (conflict, missing, refusal), "{code}");
        }
        let late = within(
            Duration::from_secs(1),
            std::future::pending::<Result<(), _>>(),
        )
        .await;
        assert!(!late.unwrap_err().is_refusal());
    }
}
