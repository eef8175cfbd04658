//! How long a merge takes: the first one, and one after a single change.

mod cluster;

use divan::{Bencher, black_box};
use ingress_model::{Merger, ObjectName, Outcome, Snapshot};
use jiff::Timestamp;

const SIZES: [u32; 3] = [1_000, 10_000, 50_000];

fn main() {
    divan::main();
}

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn first(bencher: Bencher<'_, '_>, size: u32) {
    let snapshot = cluster::snapshot(size);
    let options = cluster::options();
    bencher.bench_local(|| {
        let mut merger = Merger::default();
        let outcome = merger.merge(black_box(&snapshot), &options, Timestamp::UNIX_EPOCH);
        (merger, outcome)
    });
}

#[divan::bench(args = SIZES, sample_count = 30, sample_size = 1)]
fn ingress_changed(bencher: Bencher<'_, '_>, size: u32) {
    let snapshot = cluster::snapshot(size);
    let mut changed = snapshot.clone();
    let name = ObjectName::new("team-7", "app-00007");
    let ingress = cluster::ingress(&name, 7, Some(61));
    changed.ingresses.insert(name, ingress);
    alternate(bencher, [&snapshot, &changed]);
}

#[divan::bench(args = SIZES, sample_count = 30, sample_size = 1)]
fn endpoints_changed(bencher: Bencher<'_, '_>, size: u32) {
    let snapshot = cluster::snapshot(size);
    let mut changed = snapshot.clone();
    let service = ObjectName::new("team-7", "app-00007");
    let name = ObjectName::new("team-7", "app-00007-x7k2p");
    let slice = cluster::endpoint_slice(&service, 8);
    changed.endpoint_slices.insert(name, slice);
    alternate(bencher, [&snapshot, &changed]);
}

/// Merges one snapshot and then the other, again and again, with one memory. As in a controller, the outcome before
/// lives until the next one is there.
fn alternate(bencher: Bencher<'_, '_>, snapshots: [&Snapshot; 2]) {
    let options = cluster::options();
    let mut merger = Merger::default();
    let mut turn = snapshots.into_iter().cycle();
    let mut running: Outcome = merger.merge(snapshots[1], &options, Timestamp::UNIX_EPOCH);
    bencher.bench_local(move || {
        if let Some(snapshot) = turn.next() {
            let outcome = merger.merge(black_box(snapshot), &options, Timestamp::UNIX_EPOCH);
            drop(std::mem::replace(&mut running, outcome));
        }
    });
}
