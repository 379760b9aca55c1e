//! A file of client settings, in the names of Kafka's Java clients or of librdkafka.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::security::{Pem, PemPlace, Tls};
use crate::tls::Identity;
use crate::{Mechanism, Password, Sasl, Security, jaas, properties, tls};

/// Largest file of settings that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// Longer than the name of any setting of a client.
const LONGEST_NAME: usize = 64;

/// Unknown settings that are named, each with its remedy.
const MOST_NAMED: usize = 20;

/// Settings that say how a cluster is spoken to.
const KNOWN: [&str; 23] = [
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
];

/// Settings of the same files that say something else, and are let stand.
const ELSEWHERE: [&str; 3] = ["bootstrap.servers", "client.id", "client.dns.lookup"];

/// Our certificate and key where they do not lie in one file.
const SEPARATE: [&str; 6] = [
    "ssl.keystore.certificate.chain",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.keystore.key",
    "ssl.key.location",
    "ssl.key.pem",
];

/// Security protocols, whether they have TLS, and whether they have SASL.
const PROTOCOLS: [(&str, bool, bool); 4] = [
    ("PLAINTEXT", false, false),
    ("SSL", true, false),
    ("SASL_PLAINTEXT", false, true),
    ("SASL_SSL", true, true),
];

/// Why client settings cannot be used: every problem at once, and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("; "))]
pub struct SecurityError {
    /// Each names its setting.
    pub problems: Vec<String>,
}

impl SecurityError {
    fn one(problem: String) -> Self {
        Self { problems: vec![problem] }
    }
}

impl Security {
    /// Reads a file of client settings, and tries the files that it names.
    ///
    /// # Errors
    /// When one of them cannot be read or used.
    pub fn load(path: &Path) -> Result<Self, SecurityError> {
        let unreadable =
            |why: String| SecurityError::one(format!("{} cannot be read: {why}", path.display()));
        let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() || metadata.len() > FILE_LIMIT {
            return Err(unreadable(format!("it is no file of at most {FILE_LIMIT} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let security = Self::parse(&text)?;
        security.tls.as_ref().map_or(Ok(()), tls::check).map_err(SecurityError::one)?;
        Ok(security)
    }

    /// Reads client settings.
    ///
    /// # Errors
    /// Names each setting that is unknown, wrong, missing, or without effect.
    pub fn parse(text: &str) -> Result<Self, SecurityError> {
        let values = properties::parse(text).map_err(SecurityError::one)?;
        let mut settings = Settings { values, problems: Vec::new() };
        settings.refuse_unknown();
        let security = settings.security();
        match settings.problems {
            problems if problems.is_empty() => Ok(security),
            problems => Err(SecurityError { problems }),
        }
    }
}

struct Settings {
    values: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Settings {
    fn refuse_unknown(&mut self) {
        let known = |key: &str| KNOWN.contains(&key) || ELSEWHERE.contains(&key);
        let unknown: Vec<&String> = self.values.keys().filter(|key| !known(key)).collect();
        let more = unknown.len().saturating_sub(MOST_NAMED);
        for key in unknown.into_iter().take(MOST_NAMED) {
            let problem = match nearest(key) {
                Some(nearest) => format!("{key} is not known; did you mean {nearest}?"),
                None => format!(
                    "{} is not known here: only security.protocol, sasl.* and ssl.* settings are",
                    shown(key)
                ),
            };
            self.problems.push(problem);
        }
        if more > 0 {
            self.wrong(format!("{more} more settings are not known"));
        }
    }

    /// A setting that is not empty.
    fn given(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn wrong(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    fn security(&mut self) -> Security {
        let name = self.given("security.protocol").unwrap_or("PLAINTEXT").to_ascii_uppercase();
        let Some((name, tls, sasl)) = PROTOCOLS.into_iter().find(|protocol| protocol.0 == name)
        else {
            let names = PROTOCOLS.map(|protocol| protocol.0).join(", ");
            self.wrong(format!("security.protocol must be one of {names}"));
            return Security::default();
        };
        self.refuse_idle(name, "sasl.", sasl);
        self.refuse_idle(name, "ssl.", tls);
        Security { tls: tls.then(|| self.tls()), sasl: if sasl { self.sasl() } else { None } }
    }

    /// Whoever sets a password expects that it counts.
    fn refuse_idle(&mut self, protocol: &str, prefix: &str, counts: bool) {
        let idle = self.values.keys().find(|key| key.starts_with(prefix)).cloned();
        if let (Some(key), false) = (idle, counts) {
            self.wrong(format!(
                "{key} has no effect with security.protocol={protocol}: set another, or remove it"
            ));
        }
    }

    /// Of two that say the same one would not count.
    fn refuse_both(&mut self, first: &str, second: &str) {
        if self.given(first).and(self.given(second)).is_some() {
            self.wrong(format!("{first} and {second} say the same: remove one"));
        }
    }

    fn sasl(&mut self) -> Option<Sasl> {
        self.refuse_both("sasl.mechanism", "sasl.mechanisms");
        for user in ["sasl.username", "sasl.password"] {
            self.refuse_both("sasl.jaas.config", user);
        }
        let named = self.given("sasl.mechanism").or_else(|| self.given("sasl.mechanisms"));
        let named = named.unwrap_or("GSSAPI").to_ascii_uppercase();
        let mechanism = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == named);
        let Some(mechanism) = mechanism else {
            let names = Mechanism::ALL.map(Mechanism::name).join(", ");
            self.wrong(format!("sasl.mechanism must be one of {names}"));
            return None;
        };
        let (username, password) = match self.given("sasl.jaas.config") {
            Some(text) => match jaas::parse(text) {
                Ok(login) if login.fits(mechanism) => (login.username, login.password),
                Ok(_) => {
                    let name = mechanism.name();
                    self.wrong(format!(
                        "sasl.jaas.config has the login module of another mechanism than \
                         sasl.mechanism={name}"
                    ));
                    return None;
                }
                Err(problem) => {
                    self.wrong(format!("sasl.jaas.config {problem}"));
                    return None;
                }
            },
            None => self.user()?,
        };
        Some(Sasl { mechanism, username, password })
    }

    /// User and password as librdkafka has them.
    fn user(&mut self) -> Option<(String, Password)> {
        let username = self.given("sasl.username").map(str::to_owned);
        let password = self.values.get("sasl.password").cloned().map(Password::from);
        if username.is_none() || password.is_none() {
            self.wrong("sasl.jaas.config is missing, or sasl.username and sasl.password");
        }
        username.zip(password)
    }

    fn tls(&mut self) -> Tls {
        for password in ["ssl.truststore.password", "ssl.keystore.password", "ssl.key.password"] {
            if self.given(password).is_some() {
                self.wrong(format!(
                    "{password} is for a file that is encrypted, which is not read here: {}",
                    tls::CONVERT
                ));
            }
        }
        self.check_type("ssl.truststore.type", "ssl.truststore.location");
        self.check_type("ssl.keystore.type", "ssl.keystore.location");
        let authorities = self.pem(&[
            ("ssl.truststore.location", true),
            ("ssl.truststore.certificates", false),
            ("ssl.ca.location", true),
            ("ssl.ca.pem", false),
        ]);
        Tls { authorities, identity: self.identity(), verify_host: self.verify_host() }
    }

    fn check_type(&mut self, setting: &str, file: &str) {
        let Some(kind) = self.given(setting).map(str::to_ascii_uppercase) else { return };
        if kind != "PEM" {
            let file = self.given(file).unwrap_or("FILE");
            let how = tls::conversion(setting.contains("truststore"), &kind, file);
            self.wrong(format!("{setting} must be PEM: {how}"));
        }
    }

    /// Our certificate and key: in one file or text, or one each.
    fn identity(&mut self) -> Option<Identity> {
        if let Some(both) = self.pem(&[("ssl.keystore.location", true)]) {
            for other in SEPARATE {
                self.refuse_both("ssl.keystore.location", other);
            }
            return Some((both.clone(), both));
        }
        let chain = self.pem(&[
            ("ssl.keystore.certificate.chain", false),
            ("ssl.certificate.location", true),
            ("ssl.certificate.pem", false),
        ]);
        let key = self.pem(&[
            ("ssl.keystore.key", false),
            ("ssl.key.location", true),
            ("ssl.key.pem", false),
        ]);
        match (&chain, &key) {
            (Some(chain), None) => {
                let setting = chain.setting;
                self.wrong(format!("{setting} needs a key: ssl.keystore.key or ssl.key.location"));
            }
            (None, Some(key)) => {
                let setting = key.setting;
                self.wrong(format!(
                    "{setting} needs a certificate: ssl.keystore.certificate.chain or \
                     ssl.certificate.location"
                ));
            }
            _ => {}
        }
        chain.zip(key)
    }

    /// The one of these settings that is given, and whether it names a file.
    fn pem(&mut self, settings: &[(&'static str, bool)]) -> Option<Pem> {
        let given = settings.iter().filter_map(|(setting, is_file)| {
            let value = self.given(setting)?;
            let place = if *is_file {
                PemPlace::File(PathBuf::from(value))
            } else {
                PemPlace::Text(Password::from(value))
            };
            Some(Pem { setting, place })
        });
        let given: Vec<Pem> = given.collect();
        if let [first, second, ..] = given.as_slice() {
            self.refuse_both(first.setting, second.setting);
        }
        given.into_iter().next()
    }

    /// Java's default is https; empty, or librdkafka's none, leaves the host name out.
    fn verify_host(&mut self) -> bool {
        const SETTING: &str = "ssl.endpoint.identification.algorithm";
        match self.values.get(SETTING).map(|value| value.trim()) {
            None => true,
            Some(value) if value.eq_ignore_ascii_case("https") => true,
            Some("" | "none") => false,
            Some(_) => {
                self.wrong(format!("{SETTING} must be https, or empty for any host name"));
                true
            }
        }
    }
}

/// The name of an unknown setting, if it looks like one: a key or a password that runs over several
/// lines reads as settings as well.
fn shown(key: &str) -> &str {
    let is_word = |sign: char| sign.is_ascii_lowercase() || matches!(sign, '.' | '-' | '_');
    let is_name = key.len() <= LONGEST_NAME && key.contains('.') && key.chars().all(is_word);
    if is_name { key } else { "a line that does not begin with the name of a setting" }
}

/// The known setting that an unknown one may stand for.
fn nearest(key: &str) -> Option<&'static str> {
    // Comparing takes memory for each pair of letters.
    if key.len() > LONGEST_NAME {
        return None;
    }
    let closeness = |known: &&str| strsim::normalized_damerau_levenshtein(key, known);
    let nearest = KNOWN.into_iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b)))?;
    (closeness(&nearest) > 0.7).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAM: &str = "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \
                         required username=\"app\" password=\"s3cret\";\n";

    fn problems(text: &str) -> String {
        let problems = Security::parse(text).unwrap_err().to_string();
        assert!(!problems.contains("s3cret"), "{problems}");
        problems
    }

    #[test]
    fn the_settings_of_java_and_of_librdkafka_say_the_same() {
        let java = format!(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n{SCRAM}\
             ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n"
        );
        let java = Security::parse(&java).unwrap();
        let sasl = java.sasl.clone().unwrap();
        assert_eq!((sasl.mechanism, sasl.username.as_str()), (Mechanism::ScramSha512, "app"));
        let librdkafka = "security.protocol=sasl_ssl\nsasl.mechanisms=SCRAM-SHA-512\n\
                          sasl.username=app\nsasl.password=s3cret\nssl.ca.location=/ca.pem";
        let librdkafka = Security::parse(librdkafka).unwrap();
        assert_eq!(librdkafka.sasl, java.sasl);
        let places = [&java, &librdkafka].map(|security| {
            security.tls.as_ref().and_then(|tls| tls.authorities.clone()).map(|pem| pem.place)
        });
        assert_eq!(places[0], places[1]);
        assert_eq!(Security::parse("bootstrap.servers=a:1\n").unwrap(), Security::default());
    }

    #[test]
    fn the_host_name_counts_unless_it_is_said_not_to() {
        let tls = |line: &str| {
            Security::parse(&format!("security.protocol=SSL\n{line}")).unwrap().tls.unwrap()
        };
        assert!(tls("").verify_host);
        assert!(!tls("ssl.endpoint.identification.algorithm=").verify_host);
        assert!(tls("ssl.endpoint.identification.algorithm=HTTPS").verify_host);
    }

    #[test]
    fn an_unknown_setting_is_named_with_the_nearest_right_one() {
        let named = problems("security.protocl=SSL\nlinger.ms=5");
        assert!(named.contains("security.protocl is not known; did you mean security.protocol?"));
        assert!(named.contains("linger.ms is not known here"), "{named}");
    }

    #[test]
    fn a_secret_that_runs_over_several_lines_is_not_named() {
        let lines = ["MIIEvQIBADANs3cretBgkqhkiG9w0B", "s3cret", "S3cret.s3cret", "s3cret.x y"];
        let text = format!("security.protocol=SSL\nssl.key.pem=-----BEGIN\n{}", lines.join("\n"));
        assert!(problems(&text).contains("a line that does not begin with the name of a setting"));
        let many: String = (0..500).map(|number| format!("{number}.a={number}\n")).collect();
        assert!(problems(&many).contains("480 more settings are not known"));
        let long = format!("{}=1", "a.".repeat(400_000));
        assert!(problems(&long).len() < 200);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_remedy() {
        for (text, part) in [
            ("security.protocol=TLS", "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
            ("sasl.username=a\nsasl.password=s3cret", "no effect with security.protocol=PLAINTEXT"),
            ("security.protocol=SASL_SSL", "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256"),
            ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
            ("security.protocol=SSL\nssl.endpoint.identification.algorithm=x", "must be https"),
            ("security.protocol=SSL\nssl.key.pem=s3cret", "ssl.key.pem needs a certificate"),
            ("security.protocol=SSL\nssl.certificate.location=/c", "needs a key"),
            ("security.protocol=SSL\nssl.ca.location=/a\nssl.ca.pem=b", "say the same"),
            ("security.protocol=SSL\nssl.key.password=s3cret", "openssl"),
        ] {
            assert!(problems(text).contains(part), "{text}: {}", problems(text));
        }
        let text = format!("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n{SCRAM}");
        assert!(problems(&text).contains("another mechanism"));
        assert!(problems("sasl.password=s3cret\\u00").contains("line 1 has a \\u"));
    }

    #[test]
    fn what_would_not_count_beside_another_is_refused() {
        let sasl = "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n";
        for (text, first, second) in [
            (format!("{sasl}{SCRAM}sasl.password=x"), "sasl.jaas.config", "sasl.password"),
            (format!("{sasl}{SCRAM}sasl.mechanisms=PLAIN"), "sasl.mechanism", "sasl.mechanisms"),
            (
                "security.protocol=SSL\nssl.keystore.location=/a\nssl.key.location=/b".to_owned(),
                "ssl.keystore.location",
                "ssl.key.location",
            ),
        ] {
            let said = format!("{first} and {second} say the same: remove one");
            assert!(problems(&text).contains(&said), "{text}: {}", problems(&text));
        }
    }

    #[test]
    fn a_store_of_java_is_refused_with_the_command_that_converts_it() {
        let trust =
            "security.protocol=SSL\nssl.truststore.type=JKS\nssl.truststore.location=/t.jks";
        let named = problems(trust);
        assert!(named.contains("keytool -list -rfc -keystore /t.jks > /t.pem"), "{named}");
        let key = "security.protocol=SSL\nssl.keystore.type=PKCS12\nssl.keystore.location=/k.p12";
        let named = problems(key);
        assert!(named.contains("openssl pkcs12 -in /k.p12 -nodes -out /k.pem"), "{named}");
    }
}
