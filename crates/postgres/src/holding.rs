//! What a slot holds at the server, in words: the log that nobody has read yet.

use highwater_connector::{CONNECTOR_NAME, Fact, Hold};

use crate::error::drop_statement;
use crate::lsn::Lsn;

/// What the server says of a slot and of the log behind it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Holding {
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub(crate) wal_status: Option<String>,
    /// Where the held log begins.
    pub(crate) restart_lsn: Option<Lsn>,
    /// How much it is, bytes.
    pub(crate) held: Option<u64>,
    /// How much lies behind the confirmed position, bytes.
    pub(crate) behind: Option<u64>,
    /// `max_slot_wal_keep_size`, bytes; none where it has no bound.
    pub(crate) limit: Option<u64>,
    /// Time between the sending of a change and our confirmation, seconds, as the server measures
    /// it; none while nothing is under way.
    pub(crate) lag_seconds: Option<f64>,
}

/// Which slot, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Name of the slot.
    pub(crate) slot: &'a str,
    /// The server.
    pub(crate) host: &'a str,
    /// Its port.
    pub(crate) port: u16,
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { slot, host, port } = self;
        write!(f, "slot {slot} at {host}:{port}")
    }
}

impl Holding {
    fn is_lost(&self) -> bool {
        self.wal_status.as_deref() == Some("lost")
    }

    /// Whether the slot, or the server's disk, is in danger: the slot is about to be given up, or
    /// it holds more than `warn` or half of what it may.
    pub(crate) fn presses(&self, warn: u64) -> bool {
        let bound = self.limit.map_or(warn, |limit| (limit / 2).min(warn));
        let given_up = matches!(self.wal_status.as_deref(), Some("lost" | "unreserved"));
        given_up || self.held.is_some_and(|held| held > bound)
    }

    /// The sentence and the numbers. `above_since` is for how long it has been pressing, seconds,
    /// where that is known.
    pub(crate) fn hold(&self, place: Place<'_>, warn: u64, above_since: Option<u64>) -> Hold {
        let pressing = self.presses(warn);
        Hold {
            says: self.says(place, above_since.filter(|_| pressing)),
            remedy: self.remedy(place),
            by_hand: format!("if nobody needs the slot: {}", drop_statement(place.slot)),
            pressing,
            facts: self.facts(place.slot),
        }
    }

    fn says(&self, place: Place<'_>, above_since: Option<u64>) -> String {
        if self.is_lost() {
            return format!(
                "{place} is lost: it needed more log than max_slot_wal_keep_size, and the server \
                 removed it"
            );
        }
        let held = self.held.map_or_else(|| "an unknown amount".to_owned(), bytes);
        let from = self.restart_lsn.map(|lsn| format!(" from {lsn} on")).unwrap_or_default();
        let limit = match self.limit {
            Some(limit) => {
                format!(
                    "of at most {} (max_slot_wal_keep_size), beyond which it is lost",
                    bytes(limit)
                )
            }
            None => "and the server sets no bound: it may fill its disk".to_owned(),
        };
        let since =
            above_since.map(|s| format!("; too much for {}", duration(s))).unwrap_or_default();
        format!("{place} holds {held} of WAL{from}, {limit}{since}")
    }

    fn remedy(&self, place: Place<'_>) -> String {
        if self.is_lost() {
            return crate::error::begin_again(Some(place.slot));
        }
        format!(
            "let it be read: highwater connector resume {CONNECTOR_NAME}; or, when it is not needed \
             any more, highwater connector delete {CONNECTOR_NAME} --drop-slot, or in the database {}",
            drop_statement(place.slot)
        )
    }

    /// For programs; what is not known is left out.
    pub(crate) fn facts(&self, slot: &str) -> Vec<Fact> {
        let number = |name, value: Option<u64>| Some((name, value?.to_string()));
        [
            Some(("slot", slot.to_owned())),
            self.wal_status.clone().map(|status| ("wal_status", status)),
            self.restart_lsn.map(|lsn| ("held_from", lsn.to_string())),
            number("held_bytes", self.held),
            number("held_limit_bytes", self.limit),
            number("behind_bytes", self.behind),
            self.lag_seconds.map(|seconds| ("lag_seconds", format!("{seconds:.3}"))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A number of bytes as a person says it, in powers of 1,000.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", bytes / size, bytes % size / (size / 10)),
        None => format!("{bytes} bytes"),
    }
}

/// A time as a person says it.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { slot: "shop", host: "db", port: 5432 };
    const GB: u64 = 1_000_000_000;

    fn holding(held: u64, limit: Option<u64>) -> Holding {
        Holding {
            wal_status: Some("reserved".to_owned()),
            restart_lsn: Some(Lsn(0x16B_3748)),
            held: Some(held),
            limit,
            ..Holding::default()
        }
    }

    #[test]
    fn the_sentence_has_the_amount_and_the_bound() {
        let hold = holding(1_250_000_000, None).hold(PLACE, GB, Some(300));
        let says = "slot shop at db:5432 holds 1.2 GB of WAL from 0/16B3748 on, and the server sets \
                    no bound: it may fill its disk; too much for 5 min";
        assert_eq!((hold.says.as_str(), hold.pressing), (says, true));
        let hold = holding(7, Some(10 * GB)).hold(PLACE, GB, None);
        let says = "slot shop at db:5432 holds 7 bytes of WAL from 0/16B3748 on, of at most 10.0 GB \
                    (max_slot_wal_keep_size), beyond which it is lost";
        assert_eq!((hold.says.as_str(), hold.pressing), (says, false));
        assert!(hold.remedy.contains("--drop-slot") && hold.remedy.contains("'shop'"));
        assert!(hold.by_hand.ends_with("SELECT pg_drop_replication_slot('shop')"));
        assert!(hold.facts.contains(&("held_bytes", "7".to_owned())));
    }

    #[test]
    fn half_of_the_bound_presses_and_so_does_a_slot_that_is_given_up() {
        assert!(holding(6, Some(10)).presses(GB));
        assert!(!holding(5, Some(10)).presses(GB));
        for status in ["unreserved", "lost"] {
            let holding = Holding { wal_status: Some(status.to_owned()), ..holding(0, None) };
            assert!(holding.presses(GB), "{status}");
        }
    }

    #[test]
    fn numbers_are_said_as_a_person_says_them() {
        assert_eq!([999, 1_000, 2_560_000].map(bytes), ["999 bytes", "1.0 kB", "2.5 MB"]);
        assert_eq!([40, 300, 7_300].map(duration), ["40 s", "5 min", "2 h"]);
        assert_eq!([7, 120, 1_000, 12_345_678].map(grouped), ["7", "120", "1,000", "12,345,678"]);
    }
}
