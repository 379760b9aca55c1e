//! The machine under a data folder: space, syncs, addresses. Reading it, and what is wrong with it.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use highwater_connector::{Finding, Severity};

/// A volume, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Space {
    pub(crate) free: u64,
    pub(crate) total: u64,
}

/// The volume that a folder is on.
pub(crate) fn space(dir: &Path) -> io::Result<Space> {
    let volume = rustix::fs::statvfs(dir)?;
    Ok(Space { free: volume.f_bavail * volume.f_frsize, total: volume.f_blocks * volume.f_frsize })
}

/// How long a small write to a folder takes to be safe: the middle of five.
pub(crate) fn sync_time(dir: &Path) -> io::Result<Duration> {
    const TIMES: usize = 5;
    // Without a name as soon as it is open: whatever fails below, nothing is left behind.
    let path = dir.join(format!(".doctor-{}.tmp", std::process::id()));
    let mut file = File::create(&path)?;
    std::fs::remove_file(&path)?;
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        file.write_all(&[0; 4096])?;
        let began = Instant::now();
        file.sync_data()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[TIMES / 2])
}

/// All that can be told of a data folder and the volume under it.
pub(crate) fn of_folder(dir: &Path) -> Vec<Finding> {
    let unusable = |error: io::Error| {
        Finding::new(
            Severity::Error,
            "DATA_DIR",
            format!("it cannot be used: {error}"),
            "the log cannot take records there",
            format!(
                "ls -ld {} shows whose it is; the server's user must be able to write there",
                dir.display()
            ),
        )
    };
    let findings = match (space(dir), sync_time(dir)) {
        (Err(error), _) | (_, Err(error)) => vec![unusable(error)],
        (Ok(space), Ok(time)) => of_space(dir, space).into_iter().chain(of_sync(time)).collect(),
    };
    let subject = format!("data folder {}", dir.display());
    findings.into_iter().map(|finding| finding.about(subject.as_str())).collect()
}

fn of_space(dir: &Path, Space { free, total }: Space) -> Option<Finding> {
    const MIB: u64 = 1 << 20;
    let severity = match free {
        free if free < 128 * MIB || free < total / 100 => Severity::Error,
        free if free < 1024 * MIB || free < total / 20 => Severity::Warning,
        _ => return None,
    };
    Some(Finding::new(
        severity,
        "SPACE_SHORT",
        format!("{} MiB of {} MiB are free on its volume", free / MIB, total / MIB),
        "a full volume stops every write to the log; reading goes on, and writing once there is space",
        format!(
            "du -xsh {}/* shows what takes the space; lower retention.ms of a topic, or make the volume larger",
            dir.display()
        ),
    ))
}

/// A sync that takes longer than this is no disk for a log.
const SLOW_SYNC: Duration = Duration::from_millis(50);

fn of_sync(time: Duration) -> Option<Finding> {
    (time > SLOW_SYNC).then(|| {
        Finding::new(
            Severity::Warning,
            "SYNC_SLOW",
            format!("a sync of 4 KiB takes {} ms", time.as_millis()),
            "a record is visible and acknowledged only after a sync; a local disk takes less than 10 ms",
            "put the data folder on a local disk with --data-dir, or see what else keeps this one busy: iostat -x 1",
        )
    })
}

/// An address that cannot be listened on; `code` is what a start says then.
pub(crate) fn of_address(
    flag: &str,
    address: SocketAddr,
    code: impl Fn(io::Error) -> &'static str,
) -> Option<Finding> {
    let error = TcpListener::bind(address).err()?;
    let what = format!("{address} cannot be listened on: {error}");
    Some(
        Finding::new(
            Severity::Error,
            code(error),
            what,
            "the server does not start without it",
            format!("ss -ltnp shows who listens there; or choose another address with {flag}"),
        )
        .about(flag),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severity(free: u64) -> Option<Severity> {
        let space = Space { free: free << 20, total: 100 << 30 };
        of_space(Path::new("/d"), space).map(|finding| finding.severity)
    }

    #[test]
    fn space_is_short_before_it_is_gone() {
        assert_eq!(severity(20 << 10), None);
        assert_eq!(severity(4 << 10), Some(Severity::Warning));
        assert_eq!(severity(100), Some(Severity::Error));
    }

    #[test]
    fn slow_syncs_are_found() {
        assert_eq!(of_sync(Duration::from_millis(3)), None);
        assert!(of_sync(Duration::from_millis(80)).unwrap().what.contains("80 ms"));
    }

    #[test]
    fn a_folder_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        assert!(sync_time(folder.path()).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(of_folder(&folder.path().join("none"))[0].code, "DATA_DIR");
    }

    #[test]
    fn an_address_that_is_taken_is_named_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let code = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => "X_TAKEN",
            _ => "X_OTHER",
        };
        let finding = of_address("--kafka-listen", taken.local_addr().unwrap(), code).unwrap();
        assert!(finding.remedy.contains("--kafka-listen"));
        assert_eq!(finding.code, "X_TAKEN");
    }
}
