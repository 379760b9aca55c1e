//! How Kafka names the files of a partition.

use std::path::{Path, PathBuf};

/// What a file with an offset for a name holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    Snapshot,
    /// What recovery cut from a segment and kept aside.
    Cut,
}

const KINDS: [(FileKind, &str); 6] = [
    (FileKind::Log, "log"),
    (FileKind::OffsetIndex, "index"),
    (FileKind::TimeIndex, "timeindex"),
    (FileKind::TransactionIndex, "txnindex"),
    (FileKind::Snapshot, "snapshot"),
    (FileKind::Cut, "cut"),
];

/// The file of that kind: 20 digits of the first offset (of a snapshot: the next one), and the kind.
pub(crate) fn path(dir: &Path, offset: i64, kind: FileKind) -> PathBuf {
    dir.join(format!("{offset:020}.{}", ending(kind)))
}

/// Kinds that stand beside data and indexes, and are written once.
pub(crate) const BESIDE: [FileKind; 2] = [FileKind::Snapshot, FileKind::TransactionIndex];

/// How the name of a file of that kind ends.
pub(crate) fn ending(kind: FileKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, ending)| ending)
}

/// The kind of a file that belongs to a segment, by the ending of its name.
pub(crate) fn of_segment(ending: &str) -> Option<FileKind> {
    let kind = KINDS.iter().find(|(_, known)| *known == ending)?.0;
    (kind != FileKind::Cut).then_some(kind)
}

/// Reads a name; None for a file of another sort.
pub(crate) fn parse(name: &str) -> Option<(i64, FileKind)> {
    let (digits, ending) = name.split_once('.')?;
    let kind = KINDS.iter().find(|(_, known)| *known == ending)?.0;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((plain.then(|| digits.parse().ok())??, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (kind, _) in KINDS {
            let path = path(Path::new("t-0"), 1_234_567, kind);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(parse(name), Some((1_234_567, kind)));
        }
        assert_eq!(
            path(Path::new("t-0"), 7, FileKind::Log).to_str(),
            Some("t-0/00000000000000000007.log")
        );
    }

    #[test]
    fn other_names_are_left_alone() {
        let others = [
            "7.log",
            "leader-epoch-checkpoint",
            "00000000000000000007.log.tmp",
            ".log",
            "+0000000000000000007.log",
        ];
        for other in others {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
