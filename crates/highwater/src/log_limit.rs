//! How much of the disk the log may take: bytes, or a share of the volume.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use highwater_log::Log;

use crate::machine;

/// How often the size of the volume is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Less than this holds not even the server's own topics.
const LEAST: u64 = 1 << 20;

/// `log.total_max_bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogLimit {
    Bytes(u64),
    /// Of the volume on which the data folder lies.
    Percent(u64),
    /// As much as fits.
    None,
}

impl LogLimit {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "-1" {
            return Some(Self::None);
        }
        match text.strip_suffix('%') {
            Some(share) => {
                let share = share.trim().parse().ok()?;
                (1..=100).contains(&share).then_some(Self::Percent(share))
            }
            None => text.parse().ok().filter(|bytes| *bytes >= LEAST).map(Self::Bytes),
        }
    }

    /// The limit in bytes, for a data folder that is there.
    pub(crate) fn bytes(self, data_dir: &Path) -> io::Result<Option<u64>> {
        Ok(match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None => None,
            // A file system without a size, such as some network ones, has no share either.
            Self::Percent(share) => {
                Some(machine::space(data_dir)?.total / 100 * share).filter(|bytes| *bytes > 0)
            }
        })
    }

    /// Keeps the log to its share of a volume that may grow or shrink, for as long as it is polled.
    pub(crate) async fn follow(self, log: Log, data_dir: PathBuf) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            match self.bytes(&data_dir) {
                Ok(most) if most == log.limit_bytes() => {}
                Ok(most) => {
                    tracing::info!(limit = %self, bytes = most, "the volume's size has changed");
                    log.limit_to(most);
                }
                Err(error) => tracing::warn!(%error, "the size of the volume cannot be read"),
            }
        }
    }
}

impl fmt::Display for LogLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::Percent(share) => write!(f, "{share}% of the volume"),
            Self::None => f.write_str("as much as fits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_shares_and_no_limit() {
        for (text, limit) in [
            ("80%", Some(LogLimit::Percent(80))),
            ("1048576", Some(LogLimit::Bytes(LEAST))),
            ("-1", Some(LogLimit::None)),
            ("1048575", None),
            ("0%", None),
            ("101%", None),
            ("80 GB", None),
            ("", None),
        ] {
            assert_eq!(LogLimit::parse(text), limit, "{text:?}");
        }
    }

    #[test]
    fn a_share_is_of_the_volume() {
        let dir = std::env::temp_dir();
        let all = LogLimit::Percent(100).bytes(&dir).unwrap().unwrap();
        let half = LogLimit::Percent(50).bytes(&dir).unwrap().unwrap();
        assert!(half > 0 && half.abs_diff(all / 2) < 100, "{half} of {all}");
    }
}
