//! Where a run begins and under which generation (rule P4). Pure.

use highwater_connector::{Generation, GenerationMark, SourceOffset};

/// What is known when a task starts.
#[derive(Debug)]
pub(crate) struct Known {
    /// The stored offset; `None` before the first start and after a reset.
    pub(crate) offset: Option<SourceOffset>,
    /// Header `hw.generation` of the newest offset record.
    pub(crate) mark: Option<GenerationMark>,
    /// The offset before the transaction that the stored one stands in; `None` at a
    /// transaction's end.
    pub(crate) before_open_transaction: Option<SourceOffset>,
    /// Whether the log may hold records behind the stored offset.
    pub(crate) may_hold_more: bool,
}

/// Where a run begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// The offset to start at.
    pub(crate) offset: Option<SourceOffset>,
    /// What every record and offset record of the run bears.
    pub(crate) mark: GenerationMark,
    /// Whether `mark` must be stored before the first record bears it.
    pub(crate) must_store: bool,
}

/// Decides the generation of a run; `minted` is used when a new one begins.
///
/// A generation goes on only when its event indices go on being counted alike. Under another
/// fingerprint they are not: a transaction that was delivered in part is delivered again whole,
/// under a new generation. That part may lie in the log without being covered by the stored
/// offset, so a changed fingerprint keeps its generation only where the log provably holds
/// nothing behind the stored offset; else a reader would take new events for old ones.
pub(crate) fn decide(known: Known, fingerprint: &str, minted: Generation) -> Origin {
    let Known { offset, mark, before_open_transaction, may_hold_more } = known;
    let mark_of = |generation| GenerationMark { generation, fingerprint: fingerprint.to_owned() };
    match mark {
        Some(mark) if mark.fingerprint == fingerprint => Origin { offset, mark, must_store: false },
        Some(mark) if before_open_transaction.is_none() && !may_hold_more => {
            Origin { offset, mark: mark_of(mark.generation), must_store: true }
        }
        Some(_) => Origin {
            offset: before_open_transaction.or(offset),
            mark: mark_of(minted),
            must_store: true,
        },
        None => Origin { offset, mark: mark_of(minted), must_store: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Generation = Generation::from_bits(1);
    const NEW: Generation = Generation::from_bits(2);

    fn offset(lsn: u64, index: u64) -> SourceOffset {
        let mut offset = SourceOffset::default();
        offset.set("lsn", lsn);
        offset.set("event_index", index);
        offset
    }

    fn known(fingerprint: &str) -> Known {
        Known {
            offset: Some(offset(9, 0)),
            mark: Some(GenerationMark { generation: OLD, fingerprint: fingerprint.to_owned() }),
            before_open_transaction: None,
            may_hold_more: false,
        }
    }

    #[test]
    fn the_first_start_mints_and_stores() {
        let known =
            Known { offset: None, mark: None, before_open_transaction: None, may_hold_more: true };
        let origin = decide(known, "f", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (None, NEW));
        assert!(origin.must_store);
    }

    #[test]
    fn a_restart_goes_on_under_its_generation() {
        let origin = decide(Known { may_hold_more: true, ..known("f") }, "f", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (Some(offset(9, 0)), OLD));
        assert!(!origin.must_store);
    }

    #[test]
    fn an_offset_without_the_header_mints() {
        let origin = decide(Known { mark: None, ..known("f") }, "f", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (Some(offset(9, 0)), NEW));
        assert!(origin.must_store);
    }

    #[test]
    fn another_fingerprint_keeps_the_generation_at_a_clean_transaction_end() {
        let origin = decide(known("old"), "new", NEW);
        assert_eq!((origin.mark.generation, origin.mark.fingerprint.as_str()), (OLD, "new"));
        assert!(origin.must_store);
    }

    #[test]
    fn another_fingerprint_delivers_a_partly_acknowledged_transaction_again_whole() {
        let known = Known {
            offset: Some(offset(9, 3)),
            before_open_transaction: Some(offset(8, 0)),
            ..known("old")
        };
        let origin = decide(known, "new", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (Some(offset(8, 0)), NEW));
        assert!(origin.must_store);
    }

    #[test]
    fn another_fingerprint_mints_when_the_log_may_hold_part_of_the_next_transaction() {
        let origin = decide(Known { may_hold_more: true, ..known("old") }, "new", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (Some(offset(9, 0)), NEW));
    }

    #[test]
    fn the_same_fingerprint_inside_a_transaction_goes_on_where_it_stood() {
        let known = Known {
            offset: Some(offset(9, 3)),
            before_open_transaction: Some(offset(8, 0)),
            ..known("f")
        };
        let origin = decide(known, "f", NEW);
        assert_eq!((origin.offset, origin.mark.generation), (Some(offset(9, 3)), OLD));
    }
}
