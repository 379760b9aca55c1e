//! Which log lines are let through, by the part of the program that they come from, and changed at
//! run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_worker::{LogLevel, Logger, Loggers, ROOT};
use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Targets;

/// The parts of the program, as log lines name them; modules stand below, behind `::`.
const PARTS: [&str; 13] = [
    "highwater",
    "highwater_access",
    "highwater_broker",
    "highwater_connector",
    "highwater_coordinator",
    "highwater_data",
    "highwater_file",
    "highwater_kafka",
    "highwater_log",
    "highwater_postgres",
    "highwater_streams",
    "highwater_transforms",
    "highwater_worker",
];

/// Loggers there may be, modules among them: a name costs memory for as long as the server runs.
const MOST: usize = 256;
/// Longest name of one, in bytes.
const LONGEST: usize = 128;

/// Puts a filter in the place of the one before.
type Apply = Box<dyn Fn(EnvFilter) + Send + Sync>;

/// See the module's text.
pub(crate) struct LogLevels {
    /// What the settings say; it stays in force for what is not set.
    directives: String,
    loggers: Mutex<BTreeMap<String, Logger>>,
    apply: Apply,
}

impl LogLevels {
    /// As the settings say.
    pub(crate) fn new(directives: &str, apply: Apply) -> Arc<Self> {
        let targets: Targets = directives.parse().unwrap_or_default();
        let names = PARTS.iter().map(|part| (*part, level_of(&targets, part)));
        let root = (ROOT, level_of(&targets, ""));
        let logger = |level| Logger { level, last_modified: None };
        let loggers = names.chain([root]).map(|(name, level)| (name.to_owned(), logger(level)));
        let loggers = Mutex::new(loggers.collect());
        Arc::new(Self { directives: directives.to_owned(), loggers, apply })
    }

    fn filter(&self, loggers: &BTreeMap<String, Logger>) -> EnvFilter {
        let set = loggers.iter().map(|(name, logger)| {
            let level = logger.level.name().to_ascii_lowercase();
            if name == ROOT { level } else { format!("{name}={level}") }
        });
        let all: Vec<_> = [self.directives.clone()].into_iter().chain(set).collect();
        EnvFilter::new(all.join(","))
    }
}

impl Loggers for LogLevels {
    fn all(&self) -> BTreeMap<String, Logger> {
        self.loggers.lock().clone()
    }

    fn set(&self, name: &str, level: LogLevel) -> Vec<String> {
        let mut loggers = self.loggers.lock();
        let parent = loggers.keys().find(|known| is_below(name, known));
        if let Some(parent) = parent.and_then(|parent| loggers.get(parent)).copied()
            && loggers.len() < MOST
            && is_path(name)
        {
            loggers.entry(name.to_owned()).or_insert(parent);
        }
        let now = Timestamp::now().as_millisecond();
        let mut changed = Vec::new();
        for (known, logger) in loggers.iter_mut() {
            let affected = name == ROOT || known == name || is_below(known, name);
            if affected && logger.level != level {
                *logger = Logger { level, last_modified: Some(now) };
                changed.push(known.clone());
            }
        }
        if !changed.is_empty() {
            (self.apply)(self.filter(&loggers));
        }
        changed
    }
}

/// Whether it can be the path of a module. Anything else could say more to the filter than one level.
fn is_path(name: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | ':');
    name.len() <= LONGEST && name.chars().all(fits)
}

/// Whether a logger stands below another one, as a module does below its part.
fn is_below(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.starts_with("::"))
}

fn level_of(targets: &Targets, target: &str) -> LogLevel {
    let lets = |level: &LogLevel| {
        let level: Option<tracing::Level> = filter_of(*level).into();
        level.is_some_and(|level| targets.would_enable(target, &level))
    };
    LogLevel::ALL.into_iter().rev().find(lets).unwrap_or(LogLevel::Off)
}

const fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(directives: &str) -> (Arc<LogLevels>, Arc<Mutex<String>>) {
        let applied = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&applied);
        let apply = Box::new(move |filter: EnvFilter| *seen.lock() = filter.to_string());
        (LogLevels::new(directives, apply), applied)
    }

    #[test]
    fn levels_begin_as_the_settings_say() {
        let (levels, _) = levels("warn,highwater_worker=debug");
        let all = levels.all();
        assert_eq!(all[ROOT], Logger { level: LogLevel::Warn, last_modified: None });
        assert_eq!(all["highwater_worker"].level, LogLevel::Debug);
        assert_eq!(all["highwater_log"].level, LogLevel::Warn);
    }

    #[test]
    fn a_change_names_whom_it_changed_and_reaches_the_filter() {
        let (levels, applied) = levels("info");
        assert_eq!(levels.set("highwater_log", LogLevel::Debug), ["highwater_log"]);
        assert!(applied.lock().contains("highwater_log=debug"), "{}", applied.lock());
        assert!(levels.all()["highwater_log"].last_modified.is_some());
        assert_eq!(levels.set("highwater_log", LogLevel::Debug), Vec::<String>::new());
        assert_eq!(levels.set("nowhere", LogLevel::Debug), Vec::<String>::new());
    }

    #[test]
    fn a_module_is_set_below_its_part_and_goes_along_with_it() {
        let (levels, applied) = levels("info");
        let module = "highwater_worker::runner";
        assert_eq!(levels.set(module, LogLevel::Trace), [module]);
        assert!(applied.lock().contains("highwater_worker::runner=trace"), "{}", applied.lock());
        assert_eq!(levels.set("highwater_worker", LogLevel::Error).len(), 2);
        assert_eq!(levels.set(ROOT, LogLevel::Off).len(), PARTS.len() + 2);
    }

    #[test]
    fn names_from_outside_are_paths_and_bounded() {
        let (levels, applied) = levels("info");
        let long = format!("highwater::{}", "a".repeat(LONGEST));
        for name in ["highwater::a=trace,b", "highwater::[span]", "highwater::a b", &long] {
            assert_eq!(levels.set(name, LogLevel::Trace), Vec::<String>::new(), "{name}");
        }
        assert_eq!(applied.lock().as_str(), "");
        for at in 0..MOST * 2 {
            levels.set(&format!("highwater::m{at}"), LogLevel::Trace);
        }
        assert_eq!(levels.all().len(), MOST);
    }
}
