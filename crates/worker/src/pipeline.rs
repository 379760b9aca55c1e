//! A connector's configuration, checked and resolved: what a run needs to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::{Config, Problem, SourceConnector, SourcePartition, Topics};

use crate::WorkerConfig;
use crate::keys::{self, TaskSettings};
use crate::plugins::Plugins;

/// Flat text properties, as Kafka Connect keeps them.
pub(crate) type Properties = BTreeMap<String, String>;

/// See the module's text.
pub(crate) struct Pipeline {
    pub(crate) name: String,
    pub(crate) connector: Arc<dyn SourceConnector>,
    pub(crate) config: Config,
    pub(crate) settings: TaskSettings,
    pub(crate) topics: Topics,
    pub(crate) partition: SourcePartition,
    pub(crate) fingerprint: String,
}

impl Pipeline {
    /// Checks the properties of connector `name`.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn plan(
        name: &str,
        properties: &Properties,
        plugins: &Plugins,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<Problem>> {
        let connector = Arc::clone(class(properties, plugins)?);
        let settings = TaskSettings::read(properties, worker);
        let config = connector.config().parse(properties, &keys::worker_keys());
        let (settings, config) = match (settings, config) {
            (Ok(settings), Ok(config)) => (settings, config),
            (settings, config) => {
                let mut problems = settings.err().unwrap_or_default();
                problems.extend(config.err().unwrap_or_default());
                return Err(problems);
            }
        };
        // The task is made to see whether the values fit each other, and dropped again.
        connector.task(&config).map_err(|error| {
            vec![Problem { key: "configuration:".to_owned(), message: error.what }]
        })?;
        Ok(Self {
            name: name.to_owned(),
            topics: connector.topics(&config),
            partition: connector.partition(&config),
            fingerprint: connector.fingerprint(&config),
            connector,
            config,
            settings,
        })
    }
}

fn class<'a>(
    properties: &Properties,
    plugins: &'a Plugins,
) -> Result<&'a Arc<dyn SourceConnector>, Vec<Problem>> {
    let problem = |message| vec![Problem { key: keys::CLASS.to_owned(), message }];
    let class = properties
        .get(keys::CLASS)
        .ok_or_else(|| problem("is required and has no default".to_owned()))?;
    plugins.find(class).ok_or_else(|| {
        problem(format!("is {class}, which is not known here; known: {}", plugins.class_names()))
    })
}

/// The connector among `others` that owns a topic which `wanted` would write (rule R2).
pub(crate) fn owner<'a>(
    wanted: &Topics,
    others: impl Iterator<Item = (&'a str, Topics)>,
) -> Option<(&'a str, String)> {
    let mine = [&wanted.trail, &wanted.schema];
    others.into_iter().find_map(|(name, theirs)| {
        let taken = [theirs.trail, theirs.schema].into_iter().find(|topic| mine.contains(&topic));
        taken.map(|topic| (name, topic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(trail: &str) -> Topics {
        Topics { trail: trail.to_owned(), schema: format!("{trail}.schema") }
    }

    #[test]
    fn a_second_owner_of_a_topic_is_found_by_name() {
        let others = || [("a", topics("shop")), ("b", topics("crm"))].into_iter();
        assert_eq!(owner(&topics("crm"), others()), Some(("b", "crm".to_owned())));
        assert_eq!(owner(&topics("hr"), others()), None);
    }

    #[test]
    fn a_trail_that_is_anothers_schema_topic_is_taken_too() {
        let others = [("a", topics("shop"))].into_iter();
        let found = owner(&topics("shop.schema"), others);
        assert_eq!(found, Some(("a", "shop.schema".to_owned())));
    }
}
