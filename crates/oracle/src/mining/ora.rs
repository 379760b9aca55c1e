//! ORA codes: which one an error is, and what can be done about it.

use std::collections::BTreeSet;

use crate::session::{ErrorClass, SessionError};
use crate::{Code, OracleError};

/// An error inside another statement of the server, which says nothing by itself.
const RECURSIVE: u32 = 604;

/// The connection or the instance is away, or a container is closed for now.
const TRANSIENT: [u32; 25] = [
    28, 31, 1033, 1034, 1089, 1090, 1092, 1109, 3113, 3114, 3135, 4068, 12_170, 12_514, 12_516,
    12_528, 12_537, 12_541, 12_543, 16_331, 17_002, 17_008, 17_410, 17_800, 25_408,
];

/// A log was switched, overwritten or is being archived: the same range can be read in a moment.
const STEP_RETRY: [u32; 6] = [310, 334, 1013, 1289, 1291, 1368];

/// A log that the catalog lists cannot be opened or read.
const LOG_PURGED: [u32; 4] = [308, 1284, 1285, 16_226];

const PRIVILEGE: [u32; 5] = [942, 1017, 1031, 1045, 28_000];

/// The process, or the PGA of the instance, is out of memory.
const OUT_OF_MEMORY: [u32; 2] = [4030, 4036];

const SNAPSHOT_TOO_OLD: [u32; 2] = [1555, 8181];

const TABLE_CHANGED: [u32; 1] = [1466];

/// What can be done about an ORA code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OraClasses {
    transient: BTreeSet<u32>,
}

impl OraClasses {
    /// The known codes, and these as transient ones, too (`cdc.retry.extra.error.codes`).
    pub fn with_transient(extra: impl IntoIterator<Item = u32>) -> Self {
        Self { transient: extra.into_iter().collect() }
    }

    /// The class of a code.
    pub fn class_of(&self, code: u32) -> ErrorClass {
        let classes: [(&[u32], ErrorClass); 7] = [
            (&TRANSIENT, ErrorClass::Transient),
            (&STEP_RETRY, ErrorClass::StepRetry),
            (&LOG_PURGED, ErrorClass::LogPurged),
            (&PRIVILEGE, ErrorClass::Privilege),
            (&OUT_OF_MEMORY, ErrorClass::OutOfMemory),
            (&SNAPSHOT_TOO_OLD, ErrorClass::SnapshotTooOld),
            (&TABLE_CHANGED, ErrorClass::TableChanged),
        ];
        if self.transient.contains(&code) {
            return ErrorClass::Transient;
        }
        let known = classes.iter().find(|(codes, _)| codes.contains(&code));
        known.map_or(ErrorClass::Unknown, |(_, class)| *class)
    }

    /// The error of a message of the database: its first code decides. ORA-00604 is decided by the
    /// first other code of its stack: a lost log and a lost connection both come wrapped in it.
    pub fn read(&self, message: impl Into<String>) -> SessionError {
        let message = message.into();
        let code = deciding_code(&message);
        let class = code.map_or(ErrorClass::Unknown, |code| self.class_of(code));
        SessionError { ora: code, class, message }
    }
}

fn deciding_code(message: &str) -> Option<u32> {
    let first = first_code(message)?;
    match first {
        RECURSIVE => Some(codes(message).find(|code| *code != RECURSIVE).unwrap_or(first)),
        _ => Some(first),
    }
}

/// The number of the first `ORA-nnnnn` in a text.
pub fn first_code(text: &str) -> Option<u32> {
    codes(text).next()
}

/// The numbers of all `ORA-nnnnn` in a text, in order.
pub fn codes(text: &str) -> impl Iterator<Item = u32> {
    text.split("ORA-").skip(1).filter_map(leading_number)
}

/// Reads a code such as `ORA-01291` of the configuration; `None` for anything else.
pub fn parse_code(text: &str) -> Option<u32> {
    let digits = text.trim().strip_prefix("ORA-")?;
    let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// The stop that an error of the database is, where it is not tried again.
pub fn stop(error: &SessionError) -> OracleError {
    let said = &error.message;
    match error.class {
        ErrorClass::LogPurged => OracleError::new(
            Code::LogPurged,
            format!("a redo log that the catalog lists cannot be read: {said}"),
            "restore the log, or reload the tables with a new snapshot",
        ),
        ErrorClass::Privilege => OracleError::new(
            Code::Privilege,
            format!("the database refuses what capture needs: {said}"),
            "run the script of grants for the capture user and check its password",
        ),
        ErrorClass::Transient => OracleError::new(
            Code::TransientDatabase,
            format!("the database cannot be reached: {said}"),
            "bring back the database, its listener and the network between, then restart the task",
        ),
        _ => OracleError::new(
            Code::TransientDatabase,
            format!("the database gave an error that is not classified: {said}"),
            "find its cause; if it passes by itself, add its code to cdc.retry.extra.error.codes",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(message: &str) -> (Option<u32>, ErrorClass) {
        let error = OraClasses::default().read(message);
        (error.ora, error.class)
    }

    #[test]
    fn the_table_of_codes() {
        for (code, expected) in [
            (3113, ErrorClass::Transient),
            (16_331, ErrorClass::Transient),
            (310, ErrorClass::StepRetry),
            (1291, ErrorClass::StepRetry),
            (1284, ErrorClass::LogPurged),
            (16_226, ErrorClass::LogPurged),
            (1017, ErrorClass::Privilege),
            (4036, ErrorClass::OutOfMemory),
            (8181, ErrorClass::SnapshotTooOld),
            (1466, ErrorClass::TableChanged),
            (600, ErrorClass::Unknown),
        ] {
            assert_eq!(OraClasses::default().class_of(code), expected, "ORA-{code:05}");
        }
    }

    #[test]
    fn the_first_code_of_a_message_decides() {
        let message = "ORA-01291: missing log file\nORA-06512: at \"SYS.DBMS_LOGMNR\", line 72";
        assert_eq!(class(message), (Some(1291), ErrorClass::StepRetry));
        assert_eq!(class("connection reset"), (None, ErrorClass::Unknown));
    }

    #[test]
    fn a_recursive_error_is_what_it_wraps() {
        let lost = "ORA-00604: error occurred at recursive SQL level 1\nORA-01284: file /a/1_7.arc \
                    cannot be opened\nORA-00308: cannot open archived log";
        assert_eq!(class(lost), (Some(1284), ErrorClass::LogPurged));
        let twice = "ORA-00604: level 2\nORA-00604: level 1\nORA-03113: end of file";
        assert_eq!(class(twice), (Some(3113), ErrorClass::Transient));
        assert_eq!(class("ORA-00604: level 1"), (Some(604), ErrorClass::Unknown));
    }

    #[test]
    fn a_code_of_the_configuration_is_transient() {
        let classes = OraClasses::with_transient([600, 308]);
        assert_eq!(classes.class_of(600), ErrorClass::Transient);
        assert_eq!(classes.class_of(308), ErrorClass::Transient);
    }

    #[test]
    fn codes_of_the_configuration_are_read() {
        assert_eq!(parse_code(" ORA-00600 "), Some(600));
        for text in ["600", "ORA-", "ORA-x", "ORA-123456", "ora-1", "ORA-+1"] {
            assert_eq!(parse_code(text), None, "{text}");
        }
    }

    #[test]
    fn no_text_breaks_the_search_for_codes() {
        assert_eq!(codes("ORA-").count(), 0);
        assert_eq!(codes("ORA-99999999999999 ORA-7é ORA-ORA-00001").collect::<Vec<_>>(), [7, 1]);
    }

    #[test]
    fn what_is_in_no_list_stops_and_says_so() {
        let stopped = stop(&OraClasses::default().read("ORA-00600: internal error"));
        assert_eq!(stopped.code, Code::TransientDatabase);
        assert!(stopped.what.contains("not classified") && stopped.what.contains("ORA-00600"));
    }
}
