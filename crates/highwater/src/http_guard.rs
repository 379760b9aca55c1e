//! How the HTTP listener is guarded: its settings, and what is looked at again while the server runs.

use std::sync::Arc;
use std::time::Duration;

use highwater_access::{Access, SubjectRules};
use highwater_broker::{Tls, TlsFiles};
use highwater_connector::{Config, ConfigKey, Finding, Importance, KeyType};

use crate::failure::Failure;
use crate::http_access::HttpAccess;
use crate::listener_tls::{self, Listener, ListenerTls};
use crate::sharing_settings::FORWARD_USERS;
use crate::user_store::UserStore;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const LOGIN: &str = "Whether requests over HTTP have to say who they come from: users, as soon as access.users_file names some; none, nobody is asked, and whoever reaches the listener may do everything. They say it by a password (Basic), a token (Bearer, of highwater user token) or a client certificate.";

/// The keys of the configuration file.
pub(crate) fn keys() -> Vec<ConfigKey> {
    use Importance::{High, Low, Medium};
    let key = ConfigKey::new;
    let text = KeyType::String;
    vec![
        key("http.login", KeyType::Choice(&["users", "none"]), Some("users"), High, LOGIN),
        key(
            "http.tls.cert",
            text,
            Some(""),
            High,
            "Certificate of the HTTP listener with those between it and its root, PEM. Empty: no TLS. Read again, with its key, within three seconds of a change; files that do not fit leave the old ones in use. Flag --http-tls-cert.",
        ),
        key(
            "http.tls.key",
            text,
            Some(""),
            High,
            "Key of the certificate, PEM. Flag --http-tls-key.",
        ),
        key(
            "http.tls.client_auth",
            KeyType::Choice(&["none", "optional", "required"]),
            Some("none"),
            Medium,
            "Whether HTTP clients show a certificate. optional: who has one is its user, unless the request says otherwise. required: nobody connects without one. Kafka Connect's listeners.https.ssl.client.auth.",
        ),
        key(
            "http.tls.client_ca",
            text,
            Some(""),
            Medium,
            "Certificates of the authorities that vouch for HTTP clients, PEM.",
        ),
        key(
            "http.tls.principal_rules",
            text,
            Some("DEFAULT"),
            Low,
            "Which user a certificate stands for: as kafka.tls.principal_rules.",
        ),
    ]
}

/// The users that are servers are known by their certificates.
fn servers(config: &Config) -> Result<Vec<String>, (&'static str, String)> {
    let servers: Vec<String> = config.list(FORWARD_USERS).into_iter().map(str::to_owned).collect();
    if !servers.is_empty() && config.text("http.tls.client_auth") == "none" {
        return Err((FORWARD_USERS, "needs http.tls.client_auth".to_owned()));
    }
    Ok(servers)
}

/// How the HTTP listener is guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HttpGuard {
    tls: Option<TlsFiles>,
    rules: String,
    /// Users that are other servers, which bring requests.
    servers: Vec<String>,
    /// Whether requests say who they come from.
    login: bool,
}

impl HttpGuard {
    /// Reads the settings; else the key that is wrong, and what is.
    pub(crate) fn of(config: &Config, has_users: bool) -> Result<Self, (&'static str, String)> {
        let login = has_users && config.text("http.login") == "users";
        let tls = listener_tls::files(Listener::Http, config, login)?;
        let rules = config.text("http.tls.principal_rules").to_owned();
        SubjectRules::parse(&rules)
            .map_err(|error| ("http.tls.principal_rules", error.to_string()))?;
        Ok(Self { tls, rules, servers: servers(config)?, login })
    }

    /// Whether nobody comes in from another machine without TLS and a login (rule A2).
    pub(crate) const fn is_whole(&self) -> bool {
        self.tls.is_some() && self.login
    }

    /// Whether it has TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether requests have to say who they come from.
    pub(crate) const fn asks(&self) -> bool {
        self.login
    }

    /// What `highwater server --check` says.
    pub(crate) fn text(&self) -> String {
        let login = if self.login { "users log in" } else { "nobody logs in" };
        match &self.tls {
            Some(files) => format!("TLS with {}, {login}", files.cert.display()),
            None => format!("no TLS, {login}"),
        }
    }

    /// Reads the files.
    pub(crate) fn open(&self, users: &UserStore) -> Result<OpenHttpGuard, Failure> {
        let load = |files| ListenerTls::load(Listener::Http, files);
        Ok(OpenHttpGuard {
            settings: self.clone(),
            users: users.clone(),
            tls: self.tls.clone().map(load).transpose()?,
        })
    }
}

/// A guard whose files were read.
#[derive(Clone)]
pub(crate) struct OpenHttpGuard {
    settings: HttpGuard,
    users: UserStore,
    tls: Option<ListenerTls>,
}

impl OpenHttpGuard {
    /// What stands in front of the handlers.
    pub(crate) fn access(&self) -> HttpAccess {
        let access =
            if self.settings.login { self.users.access() } else { Arc::new(Access::open()) };
        // The settings parsed them.
        let rules = SubjectRules::parse(&self.settings.rules).unwrap_or_default();
        HttpAccess::new(access, rules, self.settings.servers.clone())
    }

    /// What stands in front of the connections.
    pub(crate) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.as_ref().map(ListenerTls::tls)
    }

    /// Whether a listener with it may be reached from other machines.
    pub(crate) const fn is_whole(&self) -> bool {
        self.settings.is_whole()
    }

    /// Looks at the files again and again.
    pub(crate) async fn follow(self) {
        let this = Arc::new(self);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let guard = Arc::clone(&this);
            // Files may lie on a disk that takes its time.
            let _ = tokio::task::spawn_blocking(move || guard.look()).await;
        }
    }

    fn look(&self) {
        self.users.look();
        if let Some(tls) = &self.tls {
            tls.look();
        }
    }

    /// What is wrong with the users and the certificate, or will be.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let tls = self.tls.iter().flat_map(ListenerTls::findings);
        self.users.finding().into_iter().chain(tls).collect()
    }
}
