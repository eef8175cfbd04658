//! Who asks for the metrics, under the names that Go's client library gives.

use axum::http::StatusCode;
use prometheus::{IntCounterVec, IntGauge, Registry};

use super::controller::keep;

/// Counts requests for `/metrics`.
#[derive(Debug)]
pub(super) struct Scrapes {
    total: IntCounterVec,
    in_flight: IntGauge,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Scrape<'a>(&'a Scrapes);

impl Scrapes {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let total = prometheus::Opts::new(
            "promhttp_metric_handler_requests_total",
            "Requests for metrics by the status of the answer",
        );
        let total = keep(registry, IntCounterVec::new(total, &["code"])?)?;
        for code in ["200", "500", "503"] {
            total.with_label_values(&[code]);
        }
        let in_flight = IntGauge::new(
            "promhttp_metric_handler_requests_in_flight",
            "Requests for metrics that are being answered",
        )?;
        Ok(Self {
            total,
            in_flight: keep(registry, in_flight)?,
        })
    }

    pub(super) fn begin(&self) -> Scrape<'_> {
        self.in_flight.inc();
        Scrape(self)
    }
}

impl Scrape<'_> {
    pub(super) fn answered(self, status: StatusCode) {
        let total = &self.0.total;
        total.with_label_values(&[status.as_str()]).inc();
    }
}

impl Drop for Scrape<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
