//! Users, and the one decision on who may do what.

use std::collections::BTreeMap;

use subtle::Choice;

use crate::grant::Grant;
use crate::mechanism::Hash;
use crate::operation::Operation;
use crate::principal::Principal;
use crate::resource::{Kind, Resource};
use crate::role::Role;
use crate::token::{Shown, Token};
use crate::verifier::Verifier;

/// Somebody who can log in.
#[derive(Clone, Debug)]
pub struct User {
    /// The name, as principals bear it.
    pub name: String,
    /// What it may see and steer, if anything.
    pub role: Option<Role>,
    /// Whose records it may read and write.
    pub grants: Vec<Grant>,
    /// What a password is held against; none for who has a certificate alone.
    pub verifiers: Vec<Verifier>,
    /// What programs show in place of a password.
    pub tokens: Vec<Token>,
}

impl User {
    /// Whether this user may do it.
    pub fn may(&self, operation: Operation, resource: Resource<'_>) -> bool {
        if self.role.is_some_and(|role| role.gives(operation, resource)) {
            return true;
        }
        // No grant reaches what is the server's and the administrators' (rule A4).
        let reserved =
            resource.is_internal() || (resource.is_owned() && operation == Operation::Write);
        !reserved && self.grants.iter().any(|grant| grant.covers(operation, resource))
    }

    /// Whether this user may do it to some resource of the kind.
    fn may_somewhere(&self, operation: Operation, kind: Kind) -> bool {
        self.role == Some(Role::Admin)
            || self.grants.iter().any(|grant| grant.covers_some(operation, kind))
    }

    /// What a password is held against, of this hash.
    pub(crate) fn verifier(&self, hash: Hash) -> Option<&Verifier> {
        self.verifiers.iter().find(|verifier| verifier.hash() == hash)
    }
}

/// All users, by name.
#[derive(Clone, Debug, Default)]
pub struct Users(BTreeMap<String, User>);

impl Users {
    /// Of these; of two with one name the last one.
    pub fn new(users: impl IntoIterator<Item = User>) -> Self {
        Self(users.into_iter().map(|user| (user.name.clone(), user)).collect())
    }

    /// The user of this name.
    pub fn get(&self, name: &str) -> Option<&User> {
        self.0.get(name)
    }

    /// Whose token this is. All are looked at, whichever fits.
    pub(crate) fn with_token(&self, shown: &Shown) -> Option<&User> {
        let has = |user: &User| {
            user.tokens.iter().fold(Choice::from(0), |found, token| found | token.is(shown))
        };
        self.0.values().fold(None, |found, user| if has(user).into() { Some(user) } else { found })
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = &User> {
        self.0.values()
    }

    /// Puts a user in, in place of one of that name.
    pub fn put(&mut self, user: User) {
        self.0.insert(user.name.clone(), user);
    }

    /// Takes a user out; false where there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// The one check. Whoever is no user (any more) may do nothing.
    pub fn allow(
        &self,
        principal: &Principal,
        operation: Operation,
        resource: Resource<'_>,
    ) -> bool {
        match principal {
            Principal::Server => true,
            Principal::Anonymous => open_to_all(operation, resource),
            Principal::User(name) => {
                self.get(name).is_some_and(|user| user.may(operation, resource))
            }
        }
    }

    /// Whether it is allowed on some resource of the kind.
    pub fn allow_somewhere(&self, principal: &Principal, operation: Operation, kind: Kind) -> bool {
        match principal {
            Principal::Server | Principal::Anonymous => true,
            Principal::User(name) => {
                self.get(name).is_some_and(|user| user.may_somewhere(operation, kind))
            }
        }
    }
}

/// Where nobody logs in, everybody may do everything but what is the server's own (rule A4): its
/// topics are not written, made, changed or deleted, those with secrets not read, and a trail has
/// one writer (rule R2).
fn open_to_all(operation: Operation, resource: Resource<'_>) -> bool {
    if resource.is_internal() {
        let reads = operation == Operation::Read && !resource.holds_secrets();
        return reads || operation.only_describes();
    }
    !(resource.is_owned() && operation == Operation::Write)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(role: Option<Role>, grants: &[&str]) -> Users {
        let grants = grants.iter().map(|grant| grant.parse().unwrap()).collect();
        let (name, verifiers, tokens) = ("u".to_owned(), Vec::new(), Vec::new());
        Users::new([User { name, role, grants, verifiers, tokens }])
    }

    fn may(users: &Users, operation: Operation, resource: Resource<'_>) -> bool {
        users.allow(&Principal::user("u"), operation, resource)
    }

    #[test]
    fn internal_topics_are_for_the_server_and_administrators() {
        let granted = user(Some(Role::Operate), &["all topic *"]);
        let admin = user(Some(Role::Admin), &[]);
        for topic in ["highwater.configs", "__consumer_offsets", "__transaction_state"] {
            let topic = Resource::Topic(topic);
            for (operation, _) in Operation::ALL {
                assert!(may(&admin, operation, topic));
                assert!(granted.allow(&Principal::Server, operation, topic));
                assert_eq!(may(&granted, operation, topic), operation.only_describes());
            }
            assert!(!granted.allow(&Principal::Anonymous, Operation::Write, topic));
            assert!(!granted.allow(&Principal::Anonymous, Operation::Delete, topic));
        }
    }

    #[test]
    fn an_open_listener_shows_no_secrets() {
        let may = |topic| {
            Users::default().allow(&Principal::Anonymous, Operation::Read, Resource::Topic(topic))
        };
        assert!(may("shop") && may("highwater.offsets") && !may("highwater.configs"));
    }

    #[test]
    fn a_trail_has_one_writer() {
        let users = user(None, &["all topic *"]);
        let trail = Resource::OwnedTopic("shop");
        assert!(!may(&users, Operation::Write, trail) && may(&users, Operation::Read, trail));
        assert!(!users.allow(&Principal::Anonymous, Operation::Write, trail));
        assert!(users.allow(&Principal::Anonymous, Operation::Read, trail));
        assert!(may(&user(Some(Role::Admin), &[]), Operation::Write, trail));
    }

    #[test]
    fn who_is_gone_may_nothing() {
        let mut users = user(Some(Role::Admin), &[]);
        assert!(may(&users, Operation::Read, Resource::Topic("a")));
        assert!(users.remove("u") && !users.remove("u"));
        assert!(!may(&users, Operation::Read, Resource::Topic("a")));
        let principal = Principal::user("u");
        assert!(!users.allow_somewhere(&principal, Operation::Write, Kind::Topic));
    }

    /// A grant as a model has it: pairs of words, held against all there is.
    fn naively(grants: &[String], operation: &str, kind: &str, name: &str) -> bool {
        grants.iter().any(|grant| {
            let words: Vec<&str> = grant.split(' ').collect();
            let implied = match operation {
                "describe" => vec!["describe", "read", "write", "delete", "alter", "all"],
                "describe-configs" => vec!["describe-configs", "alter-configs", "all"],
                other => vec![other, "all"],
            };
            let names = words[2] == name
                || (words[2].ends_with('*') && name.starts_with(words[2].trim_end_matches('*')));
            implied.contains(&words[0]) && words[1] == kind && names
        })
    }

    proptest! {
        #[test]
        fn grants_decide_as_a_naive_model_does(
            grants in prop::collection::vec(
                ("(all|read|write|create|delete|alter|describe|alter-configs|describe-configs)",
                 "(topic|group|transactional-id)", "[ab]{0,2}[ab*]"), 0..6),
            asked in 0..Operation::ALL.len(),
            kind in 0..3_usize,
            name in "[ab]{1,3}",
        ) {
            let grants: Vec<String> =
                grants.into_iter().map(|(o, k, n)| format!("{o} {k} {n}")).collect();
            let texts: Vec<&str> = grants.iter().map(String::as_str).collect();
            let users = user(None, &texts);
            let (operation, word) = Operation::ALL[asked];
            let resource = [
                Resource::Topic(&name), Resource::Group(&name), Resource::TransactionalId(&name),
            ][kind];
            let expected = naively(&grants, word, resource.kind().name(), &name);
            prop_assert_eq!(may(&users, operation, resource), expected);
        }
    }
}
