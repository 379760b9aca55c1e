//! The kinds of connectors that this worker can run.

use std::sync::Arc;

use highwater_connector::{ConfigDef, RecordForm, SinkConnector, SourceConnector};

/// A kind of connector.
#[derive(Clone)]
pub enum Plugin {
    /// It reads a system and writes to the log.
    Source(Arc<dyn SourceConnector>),
    /// It reads the log and writes to a system.
    Sink(Arc<dyn SinkConnector>),
}

impl Plugin {
    /// Names that `connector.class` may give, the canonical one first.
    pub(crate) fn classes(&self) -> &'static [&'static str] {
        match self {
            Self::Source(source) => source.classes(),
            Self::Sink(sink) => sink.classes(),
        }
    }

    pub(crate) fn version(&self) -> &'static str {
        match self {
            Self::Source(source) => source.version(),
            Self::Sink(sink) => sink.version(),
        }
    }

    /// The keys that it takes beside the worker's.
    pub(crate) fn config(&self) -> &ConfigDef {
        match self {
            Self::Source(source) => source.config(),
            Self::Sink(sink) => sink.config(),
        }
    }

    /// Whether its records are converted and transformed.
    pub(crate) fn has_values(&self) -> bool {
        match self {
            Self::Source(source) => source.form() == RecordForm::Values,
            Self::Sink(_) => true,
        }
    }

    /// Kafka Connect's word for the kind.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Source(_) => "source",
            Self::Sink(_) => "sink",
        }
    }
}

/// The registered connectors.
#[derive(Clone)]
pub(crate) struct Plugins(Vec<Plugin>);

impl Plugins {
    pub(crate) const fn new(plugins: Vec<Plugin>) -> Self {
        Self(plugins)
    }

    /// The connector that answers to `class`: a full class name or any of its short names.
    pub(crate) fn find(&self, class: &str) -> Option<&Plugin> {
        self.0.iter().find(|plugin| plugin.classes().contains(&class))
    }

    /// All connectors, as registered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Plugin> {
        self.0.iter()
    }

    /// Canonical class names, for messages.
    pub(crate) fn class_names(&self) -> String {
        let names: Vec<_> = self.0.iter().filter_map(|plugin| plugin.classes().first()).collect();
        names.into_iter().copied().collect::<Vec<_>>().join(", ")
    }
}
