//! What two connectors must not share: the topics of one (rule R2), and what it claims of its source.

use highwater_connector::{Claim, Routing, Topics};

use crate::topics::unnameable;

/// How the names of the server's own topics begin.
const RESERVED: &str = "highwater.";

/// A topic of a connector that could be one of the server's own.
pub(crate) fn internal(topics: &Topics) -> Option<&str> {
    written(topics).find(|topic| topic.starts_with(RESERVED)).map(String::as_str)
}

/// A topic of a connector that cannot be one, and why.
pub(crate) fn impossible(topics: &Topics) -> Option<String> {
    let whole = match &topics.routing {
        Routing::Trail(topic) | Routing::Topic(topic) => Some(topic),
        // What does not fit of a table's name is replaced behind its prefix.
        Routing::Tables(_) => None,
    };
    whole.into_iter().chain(beside(topics)).find_map(|topic| unnameable(topic))
}

/// The topics that it names, the prefix of those of tables among them.
fn written(topics: &Topics) -> impl Iterator<Item = &String> {
    let (Routing::Trail(first) | Routing::Tables(first) | Routing::Topic(first)) = &topics.routing;
    [first].into_iter().chain(beside(topics))
}

/// The topics beside its records.
fn beside(topics: &Topics) -> impl Iterator<Item = &String> {
    topics.schema.iter().chain(topics.side.iter().map(|side| &side.name))
}

/// The configuration key that leads to a topic of these.
pub(crate) const fn key(topics: &Topics) -> &'static str {
    match topics.routing {
        Routing::Trail(_) | Routing::Tables(_) => "topic.prefix",
        Routing::Topic(_) => "topic",
    }
}

/// The connector among `others` that owns a topic which `wanted` would write (rule R2).
pub(crate) fn owner<'a>(
    wanted: &Topics,
    mut others: impl Iterator<Item = (&'a str, &'a Topics)>,
) -> Option<(&'a str, String)> {
    others.find_map(|(name, theirs)| {
        let taken = shared(wanted, theirs).or_else(|| shared(theirs, wanted));
        taken.map(|topic| (name, topic))
    })
}

/// A topic of `theirs` that `mine` would write, too. Topics of tables are known by their prefix.
fn shared(mine: &Topics, theirs: &Topics) -> Option<String> {
    if matches!((&mine.routing, &theirs.routing), (Routing::Topic(_), Routing::Topic(_))) {
        // Neither owns it.
        return None;
    }
    let meets = |topic: &&String| match &mine.routing {
        Routing::Trail(own) | Routing::Topic(own) => {
            own == *topic || beside(mine).any(|own| own == *topic)
        }
        Routing::Tables(prefix) => {
            let below = topic.strip_prefix(prefix.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    };
    written(theirs).find(meets).cloned()
}

/// The connector among `others` that has claimed something of `wanted`, and what.
pub(crate) fn claimed<'a>(
    wanted: &[Claim],
    mut others: impl Iterator<Item = (&'a str, &'a [Claim])>,
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
        let (x, y) = (claim("slot", "x at db"), claim("slot", "y at db"));
        let others = || [("a", x.as_slice()), ("b", y.as_slice())].into_iter();
        let found = claimed(&claim("other.slot", "y at db"), others()).unwrap();
        assert_eq!((found.0, found.1.key), ("b", "other.slot"));
        assert_eq!(claimed(&claim("slot", "z at db"), others()), None);
    }

    fn topics(trail: &str) -> Topics {
        let schema = Some(format!("{trail}.schema"));
        Topics { routing: Routing::Trail(trail.to_owned()), schema, side: Vec::new() }
    }

    #[test]
    fn what_no_topic_can_be_called_is_nobodys() {
        assert_eq!(impossible(&topics("shop")), None);
        assert!(impossible(&topics("not a topic")).unwrap().contains("\"not a topic\""));
        // The schema topic is longer.
        assert!(impossible(&topics(&"n".repeat(245))).unwrap().contains(".schema"));
        let lines =
            Topics { routing: Routing::Topic("a/b".to_owned()), schema: None, side: Vec::new() };
        assert!(impossible(&lines).is_some());
        let tables = Topics {
            routing: Routing::Tables("sh\u{f6}p".to_owned()),
            schema: None,
            side: Vec::new(),
        };
        assert_eq!(impossible(&tables), None);
    }

    #[test]
    fn the_servers_own_topics_are_nobodys_trail() {
        assert_eq!(internal(&topics("highwater.configs")), Some("highwater.configs"));
        assert_eq!(internal(&topics("highwater")), Some("highwater.schema"));
        assert_eq!(internal(&topics("highwaters")), None);
    }

    #[test]
    fn a_second_owner_of_a_topic_is_found_by_name() {
        let (shop, crm) = (topics("shop"), topics("crm"));
        let others = || [("a", &shop), ("b", &crm)].into_iter();
        assert_eq!(owner(&topics("crm"), others()), Some(("b", "crm".to_owned())));
        assert_eq!(owner(&topics("hr"), others()), None);
    }

    #[test]
    fn topics_of_tables_are_owned_by_their_prefix() {
        let tables = |prefix: &str| Topics {
            routing: Routing::Tables(prefix.to_owned()),
            schema: Some(format!("{prefix}.schema")),
            side: Vec::new(),
        };
        let owned = |wanted: Topics, other: Topics| {
            owner(&wanted, [("a", &other)].into_iter()).map(|(_, topic)| topic)
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
    fn a_topic_without_an_owner_is_shared_but_no_trail_is_written_by_others() {
        let topic = |name: &str| Topics {
            routing: Routing::Topic(name.to_owned()),
            schema: None,
            side: Vec::new(),
        };
        let shared = |wanted: &Topics, other: &Topics| {
            owner(wanted, [("a", other)].into_iter()).map(|(name, topic)| (name.to_owned(), topic))
        };
        assert_eq!(shared(&topic("t"), &topic("t")), None);
        for (wanted, other) in [(topic("shop"), topics("shop")), (topics("shop"), topic("shop"))] {
            assert_eq!(shared(&wanted, &other), Some(("a".to_owned(), "shop".to_owned())));
        }
        assert_eq!(shared(&topic("shop.schema"), &topics("shop")).unwrap().1, "shop.schema");
        assert_eq!((key(&topic("t")), key(&topics("t"))), ("topic", "topic.prefix"));
    }

    #[test]
    fn a_trail_that_is_anothers_schema_topic_is_taken_too() {
        let shop = topics("shop");
        let found = owner(&topics("shop.schema"), [("a", &shop)].into_iter());
        assert_eq!(found, Some(("a", "shop.schema".to_owned())));
    }
}
