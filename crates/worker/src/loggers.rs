//! Levels of log lines, changed at run time by whoever may change the worker.

use std::collections::BTreeMap;

/// Name of the logger above all others.
pub const ROOT: &str = "root";

/// How much is logged, in Kafka Connect's words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What fails.
    Error,
    /// And what is odd.
    Warn,
    /// And what happens.
    Info,
    /// And how.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All of them, the quietest first.
    pub const ALL: [Self; 6] =
        [Self::Off, Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    /// Reads a name in any case. `FATAL` and `ALL` are Kafka Connect's, for its nearest of ours.
    pub fn from_name(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "FATAL" => Some(Self::Error),
            "ALL" => Some(Self::Trace),
            name => Self::ALL.into_iter().find(|level| level.name() == name),
        }
    }
}

/// A logger as it is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logger {
    /// What it lets through.
    pub level: LogLevel,
    /// When it was changed last, in milliseconds since 1970; `None` since the start.
    pub last_modified: Option<i64>,
}

/// The loggers of the program that the worker runs in.
pub trait Loggers: Send + Sync {
    /// All loggers by name, [`ROOT`] among them.
    fn all(&self) -> BTreeMap<String, Logger>;

    /// Sets the level of a logger and of all below it; the names of those that have another level
    /// now. None, where there is no such logger.
    fn set(&self, name: &str, level: LogLevel) -> Vec<String>;
}

/// Of a program that has none.
#[derive(Debug)]
pub struct NoLoggers;

impl Loggers for NoLoggers {
    fn all(&self) -> BTreeMap<String, Logger> {
        BTreeMap::new()
    }

    fn set(&self, _name: &str, _level: LogLevel) -> Vec<String> {
        Vec::new()
    }
}
