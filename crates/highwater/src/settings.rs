//! Settings of `highwater server`: the file, the flags over it, and the defaults under both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cli::ServerFlags;
use crate::failure::Failure;
use crate::guard;

/// The configuration file. Every key is optional; an unknown one is refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) insecure_listen: bool,
    pub(crate) kafka: Kafka,
    pub(crate) http: Http,
    pub(crate) worker: Worker,
}

/// Table `[kafka]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Kafka {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) advertise: Option<String>,
}

/// Table `[http]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Http {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) advertise: Option<String>,
    pub(crate) allowed_hosts: Vec<String>,
}

/// Table `[worker]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Worker {
    pub(crate) offset_flush_interval_ms: Option<u64>,
}

/// What the server runs with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) kafka_listen: SocketAddr,
    pub(crate) kafka_advertise: Option<(String, u16)>,
    pub(crate) http_listen: SocketAddr,
    /// Host names beside loopback that the HTTP listener answers to, in lower case.
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) offset_flush_interval_ms: u64,
}

const KAFKA_LISTEN: SocketAddr = SocketAddr::new(LOOPBACK, 9092);
const HTTP_LISTEN: SocketAddr = SocketAddr::new(LOOPBACK, 8083);
const LOOPBACK: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Reads the file, if one is named, and lays the flags over it.
pub(crate) fn load(flags: &ServerFlags) -> Result<Settings, Failure> {
    let file = flags.config.as_deref().map(read).transpose()?.unwrap_or_default();
    settings(flags, file)
}

fn read(path: &Path) -> Result<File, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn settings(flags: &ServerFlags, file: File) -> Result<Settings, Failure> {
    let kafka_listen = flags.kafka_listen.or(file.kafka.listen).unwrap_or(KAFKA_LISTEN);
    let http_listen = flags.http_listen.or(file.http.listen).unwrap_or(HTTP_LISTEN);
    let kafka_advertise = flags.kafka_advertise.clone().or(file.kafka.advertise);
    let http_advertise = flags.http_advertise.clone().or(file.http.advertise);
    let insecure = flags.insecure_listen || file.insecure_listen;
    check_listener("--kafka-listen", kafka_listen, kafka_advertise.as_deref(), insecure)?;
    check_listener("--http-listen", http_listen, http_advertise.as_deref(), insecure)?;
    let mut allowed_hosts = file.http.allowed_hosts;
    allowed_hosts.extend(http_advertise.as_deref().map(advertised_host).transpose()?);
    if !http_listen.ip().is_loopback() && !http_listen.ip().is_unspecified() {
        allowed_hosts.push(http_listen.ip().to_string());
    }
    Ok(Settings {
        data_dir: flags.data_dir.clone().or(file.data_dir).unwrap_or("highwater-data".into()),
        kafka_listen,
        kafka_advertise: kafka_advertise.as_deref().map(host_and_port).transpose()?,
        http_listen,
        allowed_hosts: allowed_hosts.iter().map(|name| name.to_ascii_lowercase()).collect(),
        offset_flush_interval_ms: offset_flush(file.worker.offset_flush_interval_ms)?,
    })
}

fn offset_flush(given: Option<u64>) -> Result<u64, Failure> {
    match given {
        None => Ok(1_000),
        Some(interval @ 10..=600_000) => Ok(interval),
        Some(other) => Err(Failure::usage(format!(
            "worker.offset_flush_interval_ms is {other}; it must be from 10 to 600000"
        ))),
    }
}

/// Rules A2 and L9: what lies beyond loopback must be asked for in so many words.
fn check_listener(
    flag: &str,
    address: SocketAddr,
    advertise: Option<&str>,
    insecure: bool,
) -> Result<(), Failure> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if !insecure {
        return Err(Failure::usage(format!(
            "{flag} {address} is beyond loopback, and this listener has neither TLS nor authentication"
        ))
        .remedy("listen on 127.0.0.1, or add --insecure-listen on a network that you trust"));
    }
    if address.ip().is_unspecified() && advertise.is_none() {
        let advertise_flag = flag.replace("listen", "advertise");
        return Err(Failure::usage(format!(
            "{flag} {address} listens everywhere, so clients cannot be told where to connect"
        ))
        .remedy(format!("add {advertise_flag} HOST:PORT")));
    }
    Ok(())
}

fn advertised_host(text: &str) -> Result<String, Failure> {
    guard::host_name(text)
        .ok_or_else(|| Failure::usage(format!("--http-advertise {text} is not HOST[:PORT]")))
}

fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    guard::host_name(text)
        .filter(|host| !host.is_empty())
        .zip(port)
        .ok_or_else(|| Failure::usage(format!("--kafka-advertise {text} is not HOST:PORT")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: ServerFlags, file: &str) -> Result<Settings, Failure> {
        settings(&flags, toml::from_str(file).unwrap())
    }

    #[test]
    fn defaults_are_loopback() {
        let settings = with(ServerFlags::default(), "").unwrap();
        assert_eq!(settings.kafka_listen.to_string(), "127.0.0.1:9092");
        assert_eq!(settings.http_listen.to_string(), "127.0.0.1:8083");
        assert_eq!(settings.offset_flush_interval_ms, 1_000);
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let flags = ServerFlags { data_dir: Some("/a".into()), ..ServerFlags::default() };
        assert_eq!(with(flags, "data_dir = '/b'").unwrap().data_dir, PathBuf::from("/a"));
    }

    #[test]
    fn beyond_loopback_is_refused_unless_asked_for() {
        let open = || Some("0.0.0.0:9092".parse().unwrap());
        let flags = ServerFlags { kafka_listen: open(), ..ServerFlags::default() };
        assert!(with(flags, "").unwrap_err().what.contains("beyond loopback"));

        let flags =
            ServerFlags { kafka_listen: open(), insecure_listen: true, ..ServerFlags::default() };
        assert!(with(flags, "").unwrap_err().remedy.contains("--kafka-advertise"));

        let flags = ServerFlags {
            kafka_listen: open(),
            insecure_listen: true,
            kafka_advertise: Some("db1.example:9092".to_owned()),
            ..ServerFlags::default()
        };
        let advertise = with(flags, "").unwrap().kafka_advertise;
        assert_eq!(advertise, Some(("db1.example".to_owned(), 9092)));
    }

    #[test]
    fn an_advertised_host_is_a_name_or_an_address() {
        for (text, host) in [("Db1.example:1", "db1.example"), ("[fe80::1]:1", "fe80::1")] {
            let flags = ServerFlags {
                kafka_advertise: Some(text.to_owned()),
                http_advertise: Some(text.to_owned()),
                ..ServerFlags::default()
            };
            let settings = with(flags, "").unwrap();
            assert_eq!(settings.kafka_advertise, Some((host.to_owned(), 1)));
            assert_eq!(settings.allowed_hosts, [host]);
        }
        for text in ["db1.example", ":1", "fe80::1", ""] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
        assert!(advertised_host("a b").is_err());
    }

    #[test]
    fn an_unknown_key_is_named() {
        let error = toml::from_str::<File>("[kafka]\nlistn = '127.0.0.1:1'").unwrap_err();
        assert!(error.to_string().contains("listn"), "{error}");
    }
}
