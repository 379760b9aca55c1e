//! How many files the system lets this process have open, and how many connections that makes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFiles(u64);

impl OpenFiles {
    /// Takes as many as the system allows: a partition keeps three a segment open, a connection
    /// one, and many systems give a process 1,024 unless it asks.
    pub(crate) fn claim() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let granted = setrlimit(Resource::Nofile, most);
        if let Err(error) = granted {
            tracing::warn!(%error, "the limit of open files stays as it was");
        }
        let granted = if granted.is_ok() { limit.maximum } else { limit.current };
        Self(granted.unwrap_or(u64::MAX))
    }

    /// At most `wanted` connections, and not more than one part in `parts` of the files, so that
    /// strangers cannot take what the log needs. `key` is the setting that was wanted.
    pub(crate) fn connections(self, key: &str, wanted: usize, parts: u64) -> usize {
        let most = usize::try_from(self.0 / parts).unwrap_or(usize::MAX).max(1);
        if most < wanted {
            tracing::warn!(
                key,
                wanted,
                connections = most,
                open_files = self.0,
                "fewer connections than wanted: raise the limit of open files (ulimit -n)"
            );
        }
        wanted.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_the_log() {
        assert_eq!(OpenFiles(20_000).connections("k", 10_000, 2), 10_000);
        assert_eq!(OpenFiles(1_024).connections("k", 10_000, 2), 512);
        assert_eq!(OpenFiles(u64::MAX).connections("k", 10_000, 2), 10_000);
        assert_eq!(OpenFiles(0).connections("k", 10_000, 2), 1);
    }
}
