//! Bodies of requests, as far as they are kept.

use std::sync::Arc;

use axum::http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A body has to be smaller than that, in bytes. An API server takes no request larger than 3 MiB; a review of a change
/// holds two versions of it.
pub(super) const LIMIT: usize = 9 << 20;

/// So much is read of a body that is too large: who is still sending does not see the answer.
const PATIENCE: usize = 2 * LIMIT;

/// A body, and the room that it takes.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) text: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the body has to be smaller than {LIMIT} bytes")]
    TooLarge,
    #[error("too many large reviews at once")]
    NoRoom,
    #[error("cannot read the body")]
    Broken(#[source] hyper::Error),
}

impl BodyError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body, as long as it is not too large and there is room for it (a permit a byte).
pub(super) async fn read(
    mut body: impl Body<Data = hyper::body::Bytes, Error = hyper::Error> + Unpin,
    room: &Arc<Semaphore>,
) -> Result<Kept, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced >= PATIENCE {
        return Err(BodyError::TooLarge);
    }
    let mut kept = Kept {
        text: Vec::new(),
        room: None,
    };
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else {
            continue;
        };
        length += data.len();
        if length >= PATIENCE {
            return Err(BodyError::TooLarge);
        }
        if announced.max(length) < LIMIT {
            kept.take(room, &data)?;
        } else {
            kept.text = Vec::new();
            kept.room = None;
        }
    }
    if length >= LIMIT {
        return Err(BodyError::TooLarge);
    }
    Ok(kept)
}

impl Kept {
    fn take(&mut self, room: &Arc<Semaphore>, data: &[u8]) -> Result<(), BodyError> {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let more = Arc::clone(room).try_acquire_many_owned(bytes);
        let Ok(more) = more else {
            return Err(BodyError::NoRoom);
        };
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        self.text.extend_from_slice(data);
        Ok(())
    }
}
