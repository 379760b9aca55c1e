//! How many files the system lets this process have open, how many connections that makes, and
//! whether it is enough.

use highwater_connector::{Finding, Severity};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files that a server with many clients needs.
const WANTED: u64 = 20_000;

/// The limit of open files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFiles(u64);

impl OpenFiles {
    /// Takes as many as the system allows: a partition keeps three a segment open, a connection
    /// one, and many systems give a process 1,024 unless it asks.
    pub(crate) fn claim() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, most) {
            tracing::warn!(%error, "the limit of open files stays as it was");
        }
        Self::granted()
    }

    /// As many as this process may have open now.
    pub(crate) fn granted() -> Self {
        Self(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    /// The number; the largest there is where there is no limit.
    pub(crate) const fn limit(self) -> u64 {
        self.0
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

    /// Too few of them.
    pub(crate) fn few(self) -> Option<Finding> {
        let few = self.0 < WANTED;
        few.then(|| {
            Finding::new(
                Severity::Warning,
                "OPEN_FILES_FEW",
                format!("a process may open {} files at most", self.0),
                "each segment of the log keeps three open, each connection one; without any left, new ones fail",
                "systemd: LimitNOFILE=1048576; a shell: ulimit -Hn 1048576, as root",
            )
            .about("machine")
        })
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

    #[test]
    fn few_files_are_found() {
        assert!(OpenFiles(1_024).few().unwrap().what.contains("1024 files"));
        assert_eq!(OpenFiles(1 << 20).few(), None);
    }

    #[test]
    fn what_was_claimed_is_granted() {
        let claimed = OpenFiles::claim().limit();
        assert_eq!(claimed, OpenFiles::granted().limit());
        assert_eq!(claimed, getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    }
}
