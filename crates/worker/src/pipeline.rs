//! A connector's configuration, checked and resolved: what a run needs to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::{
    Claim, Config, Problem, Routing, SourceConnector, SourcePartition, Topics,
};

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
    pub(crate) claims: Vec<Claim>,
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
            claims: connector.claims(&config),
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

/// How the names of the server's own topics begin.
const RESERVED: &str = "highwater.";

/// A topic of a connector that could be one of the server's own.
pub(crate) fn internal(topics: &Topics) -> Option<&str> {
    let (Routing::Trail(first) | Routing::Tables(first)) = &topics.routing;
    let mut written = [first, &topics.schema].into_iter();
    written.find(|topic| topic.starts_with(RESERVED)).map(String::as_str)
}

/// The connector among `others` that owns a topic which `wanted` would write (rule R2).
pub(crate) fn owner<'a>(
    wanted: &Topics,
    others: impl Iterator<Item = (&'a str, Topics)>,
) -> Option<(&'a str, String)> {
    others.into_iter().find_map(|(name, theirs)| {
        let taken = shared(wanted, &theirs).or_else(|| shared(&theirs, wanted));
        taken.map(|topic| (name, topic))
    })
}

/// A topic of `theirs` that `mine` would write, too. Topics of tables are known by their prefix.
fn shared(mine: &Topics, theirs: &Topics) -> Option<String> {
    let (Routing::Trail(first) | Routing::Tables(first)) = &theirs.routing;
    let meets = |topic: &&String| match &mine.routing {
        Routing::Trail(trail) => trail == *topic || mine.schema == **topic,
        Routing::Tables(prefix) => {
            let below = topic.strip_prefix(prefix.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    };
    [first, &theirs.schema].into_iter().find(meets).cloned()
}

/// The connector among `others` that has claimed something of `wanted`, and what.
pub(crate) fn claimed<'a>(
    wanted: &[Claim],
    mut others: impl Iterator<Item = (&'a str, Vec<Claim>)>,
) -> Option<(&'a str, Claim)> {
    others.find_map(|(name, theirs)| {
        let taken = wanted.iter().find(|claim| theirs.iter().any(|other| other.what == claim.what));
        taken.map(|claim| (name, claim.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_compared_by_what_it_is() {
        let claim = |key, what: &str| vec![Claim { key, what: what.to_owned() }];
        let others =
            || [("a", claim("slot", "x at db")), ("b", claim("slot", "y at db"))].into_iter();
        let found = claimed(&claim("other.slot", "y at db"), others()).unwrap();
        assert_eq!((found.0, found.1.key), ("b", "other.slot"));
        assert_eq!(claimed(&claim("slot", "z at db"), others()), None);
    }

    fn topics(trail: &str) -> Topics {
        Topics { routing: Routing::Trail(trail.to_owned()), schema: format!("{trail}.schema") }
    }

    #[test]
    fn the_servers_own_topics_are_nobodys_trail() {
        assert_eq!(internal(&topics("highwater.configs")), Some("highwater.configs"));
        assert_eq!(internal(&topics("highwater")), Some("highwater.schema"));
        assert_eq!(internal(&topics("highwaters")), None);
    }

    #[test]
    fn a_second_owner_of_a_topic_is_found_by_name() {
        let others = || [("a", topics("shop")), ("b", topics("crm"))].into_iter();
        assert_eq!(owner(&topics("crm"), others()), Some(("b", "crm".to_owned())));
        assert_eq!(owner(&topics("hr"), others()), None);
    }

    #[test]
    fn topics_of_tables_are_owned_by_their_prefix() {
        let tables = |prefix: &str| Topics {
            routing: Routing::Tables(prefix.to_owned()),
            schema: format!("{prefix}.schema"),
        };
        let owned = |wanted: Topics, other: Topics| {
            owner(&wanted, [("a", other)].into_iter()).map(|(_, topic)| topic)
        };
        assert_eq!(owned(tables("shop"), tables("shop")).as_deref(), Some("shop"));
        assert_eq!(owned(tables("shop"), tables("shop.public")).as_deref(), Some("shop.public"));
        assert_eq!(
            owned(topics("shop.public.t"), tables("shop")).as_deref(),
            Some("shop.public.t")
        );
        assert_eq!(
            owned(tables("shop"), topics("shop.public.t")).as_deref(),
            Some("shop.public.t")
        );
        assert_eq!(owned(tables("shop"), tables("shops")), None);
        assert_eq!(owned(tables("shop"), topics("crm")), None);
    }

    #[test]
    fn a_trail_that_is_anothers_schema_topic_is_taken_too() {
        let others = [("a", topics("shop"))].into_iter();
        let found = owner(&topics("shop.schema"), others);
        assert_eq!(found, Some(("a", "shop.schema".to_owned())));
    }
}
