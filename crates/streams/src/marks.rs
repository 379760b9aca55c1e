//! Suppression of duplicates (rules P4 to P6): the greatest position seen in each lane of one
//! generation.

use std::collections::BTreeMap;

use highwater_connector::{Generation, Hw};

/// How far a lane has come. Field order is the source's order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Mark {
    pub(crate) position: String,
    pub(crate) index: u64,
    pub(crate) part: u32,
}

/// Whether a record was seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    New,
    Duplicate,
}

/// The marks of all lanes inside one generation.
///
/// They are the same whichever of its duplicates a reader was shown, so that the `pos` of a record
/// does not depend on the quality of service (rule S1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) generation: Option<Generation>,
    pub(crate) lanes: BTreeMap<String, Mark>,
}

impl Marks {
    /// Whether the record at `hw` was seen before. A record of another generation is new whole
    /// (rule P4), and so is one without a lane, which has no order (rule P5).
    pub(crate) fn verdict(&self, hw: &Hw) -> Verdict {
        let seen = self.generation == Some(hw.generation)
            && hw.lane.as_ref().and_then(|lane| self.lanes.get(lane)).is_some_and(|mark| {
                (hw.position.as_str(), hw.index, hw.part)
                    <= (mark.position.as_str(), mark.index, mark.part)
            });
        if seen { Verdict::Duplicate } else { Verdict::New }
    }

    /// Whether the record at `hw` is the next part of the event that its lane has come to.
    pub(crate) fn continues(&self, hw: &Hw) -> bool {
        let mark = hw.lane.as_ref().and_then(|lane| self.lanes.get(lane));
        self.generation == Some(hw.generation)
            && mark.is_some_and(|mark| {
                (&mark.position, mark.index) == (&hw.position, hw.index)
                    && mark.part.checked_add(1) == Some(hw.part)
            })
    }

    /// Takes note of the record at `hw`.
    pub(crate) fn advance(&mut self, hw: &Hw) {
        if self.generation != Some(hw.generation) {
            self.generation = Some(hw.generation);
            self.lanes.clear();
        }
        let Some(lane) = &hw.lane else { return };
        if self.verdict(hw) == Verdict::New {
            let mark = Mark { position: hw.position.clone(), index: hw.index, part: hw.part };
            self.lanes.insert(lane.clone(), mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(generation: u64, lane: Option<&str>, position: &str, index: u64) -> Hw {
        Hw {
            generation: Generation::from_bits(generation),
            lane: lane.map(str::to_owned),
            position: position.to_owned(),
            index,
            part: 0,
            commit_time_us: None,
            table_version: None,
            xid: None,
            count: None,
        }
    }

    #[test]
    fn a_lane_suppresses_what_is_not_above_its_mark() {
        let mut marks = Marks::default();
        marks.advance(&at(1, Some("a"), "05", 3));
        assert_eq!(marks.verdict(&at(1, Some("a"), "05", 3)), Verdict::Duplicate);
        assert_eq!(marks.verdict(&at(1, Some("a"), "04", 9)), Verdict::Duplicate);
        assert_eq!(marks.verdict(&at(1, Some("a"), "05", 4)), Verdict::New);
        assert_eq!(marks.verdict(&at(1, Some("b"), "01", 0)), Verdict::New);
    }

    #[test]
    fn a_duplicate_does_not_lower_a_mark() {
        let mut marks = Marks::default();
        marks.advance(&at(1, Some("a"), "05", 3));
        let before = marks.clone();
        marks.advance(&at(1, Some("a"), "02", 0));
        assert_eq!(marks, before);
    }

    #[test]
    fn another_generation_passes_whole() {
        let mut marks = Marks::default();
        marks.advance(&at(1, Some("a"), "05", 3));
        assert_eq!(marks.verdict(&at(2, Some("a"), "01", 0)), Verdict::New);
        marks.advance(&at(2, Some("a"), "01", 0));
        assert_eq!(marks.verdict(&at(2, Some("a"), "05", 3)), Verdict::New);
    }

    #[test]
    fn a_snapshot_row_passes_always_and_moves_no_mark() {
        let mut marks = Marks::default();
        marks.advance(&at(1, Some("a"), "05", 3));
        let before = marks.clone();
        assert_eq!(marks.verdict(&at(1, None, "01", 0)), Verdict::New);
        marks.advance(&at(1, None, "09", 0));
        assert_eq!(marks, before);
    }
}
