//! What becomes of the settings that a connector has for Kafka's clients (KIP-458): honoured, taken without effect,
//! or refused. Kafka Connect's `connector.client.config.override.policy` has no counterpart: what may be set is the
//! same for all.

use highwater_connector::{ConfigDef, ConfigKey, Problem, nearest};

use crate::client_settings::{CLIENT_SETTINGS, Client, ClientSettings, Fate};
use crate::keys::worker_keys;
use crate::pipeline::Properties;
use crate::record_keys;
use crate::sink_keys::sink_keys;

/// What is between a client's name and that of its setting.
const OVERRIDE: &str = ".override.";

/// How a setting of a client begins that may say how one logs in.
const OF_LOGINS: [&str; 3] = ["sasl.", "security.", "ssl."];

/// A key that is taken and changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WithoutEffect {
    pub(crate) key: String,
    /// What is done instead.
    pub(crate) reason: &'static str,
}

impl std::fmt::Display for WithoutEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.key, self.reason)
    }
}

/// As they are told.
pub(crate) fn listed(without_effect: &[WithoutEffect]) -> String {
    without_effect.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What becomes of one key with its value.
enum Verdict {
    /// A key of the worker, or one that asks for what is done anyway.
    Honoured,
    WithoutEffect(&'static str),
    Refused(String),
}

/// The client and its setting that a key is about; none of another key.
fn parted(key: &str) -> Option<(Client, &str)> {
    Client::ALL.into_iter().find_map(|client| {
        let name = key.strip_prefix(client.name())?.strip_prefix(OVERRIDE)?;
        Some((client, name))
    })
}

/// The setting of a client that a key is about.
pub(crate) fn setting(key: &str) -> Option<&str> {
    parted(key).map(|(_, name)| name)
}

/// Whether a key is a setting of a client.
pub(crate) fn is_override(key: &str) -> bool {
    parted(key).is_some()
}

/// Whether a key is a sink's, about its dead letters: sources in the field have them, and Kafka Connect ignores them there.
pub(crate) fn is_of_dead_letters(key: &str) -> bool {
    key.starts_with("errors.deadletterqueue.") && is_key(&sink_keys(), key)
}

/// Whether the value of a setting of a client must never be shown: it may be a login, under a mistyped name too.
pub(crate) fn is_secret(key: &str) -> bool {
    let secret = |(client, name): (Client, &str)| {
        OF_LOGINS.iter().any(|head| name.starts_with(head))
            || (group(client, name).is_none()
                && !is_key(&worker_keys(), key)
                && !is_key(&sink_keys(), key))
    };
    parted(key).is_some_and(secret)
}

/// The settings of clients, and the options of converters, that have no effect on a connector with these keys of the
/// worker.
pub(crate) fn without_effect(given: &Properties, keys: &[ConfigKey]) -> Vec<WithoutEffect> {
    let without = |(key, value): (&String, &String)| match verdict(key, value, keys)? {
        Verdict::WithoutEffect(reason) => Some(WithoutEffect { key: key.clone(), reason }),
        Verdict::Honoured | Verdict::Refused(_) => None,
    };
    let options = record_keys::idle(given).into_iter();
    let options = options.map(|(key, reason)| WithoutEffect { key, reason });
    given.iter().filter_map(without).chain(options).collect()
}

/// The settings of clients that a connector with these keys of the worker cannot have.
pub(crate) fn problems(given: &Properties, keys: &[ConfigKey]) -> Vec<Problem> {
    let problem = |(key, value): (&String, &String)| match verdict(key, value, keys)? {
        Verdict::Refused(message) => Some(Problem { key: key.clone(), message }),
        Verdict::Honoured | Verdict::WithoutEffect(_) => None,
    };
    given.iter().filter_map(problem).collect()
}

/// The properties without the settings of clients, but for those that the connector reads itself.
pub(crate) fn without_overrides(given: &Properties, own: &ConfigDef) -> Properties {
    let mut others = given.clone();
    others.retain(|key, _| !is_override(key) || is_key(own.keys(), key));
    others
}

fn verdict(key: &str, value: &str, keys: &[ConfigKey]) -> Option<Verdict> {
    if is_of_dead_letters(key) && !is_key(keys, key) {
        return Some(Verdict::WithoutEffect("a source has no dead letters"));
    }
    let (client, name) = parted(key)?;
    Some(match group(client, name) {
        Some(group) if group.met.contains(&value.trim()) => Verdict::Honoured,
        Some(group) => match group.fate {
            Fate::WithoutEffect => Verdict::WithoutEffect(group.reason),
            Fate::Refused => Verdict::Refused(format!("cannot be overridden: {}", group.reason)),
        },
        None if is_key(keys, key) => Verdict::Honoured,
        None if is_key(&sink_keys(), key) => Verdict::WithoutEffect("a source has no consumer"),
        None => Verdict::Refused(unknown(client, name)),
    })
}

fn group(client: Client, name: &str) -> Option<&'static ClientSettings> {
    CLIENT_SETTINGS.iter().find(|group| group.has(client, name))
}

fn is_key(keys: &[ConfigKey], key: &str) -> bool {
    keys.iter().any(|own| own.name == key)
}

/// A setting that is misspelt would be one that is left out.
fn unknown(client: Client, name: &str) -> String {
    let mut keys = worker_keys();
    keys.extend(sink_keys());
    let honoured = keys.iter().filter_map(|key| parted(key.name));
    let may_be_set = |group: &&ClientSettings| group.fate != Fate::Refused || !group.met.is_empty();
    let groups = CLIENT_SETTINGS.iter().filter(|group| group.clients.contains(&client));
    let groups = groups.filter(may_be_set);
    let names = groups.flat_map(|group| group.names).copied();
    let honoured = honoured.filter(|(of, _)| *of == client).map(|(_, name)| name);
    let (whose, prefix) = (client.title(), client.name());
    match nearest(name, names.chain(honoured)) {
        Some(right) => {
            format!("is no setting of Kafka's {whose}; did you mean {prefix}{OVERRIDE}{right}?")
        }
        None => format!("is no setting of Kafka's {whose}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn keys_of_sinks() -> Vec<ConfigKey> {
        worker_keys().into_iter().chain(sink_keys()).collect()
    }

    fn refused(key: &str, value: &str, keys: &[ConfigKey]) -> Option<String> {
        problems(&given(&[(key, value)]), keys).pop().map(|problem| problem.message)
    }

    #[test]
    fn each_override_is_honoured_or_without_effect_or_refused() {
        let all = given(&[
            ("producer.override.acks", "1"),
            ("producer.override.linger.ms", "50"),
            ("producer.override.bootstrap.servers", "other:9092"),
            ("consumer.override.max.poll.records", "7"),
            ("consumer.override.isolation.level", "read_uncommitted"),
            ("admin.override.metrics.context.team", "shop"),
            ("topics", "a"),
        ]);
        let keys = keys_of_sinks();
        let without = without_effect(&all, &keys);
        let without: Vec<_> = without.iter().map(|each| each.key.as_str()).collect();
        assert_eq!(
            without,
            [
                "admin.override.metrics.context.team",
                "consumer.override.isolation.level",
                "producer.override.acks"
            ]
        );
        let problems = problems(&all, &keys);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].key, "producer.override.bootstrap.servers");
        assert!(problems[0].message.starts_with("cannot be overridden: records and offsets"));
        assert_eq!(without_overrides(&all, &ConfigDef::new(vec![])), given(&[("topics", "a")]));
    }

    #[test]
    fn what_is_done_anyway_is_not_said_to_have_no_effect() {
        let met = given(&[
            ("producer.override.acks", "all"),
            ("producer.override.enable.idempotence", "true"),
            ("consumer.override.isolation.level", "read_committed"),
            (
                "producer.override.key.serializer",
                "org.apache.kafka.common.serialization.ByteArraySerializer",
            ),
            ("consumer.override.interceptor.classes", " "),
        ]);
        let keys = keys_of_sinks();
        assert_eq!((without_effect(&met, &keys), problems(&met, &keys)), (vec![], vec![]));
    }

    #[test]
    fn a_consumers_settings_have_no_effect_on_a_source_and_are_refused_all_the_same() {
        let keys = worker_keys();
        let group = given(&[("consumer.override.group.id", "g")]);
        assert_eq!(without_effect(&group, &keys)[0].reason, "a source has no consumer");
        assert!(refused("consumer.override.sasl.mechanism", "PLAIN", &keys).is_some());
    }

    #[test]
    fn dead_letters_have_no_effect_on_a_source_and_count_on_a_sink() {
        let dead = given(&[("errors.deadletterqueue.topic.name", "dead")]);
        assert_eq!(without_effect(&dead, &worker_keys())[0].reason, "a source has no dead letters");
        assert_eq!(without_effect(&dead, &keys_of_sinks()), []);
        assert!(!is_of_dead_letters("errors.deadletterqueue.topic"), "it is misspelt");
    }

    #[test]
    fn a_misspelt_setting_is_refused_with_the_nearest() {
        let keys = keys_of_sinks();
        let message = |key| refused(key, "x", &keys).unwrap();
        assert_eq!(
            message("consumer.override.auto.offset.rest"),
            "is no setting of Kafka's consumer; did you mean consumer.override.auto.offset.reset?"
        );
        assert_eq!(
            message("producer.override.linger"),
            "is no setting of Kafka's producer; did you mean producer.override.linger.ms?"
        );
        let refused_itself = message("consumer.override.bootstrap.serverz");
        assert!(!refused_itself.contains("bootstrap.servers"), "{refused_itself}");
        assert_eq!(message("admin.override.zzz"), "is no setting of Kafka's admin client");
        assert_eq!(message("admin.override."), "is no setting of Kafka's admin client");
        // That of another client.
        assert!(refused("producer.override.max.poll.records", "1", &keys).is_some());
    }

    #[test]
    fn a_login_is_a_secret_and_so_is_what_may_be_one() {
        for key in [
            "producer.override.sasl.jaas.config",
            "admin.override.ssl.key.pasword",
            "consumer.override.jaas",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["producer.override.acks", "consumer.override.group.id", "sasl.jaas.config"] {
            assert!(!is_secret(key), "{key}");
        }
    }
}
