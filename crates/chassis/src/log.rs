//! The log of a process: JSON lines for machines, text for people, on standard output or wherever it is told to write.
//!
//! A line holds `ts`, `level`, `msg` and the event's own fields. A field whose name has dots becomes an object in an
//! object: `request.method = "POST"` is written as `{"request": {"method": "POST"}}`.

use std::fmt;
use std::io;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogArgs, LogFormat, LogLevel};

/// A log was set up already.
#[derive(Debug, thiserror::Error)]
#[error("the log is already set up")]
pub struct AlreadySetUp;

/// Sets the log of this process up, on standard output.
///
/// `--log-level` is the level of KubeZap's own code. Dependencies log warnings at most, and the Kubernetes client and the
/// HTTP libraries errors only, whatever the level: below it they print bodies and headers, and these hold credentials.
/// A panic is logged like everything else.
///
/// # Errors
/// When it was set up before.
pub fn init(args: &LogArgs) -> Result<(), AlreadySetUp> {
    init_to(args, io::stdout)
}

/// As [`init`], written to `writer`.
///
/// # Errors
/// When it was set up before.
pub fn init_to<W>(args: &LogArgs, writer: W) -> Result<(), AlreadySetUp>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let LogArgs {
        log_format,
        log_level,
    } = args;
    let filter = filter(*log_level);
    let registry = tracing_subscriber::registry().with(filter);
    let set = match log_format {
        LogFormat::Json => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .event_format(JsonLines)
                    .with_writer(writer),
            )
            .try_init(),
        LogFormat::Text => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_target(false)
                    .with_ansi(false)
                    .with_writer(writer),
            )
            .try_init(),
    };
    set.map_err(|_| AlreadySetUp)?;
    log_panics();
    Ok(())
}

fn filter(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(
            ["kube_client", "hyper", "h2", "tower_http", "rustls"]
                .map(|target| (target, LevelFilter::ERROR)),
        )
        .with_target("kubezap", level)
}

fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("panicked");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, panic = message, "a task panicked");
    }));
}

/// One JSON object a line.
#[derive(Clone, Copy, Debug)]
pub struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        line.put("ts", Timestamp::now().to_string().into());
        line.put("level", level(event.metadata().level()).into());
        line.put("msg", Value::String(String::new()));
        event.record(&mut line);
        let text = serde_json::to_string(&line.0).map_err(|_| fmt::Error)?;
        writeln!(writer, "{text}")
    }
}

fn level(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[derive(Default)]
struct Line(Map<String, Value>);

impl Line {
    fn put(&mut self, name: &str, value: Value) {
        let mut object = &mut self.0;
        let mut rest = name;
        while let Some((outer, inner)) = rest.split_once('.') {
            let slot = object
                .entry(outer)
                .or_insert_with(|| Value::Object(Map::new()));
            // A plain value of the same name gives way to the object.
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            let Value::Object(next) = slot else { return };
            object = next;
            rest = inner;
        }
        object.insert(rest.to_owned(), value);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = match field.name() {
            "message" => "msg",
            name => name,
        };
        self.put(name, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let name = match field.name() {
            "message" => "msg",
            name => name,
        };
        self.put(name, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: LogLevel, log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::registry().with(filter(level)).with(
            tracing_subscriber::fmt::layer()
                .event_format(JsonLines)
                .with_writer(move || writer.clone()),
        );
        tracing::subscriber::with_default(subscriber, log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_has_ts_level_msg_and_its_fields_with_dots_as_objects() {
        let lines = logged(LogLevel::Info, || {
            tracing::info!(
                target: "kubezap_gateway",
                { request.method = "POST", request.body_bytes = 7, created = true },
                "webhook_request"
            );
        });
        let line = &lines[0];
        assert!(line["ts"].as_str().unwrap().parse::<Timestamp>().is_ok());
        assert_eq!(line["level"], "info");
        assert_eq!(line["msg"], "webhook_request");
        assert_eq!(line["request"]["method"], "POST");
        assert_eq!(line["request"]["body_bytes"], 7);
        assert_eq!(line["created"], true);
    }

    #[test]
    fn a_line_break_in_a_value_stays_in_its_line() {
        let lines = logged(LogLevel::Info, || {
            tracing::info!(target: "kubezap_gateway", agent = "a\n{\"level\":\"error\"}", "x");
        });
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["agent"], "a\n{\"level\":\"error\"}");
    }

    #[test]
    fn the_kubernetes_client_never_logs_below_error() {
        let lines = logged(LogLevel::Trace, || {
            tracing::warn!(target: "kube_client::client", "a response body with a Secret");
            tracing::trace!(target: "h2::codec", "a header frame");
            tracing::error!(target: "kube_client::client", "failed");
            tracing::trace!(target: "kubezap_gateway", "ours");
        });
        let messages: Vec<_> = lines.iter().map(|line| line["msg"].clone()).collect();
        assert_eq!(messages, ["failed", "ours"]);
    }
}
