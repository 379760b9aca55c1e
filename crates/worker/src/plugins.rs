//! The kinds of connectors that this worker can run.

use std::sync::Arc;

use highwater_connector::SourceConnector;

/// The registered connectors.
#[derive(Clone)]
pub(crate) struct Plugins(Vec<Arc<dyn SourceConnector>>);

impl Plugins {
    pub(crate) const fn new(connectors: Vec<Arc<dyn SourceConnector>>) -> Self {
        Self(connectors)
    }

    /// The connector that answers to `class`: a full class name or any of its short names.
    pub(crate) fn find(&self, class: &str) -> Option<&Arc<dyn SourceConnector>> {
        self.0.iter().find(|connector| connector.classes().contains(&class))
    }

    /// All connectors, as registered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn SourceConnector>> {
        self.0.iter()
    }

    /// Canonical class names, for messages.
    pub(crate) fn class_names(&self) -> String {
        let names: Vec<_> = self.0.iter().filter_map(|plugin| plugin.classes().first()).collect();
        names.into_iter().copied().collect::<Vec<_>>().join(", ")
    }
}
