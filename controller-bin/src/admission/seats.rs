//! Who has a connection to the webhook, and who has to go when there are too many.
//!
//! A connection that waits for its peer (for a handshake, a request, the rest of one) goes when another one comes and there
//! is no room: the one that has waited longest among those of the address that has most of them. One that waits for a
//! review stays. So nobody keeps others out by holding connections, and the API server, which comes from one address mostly,
//! may have all of them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Notify, time::Instant};

/// The places for connections.
pub(super) struct Seats {
    limit: usize,
    state: Mutex<State>,
    /// Told whenever there may be room.
    changed: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    taken: BTreeMap<u64, Taken>,
}

struct Taken {
    peer: IpAddr,
    /// Since when it waits for its peer.
    waits_since: Option<Instant>,
    leave: Arc<Notify>,
}

/// A place that is taken until this is dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    leave: Arc<Notify>,
}

impl Seats {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits until there is room for one more, be it that of somebody else.
    pub(super) async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            let has_room = {
                let state = self.state();
                state.taken.len() < self.limit || state.dispensable().is_some()
            };
            if has_room {
                return;
            }
            changed.await;
        }
    }

    /// Takes a place, from somebody else if there is none.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Seat {
        let mut state = self.state();
        if state.taken.len() >= self.limit
            && let Some(number) = state.dispensable()
            && let Some(taken) = state.taken.remove(&number)
        {
            taken.leave.notify_one();
        }
        let leave = Arc::new(Notify::new());
        let number = state.next;
        state.next += 1;
        let taken = Taken {
            peer,
            waits_since: Some(Instant::now()),
            leave: Arc::clone(&leave),
        };
        state.taken.insert(number, taken);
        Seat {
            seats: Arc::clone(self),
            number,
            leave,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Who has to go.
    fn dispensable(&self) -> Option<u64> {
        let mut of_peer: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for taken in self.taken.values() {
            *of_peer.entry(taken.peer).or_default() += 1;
        }
        let waiting = self.taken.iter().filter_map(|(number, taken)| {
            let rivals = of_peer.get(&taken.peer).copied().unwrap_or_default();
            Some((*number, rivals, taken.waits_since?))
        });
        let first = waiting
            .min_by_key(|(number, rivals, since)| (std::cmp::Reverse(*rivals), *since, *number));
        first.map(|(number, _, _)| number)
    }
}

impl Seat {
    /// Waits until somebody else has been given the place.
    pub(super) async fn lost(&self) {
        self.leave.notified().await;
    }

    /// Says that it does not wait for its peer from now on, until what is answered is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.set(None);
        Busy(Arc::clone(self))
    }

    fn set(&self, waits_since: Option<Instant>) {
        if let Some(taken) = self.seats.state().taken.get_mut(&self.number) {
            taken.waits_since = waits_since;
        }
        self.seats.changed.notify_one();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.state().taken.remove(&self.number);
        self.seats.changed.notify_one();
    }
}

/// A review is made for this place.
pub(super) struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn is_lost(seat: &Seat) -> bool {
        seat.lost().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_most_gives_up_what_has_waited_longest() {
        let seats = Seats::new(4);
        let server = seats.take(peer(1));
        let mut greedy = Vec::new();
        for _ in 0..3 {
            advance(Duration::from_secs(1)).await;
            greedy.push(seats.take(peer(2)));
        }
        assert!(seats.room().now_or_never().is_some());
        let _again = seats.take(peer(1));
        assert!(is_lost(&greedy[0]));
        assert!(!is_lost(&server) && !is_lost(&greedy[1]) && !is_lost(&greedy[2]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_may_have_all_places() {
        let seats = Seats::new(3);
        let all: Vec<_> = (0..3).map(|_| seats.take(peer(1))).collect();
        assert!(!all.iter().any(is_lost));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_review_stays() {
        let seats = Seats::new(2);
        let (one, other) = (Arc::new(seats.take(peer(1))), Arc::new(seats.take(peer(1))));
        let busy = [one.busy(), other.busy()];
        assert!(seats.room().now_or_never().is_none());
        let [first, _second] = busy;
        drop(first);
        assert!(seats.room().now_or_never().is_some());
        let _third = seats.take(peer(2));
        assert!(is_lost(&one) && !is_lost(&other));
    }
}
