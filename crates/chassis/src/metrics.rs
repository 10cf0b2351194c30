//! The metrics of a process, in the OpenMetrics text format, all under the prefix `kubezap_`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of a metric that several crates count into, so that its type is the same in each: names with values, in one
/// order everywhere.
pub type Labels = Vec<(&'static str, String)>;

/// A registry that the parts of one process share; cloning it shares it.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Mutex<Registered>>);

#[derive(Debug)]
struct Registered {
    registry: Registry,
    by_name: HashMap<String, Box<dyn Any + Send>>,
}

impl Metrics {
    /// Starts empty.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Registered {
            registry: Registry::with_prefix("kubezap"),
            by_name: HashMap::new(),
        })))
    }

    /// Registers a metric and gives it back; registered before under this name, gives that one.
    ///
    /// `name` comes without the prefix and, for a counter, without `_total`: the text format appends it. `help` comes
    /// without its full stop, for the same reason.
    ///
    /// # Panics
    /// When `name` stands for a metric of another type: two series of one name are no valid text.
    pub fn register<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        let mut guard = self.lock();
        let Registered { registry, by_name } = &mut *guard;
        if let Some(before) = by_name.get(name) {
            let same = before.downcast_ref::<M>().cloned();
            drop(guard);
            return same
                .unwrap_or_else(|| panic!("the metric {name} is registered with another type"));
        }
        registry.register(name, help, metric.clone());
        by_name.insert(name.to_owned(), Box::new(metric.clone()));
        metric
    }

    /// Writes every metric as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail; a metric that cannot be written leaves what stands before it.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.lock().registry);
        text
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Upper bounds of latency buckets, in seconds: 1 ms to 60 s.
pub const LATENCY_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];

/// Makes a histogram with [`LATENCY_BUCKETS`]; the constructor to give to a `Family`.
pub fn latency() -> Histogram {
    Histogram::new(LATENCY_BUCKETS)
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn names_carry_the_prefix_and_counters_end_in_total() {
        let metrics = Metrics::new();
        let counter: Counter = metrics.register("things", "Things seen", Counter::default());
        counter.inc();
        assert!(metrics.encode().contains("kubezap_things_total 1"));
    }

    #[test]
    fn parts_of_a_process_count_into_one_metric() {
        let metrics = Metrics::new();
        let first: Counter = metrics.register("things", "Things seen", Counter::default());
        let second: Counter = metrics.register("things", "Things seen", Counter::default());
        first.inc();
        second.inc();
        let text = metrics.encode();
        assert_eq!(text.matches("kubezap_things_total").count(), 1, "{text}");
        assert!(text.contains("kubezap_things_total 2"), "{text}");
    }

    #[test]
    fn latency_buckets_begin_at_one_millisecond() {
        let metrics = Metrics::new();
        metrics
            .register("wait_seconds", "Waits", latency())
            .observe(0.0004);
        let text = metrics.encode();
        assert!(
            text.contains("kubezap_wait_seconds_bucket{le=\"0.001\"} 1"),
            "{text}"
        );
    }
}
