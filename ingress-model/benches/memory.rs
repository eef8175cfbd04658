//! What a merge allocates, and how much of it stays: a merger and its outcome, by the number of Ingresses. `max alloc`
//! divided by that number is what an Ingress takes besides its own objects.

mod cluster;

use divan::{AllocProfiler, Bencher};
use ingress_model::Merger;
use jiff::Timestamp;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(args = [1_000, 10_000], sample_count = 3, sample_size = 1)]
fn first(bencher: Bencher<'_, '_>, size: u32) {
    let snapshot = cluster::snapshot(size);
    let options = cluster::options();
    bencher.bench_local(|| {
        let mut merger = Merger::default();
        let outcome = merger.merge(&snapshot, &options, Timestamp::UNIX_EPOCH);
        (merger, outcome)
    });
}
