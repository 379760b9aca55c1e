//! Where the database is and who asks.

use std::fmt;
use std::path::PathBuf;

use highwater_connector::{Config, Problem};

/// What the listener is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A service of a host.
    Service {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// Service.
        service: String,
    },
    /// An instance of a host, by its SID.
    Sid {
        /// Host.
        host: String,
        /// Port.
        port: u16,
        /// SID.
        sid: String,
    },
    /// A connect string or descriptor (`cdc.database.url`), without what drivers of Java put in front.
    ConnectString(String),
}

/// Where the database is and who asks.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// See [`Target`].
    pub target: Target,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// Folder of the wallet.
    pub wallet: Option<PathBuf>,
    /// Pluggable databases whose tables are captured; empty without containers.
    pub pdbs: Vec<String>,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { host, port, service } => write!(f, "{host}:{port}/{service}"),
            Self::Sid { host, port, sid } => write!(f, "{host}:{port}:{sid}"),
            Self::ConnectString(text) => f.write_str(text),
        }
    }
}

/// What drivers of Java put in front of a connect string.
const OF_JAVA: [&str; 2] = ["jdbc:oracle:thin:@//", "jdbc:oracle:thin:@"];

impl DatabaseSettings {
    /// # Errors
    /// When it is not clear where the database is.
    pub(super) fn read(config: &Config) -> Result<Self, Problem> {
        let text = |name: &str| config.text(name).to_owned();
        let wallet = Some(text("cdc.database.wallet.location")).filter(|path| !path.is_empty());
        Ok(Self {
            target: target(config)?,
            user: text("cdc.database.user"),
            password: text("cdc.database.password"),
            wallet: wallet.map(PathBuf::from),
            pdbs: config.list("cdc.database.pdbs").into_iter().map(str::to_owned).collect(),
        })
    }
}

fn target(config: &Config) -> Result<Target, Problem> {
    let text = |name: &str| config.text(name).trim().to_owned();
    let (host, url) = (text("cdc.database.host"), text("cdc.database.url"));
    if !url.is_empty() {
        let plain = OF_JAVA.iter().find_map(|prefix| url.strip_prefix(prefix));
        return Ok(Target::ConnectString(plain.unwrap_or(&url).to_owned()));
    }
    if host.is_empty() {
        let what = "is required unless cdc.database.url is given";
        return Err(Problem::new("cdc.database.host", what));
    }
    let port = u16::try_from(config.int("cdc.database.port")).unwrap_or(1521);
    match (text("cdc.database.service"), text("cdc.database.sid")) {
        (service, sid) if sid.is_empty() && !service.is_empty() => {
            Ok(Target::Service { host, port, service })
        }
        (service, sid) if service.is_empty() && !sid.is_empty() => {
            Ok(Target::Sid { host, port, sid })
        }
        _ => {
            let what = "is required with cdc.database.host, or else cdc.database.sid, and not both";
            Err(Problem::new("cdc.database.service", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    fn read(pairs: &[(&str, &str)]) -> Result<DatabaseSettings, Problem> {
        DatabaseSettings::read(&config(pairs))
    }

    fn target(pairs: &[(&str, &str)]) -> String {
        read(pairs).unwrap().target.to_string()
    }

    #[test]
    fn the_database_is_found_by_service_sid_or_connect_string() {
        assert_eq!(target(&[]), "db:1521/ORCL");
        let sid = [("cdc.database.service", ""), ("cdc.database.sid", "XE")];
        assert_eq!(target(&sid), "db:1521:XE");
        for url in ["jdbc:oracle:thin:@//a:1/b", "jdbc:oracle:thin:@a:1/b", "a:1/b"] {
            assert_eq!(target(&[("cdc.database.url", url)]), "a:1/b");
        }
    }

    #[test]
    fn it_must_be_clear_which_database_is_meant() {
        let fault = |pairs: &[(&str, &str)]| read(pairs).unwrap_err().key;
        assert_eq!(fault(&[("cdc.database.host", "")]), "cdc.database.host");
        assert_eq!(fault(&[("cdc.database.service", "")]), "cdc.database.service");
        assert_eq!(fault(&[("cdc.database.sid", "XE")]), "cdc.database.service");
    }

    #[test]
    fn a_password_is_not_printed() {
        let settings = read(&[("cdc.database.password", "hush")]).unwrap();
        assert_eq!(settings.password, "hush");
        assert!(!format!("{settings:?}").contains("hush"));
    }
}
