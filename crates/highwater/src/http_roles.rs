//! What each request over HTTP asks of whoever sends it: pure decisions on method and path.
//!
//! What is not in the table can be looked at by who may see the server, and is for administrators
//! otherwise, so that a route that is new is closed and not open.

use axum::http::Method;
use highwater_access::{Operation, Resource};

/// What a request asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// Nothing: whoever reaches the listener is answered.
    Nothing,
    /// To be allowed this.
    Right(Operation, Target),
}

/// What it is done to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Server,
    Connector(String),
    Stream(String),
}

impl Target {
    pub(crate) fn resource(&self) -> Resource<'_> {
        match self {
            Self::Server => Resource::Cluster,
            Self::Connector(name) => Resource::Connector(name),
            Self::Stream(name) => Resource::Stream(name),
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Server => "the server".to_owned(),
            Self::Connector(name) => format!("connector {name}"),
            Self::Stream(name) => format!("stream {name}"),
        }
    }
}

/// What a name stands for that only the body says: a grant for all of them is needed.
const ANY: &str = "*";

/// Decides on a request. `upgrade`: it wants a WebSocket.
pub(crate) fn asked(method: &Method, path: &str, upgrade: bool) -> Asked {
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    let segments: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let looks = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let (operation, target) = match segments.as_slice() {
        ["highwater", "v1", "health", "live" | "ready"] if looks && !upgrade => {
            return Asked::Nothing;
        }
        ["services", "v2", "stream", name] => stream(method, name, upgrade),
        // Records come over a WebSocket: nobody gets one elsewhere.
        _ if upgrade => (Operation::ClusterAction, Target::Server),
        ["services", "v2", "stream"] if *method == Method::POST => {
            (Operation::Create, Target::Stream(ANY.to_owned()))
        }
        ["highwater", "v1", "streams", name] if looks => {
            (Operation::Describe, Target::Stream((*name).to_owned()))
        }
        ["connectors"] if *method == Method::POST => {
            (Operation::Create, Target::Connector(ANY.to_owned()))
        }
        ["connectors", name, rest @ ..] => {
            (connector(method, rest, looks), Target::Connector((*name).to_owned()))
        }
        _ if looks => (Operation::Describe, Target::Server),
        _ => (Operation::ClusterAction, Target::Server),
    };
    Asked::Right(operation, target)
}

fn stream(method: &Method, name: &str, upgrade: bool) -> (Operation, Target) {
    let operation = match *method {
        _ if upgrade => Operation::Read,
        Method::GET | Method::HEAD | Method::OPTIONS => Operation::Describe,
        Method::POST => Operation::Create,
        Method::DELETE => Operation::Delete,
        _ => Operation::AlterConfigs,
    };
    (operation, Target::Stream(name.to_owned()))
}

/// What is below a connector. To steer it is Alter; its configuration and its position say what is
/// read, from where, with whose password and what is left out: they are for administrators.
fn connector(method: &Method, rest: &[&str], looks: bool) -> Operation {
    match rest {
        ["config"] if looks => Operation::DescribeConfigs,
        _ if looks => Operation::Describe,
        [] if *method == Method::DELETE => Operation::Delete,
        ["pause" | "resume" | "stop"] | ["topics", "reset"] if *method == Method::PUT => {
            Operation::Alter
        }
        ["restart"] | ["tasks", _, "restart"] if *method == Method::POST => Operation::Alter,
        _ => Operation::AlterConfigs,
    }
}

/// A segment of a path without its escapes; as it is where they are none.
pub(crate) fn decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.next().zip(rest.next());
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        match digits.and_then(|(high, low)| Some(digit(high)? << 4 | digit(low)?)) {
            Some(byte) => bytes.push(byte),
            None => return segment.to_owned(),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| segment.to_owned())
}

#[cfg(test)]
mod tests {
    use highwater_access::{Access, Principal, Role, User, Users};

    use super::*;

    /// Who may: everybody, view, operate, admin.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum Least {
        Everybody,
        View,
        Operate,
        Admin,
    }
    use Least::{Admin, Everybody, Operate, View};

    /// Every route, and who may at least.
    const TABLE: &[(&str, &str, Least)] = &[
        ("GET", "/", View),
        ("GET", "/health", View),
        ("GET", "/metrics", View),
        ("GET", "/openapi.json", View),
        ("GET", "/highwater/v1/health/live", Everybody),
        ("GET", "/highwater/v1/health/ready", Everybody),
        ("HEAD", "/highwater/v1/health/ready", Everybody),
        ("POST", "/highwater/v1/health/ready", Admin),
        ("GET", "/highwater/v1/doctor", View),
        ("GET", "/highwater/v1/backup", View),
        ("POST", "/highwater/v1/backup", Admin),
        ("GET", "/highwater/v1/restore", View),
        ("POST", "/highwater/v1/restore", Admin),
        ("GET", "/highwater/v1/streams", View),
        ("GET", "/highwater/v1/streams/s", View),
        ("GET", "/services/v2/stream", View),
        ("POST", "/services/v2/stream", Operate),
        ("GET", "/services/v2/stream/s", View),
        ("POST", "/services/v2/stream/s", Operate),
        ("PUT", "/services/v2/stream/s", Operate),
        ("PATCH", "/services/v2/stream/s", Operate),
        ("DELETE", "/services/v2/stream/s", Operate),
        ("UPGRADE", "/services/v2/stream/s", Admin),
        ("UPGRADE", "/connectors", Admin),
        ("UPGRADE", "/highwater/v1/health/live", Admin),
        ("GET", "/connector-plugins", View),
        ("GET", "/connector-plugins/p/config", View),
        ("PUT", "/connector-plugins/p/config/validate", Admin),
        ("GET", "/admin/loggers", View),
        ("GET", "/admin/loggers/l", View),
        ("PUT", "/admin/loggers/l", Admin),
        ("GET", "/connectors", View),
        ("POST", "/connectors", Admin),
        ("GET", "/connectors/c", View),
        ("DELETE", "/connectors/c", Admin),
        ("GET", "/connectors/c/config", View),
        ("PUT", "/connectors/c/config", Admin),
        ("PATCH", "/connectors/c/config", Admin),
        ("GET", "/connectors/c/status", View),
        ("POST", "/connectors/c/restart", Operate),
        ("PUT", "/connectors/c/pause", Operate),
        ("PUT", "/connectors/c/resume", Operate),
        ("PUT", "/connectors/c/stop", Operate),
        ("GET", "/connectors/c/tasks", View),
        ("GET", "/connectors/c/tasks/0/status", View),
        ("POST", "/connectors/c/tasks/0/restart", Operate),
        ("GET", "/connectors/c/offsets", View),
        ("PATCH", "/connectors/c/offsets", Admin),
        ("DELETE", "/connectors/c/offsets", Admin),
        ("GET", "/connectors/c/topics", View),
        ("PUT", "/connectors/c/topics/reset", Operate),
        ("OPTIONS", "/connectors/c/offsets", View),
        // What is unknown, in all its shapes.
        ("GET", "/nothing", View),
        ("POST", "/nothing", Admin),
        ("BREW", "/nothing", Admin),
        ("BREW", "/connectors/c/pause", Admin),
        ("POST", "/connectors/c/pause", Admin),
        ("PUT", "/connectors/c/pause/more", Admin),
        ("PUT", "//connectors/c/pause", Admin),
        ("PUT", "/connectors//pause", Operate),
        ("PUT", "/connectors/c/pause/", Operate),
        ("PUT", "/connectors/c%2Fpause", Admin),
        ("PUT", "/CONNECTORS/c/pause", Admin),
        ("PUT", "*", Admin),
        ("POST", "", Admin),
    ];

    fn of(method: &str, path: &str) -> Asked {
        let upgrade = method == "UPGRADE";
        let method = if upgrade { Method::GET } else { method.parse().unwrap() };
        asked(&method, path, upgrade)
    }

    fn may(role: Option<Role>, asked: &Asked) -> bool {
        let Asked::Right(operation, target) = asked else { return true };
        let user = User {
            name: "u".to_owned(),
            role,
            grants: Vec::new(),
            verifiers: Vec::new(),
            tokens: Vec::new(),
        };
        Users::new([user]).allow(&Principal::user("u"), *operation, target.resource())
    }

    #[test]
    fn every_route_is_for_the_roles_that_the_table_says() {
        for (method, path, least) in TABLE {
            let asked = of(method, path);
            assert_eq!(asked == Asked::Nothing, *least == Everybody, "{method} {path}");
            let roles = [
                (None, Everybody),
                (Some(Role::View), View),
                (Some(Role::Operate), Operate),
                (Some(Role::Admin), Admin),
            ];
            for (role, rank) in roles {
                assert_eq!(may(role, &asked), rank >= *least, "{role:?}: {method} {path}");
            }
        }
    }

    #[test]
    fn where_nobody_logs_in_everybody_may() {
        let access = Access::open();
        let everybody = access.everybody().unwrap();
        for (method, path, _) in TABLE {
            let Asked::Right(operation, target) = of(method, path) else { continue };
            assert!(access.allow(&everybody, operation, target.resource()), "{method} {path}");
        }
    }

    #[test]
    fn a_grant_reaches_its_connector_by_whatever_escapes_it_is_named() {
        let user = |grant: &str| User {
            name: "u".to_owned(),
            role: None,
            grants: vec![grant.parse().unwrap()],
            verifiers: Vec::new(),
            tokens: Vec::new(),
        };
        let users = Users::new([user("alter connector a-b")]);
        let may = |path: &str| {
            let Asked::Right(operation, target) = of("PUT", path) else { return true };
            users.allow(&Principal::user("u"), operation, target.resource())
        };
        assert!(may("/connectors/a%2Db/pause") && !may("/connectors/a%2Dc/pause"));
        assert!(!may("/connectors/a-b/config"), "to steer is not to change");
    }

    #[test]
    fn escapes_are_read_or_left() {
        assert_eq!(decoded("a%2Fb%c3%A9"), "a/bé");
        for odd in ["%", "%2", "%zz", "%ff", "a%"] {
            assert_eq!(decoded(odd), odd);
        }
    }
}
