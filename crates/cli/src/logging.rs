//! Logs: ids, kinds, lengths and timings, on stderr, in one of two forms.

use tracing::level_filters::LevelFilter;

use crate::config::{LogFormat, LogLevel};

/// Starts logging for this process; a second call changes nothing.
pub fn start(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // Only the product's own rooms speak: a library's log line may quote what it handles.
    let ours = tracing_subscriber::filter::Targets::new().with_target("thought", level);
    let subscriber = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    let outcome = {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        match format {
            LogFormat::Text => subscriber.with_ansi(false).finish().with(ours).try_init(),
            LogFormat::Json => subscriber.json().finish().with(ours).try_init(),
        }
    };
    // Logging that was started already goes on as it is.
    drop(outcome);
}
