//! What is known of a large object while its pieces come: which ranges, and whether its length.

use super::lob_run::Run;

/// The known ranges of a large object.
#[derive(Clone, Debug)]
pub(crate) struct KnownRanges<R> {
    /// Start and content, by start; two never touch.
    runs: Vec<(u64, R)>,
    /// Length in units, once it is known.
    length: Option<u64>,
}

impl<R: Run> KnownRanges<R> {
    /// Nothing is known: a value that was there before.
    pub(crate) const fn unknown() -> Self {
        Self { runs: Vec::new(), length: None }
    }

    /// All is known.
    pub(crate) fn whole(content: R) -> Self {
        let length = content.units();
        let runs = if length == 0 { Vec::new() } else { vec![(0, content)] };
        Self { runs, length: Some(length) }
    }

    /// Bytes of memory that the content takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run.bytes()).sum()
    }

    /// How many units are filled before `offset` when something is written there: those between the
    /// known end and it.
    pub(crate) fn padding(&self, offset: u64) -> u64 {
        self.length.map_or(0, |length| offset.saturating_sub(length))
    }

    /// `DBMS_LOB.WRITE` at an offset that counts from 0.
    pub(crate) fn write(&mut self, offset: u64, content: R) {
        let padding = self.padding(offset);
        if padding > 0 {
            self.put(offset - padding, R::filler(padding));
        }
        let end = offset + content.units();
        self.put(offset, content);
        self.length = self.length.map(|length| length.max(end));
    }

    /// `DBMS_LOB.TRIM`. The database refuses to trim to more than there is: a length that was thought
    /// known and is shorter was none, and nothing before it is known any more.
    pub(crate) fn trim(&mut self, length: u64) {
        if self.length.is_some_and(|known| known < length) {
            self.runs.clear();
        }
        self.cut(length);
        self.length = Some(length);
    }

    /// `DBMS_LOB.ERASE`: what is there is blanked, the length stays.
    pub(crate) fn erase(&mut self, offset: u64, units: u64) {
        self.put(offset, R::filler(self.erased(offset, units)));
    }

    /// How many units an erase blanks.
    pub(crate) fn erased(&self, offset: u64, units: u64) -> u64 {
        self.length.map_or(units, |length| units.min(length.saturating_sub(offset)))
    }

    /// The value, if every unit and the length are known.
    pub(crate) fn value(&self) -> Option<R> {
        match (self.length?, self.runs.as_slice()) {
            (0, _) => Some(R::filler(0)),
            (length, [(0, run)]) if run.units() == length => Some(run.clone()),
            _ => None,
        }
    }

    /// The same ranges with other content.
    pub(crate) fn map<S: Run>(&self, content: impl Fn(&R) -> S) -> KnownRanges<S> {
        let runs = self.runs.iter().map(|(start, run)| (*start, content(run))).collect();
        KnownRanges { runs, length: self.length }
    }

    /// Forgets everything from `offset` on.
    fn cut(&mut self, offset: u64) {
        self.runs.retain(|(start, _)| *start < offset);
        if let Some((start, run)) = self.runs.last_mut() {
            run.split_off(offset - *start);
        }
    }

    /// Lays content over what is known. Pieces mostly come in order, so that the end is near.
    fn put(&mut self, start: u64, content: R) {
        if content.units() == 0 {
            return;
        }
        let end = start + content.units();
        let first = self.runs.partition_point(|(at, run)| at + run.units() < start);
        let after = first + self.runs[first..].partition_point(|(at, _)| *at <= end);
        let touched: Vec<_> = self.runs.splice(first..after, []).collect();
        self.runs.insert(first, join(touched, start, content));
    }
}

/// Content, with what was known before and after it. All of `touched` overlaps or touches it.
fn join<R: Run>(touched: Vec<(u64, R)>, start: u64, content: R) -> (u64, R) {
    let end = start + content.units();
    let mut joined = (start, content);
    for (at, mut run) in touched {
        let is_first = at < start;
        let rest = run.split_off(if is_first { start - at } else { 0 });
        let tail = after(rest, if is_first { start } else { at }, end);
        if is_first {
            run.append(joined.1);
            joined = (at, run);
        }
        joined.1.append(tail);
    }
    joined
}

/// The part of a run that begins at `at` which lies after `end`.
fn after<R: Run>(mut run: R, at: u64, end: u64) -> R {
    run.split_off(end.saturating_sub(at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transaction::lob_run::{Blank, Characters};

    fn text(value: &str) -> Characters {
        Characters::from(value.to_owned())
    }

    fn value(ranges: &KnownRanges<Characters>) -> Option<String> {
        ranges.value().map(Characters::into_text)
    }

    #[test]
    fn an_unseen_value_is_known_once_it_is_written_over_and_cut() {
        let mut ranges = KnownRanges::unknown();
        ranges.write(0, text("abc"));
        ranges.write(3, text("def"));
        assert_eq!(value(&ranges), None, "there may be more behind it");
        ranges.trim(5);
        assert_eq!(value(&ranges).as_deref(), Some("abcde"));
    }

    #[test]
    fn a_gap_before_unseen_data_stays_unknown() {
        let mut ranges = KnownRanges::unknown();
        ranges.write(0, text("abc"));
        ranges.write(4, text("e"));
        ranges.trim(5);
        assert_eq!(value(&ranges), None);
        ranges.write(3, text("d"));
        assert_eq!(value(&ranges).as_deref(), Some("abcde"));
    }

    #[test]
    fn a_write_past_the_known_end_pads() {
        let mut ranges = KnownRanges::whole(text("ab"));
        assert_eq!(ranges.padding(4), 2);
        ranges.write(4, text("é"));
        assert_eq!(value(&ranges).as_deref(), Some("ab  é"));
        let mut ranges = KnownRanges::whole(vec![7_u8]);
        ranges.write(3, vec![9]);
        assert_eq!(ranges.value(), Some(vec![7, 0, 0, 9]));
    }

    #[test]
    fn an_erase_blanks_what_is_there_and_no_more() {
        let mut ranges = KnownRanges::whole(text("abcdef"));
        ranges.erase(4, 9);
        ranges.erase(0, 1);
        assert_eq!(value(&ranges).as_deref(), Some(" bcd  "));
        ranges.erase(8, 2);
        assert_eq!(value(&ranges).as_deref(), Some(" bcd  "));
    }

    #[test]
    fn a_trim_to_nothing_makes_anything_known() {
        let mut ranges = KnownRanges::<Characters>::unknown();
        ranges.trim(0);
        assert_eq!(value(&ranges).as_deref(), Some(""));
    }

    #[test]
    fn a_known_length_that_turns_out_too_short_was_not_known() {
        let mut ranges = KnownRanges::whole(text("abc"));
        ranges.trim(4);
        ranges.write(3, text("d"));
        assert_eq!(value(&ranges), None, "then what was before it may not have been there either");
        ranges.write(0, text("wxyz"));
        assert_eq!(value(&ranges).as_deref(), Some("wxyz"));
    }

    #[test]
    fn ranges_are_the_same_without_their_content() {
        let mut ranges = KnownRanges::unknown();
        ranges.write(2, text("cde"));
        ranges.write(8, text("i"));
        let mut blank = ranges.map(|run| Blank(run.units()));
        assert_eq!((ranges.bytes(), blank.bytes()), (4, 0));
        blank.write(0, Blank(2));
        blank.trim(5);
        assert_eq!(blank.value(), Some(Blank(5)));
    }

    /// A call of `DBMS_LOB`.
    #[derive(Clone, Debug)]
    enum Call {
        Write(u64, String),
        Trim(u64),
        Erase(u64, u64),
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            4 => (0..24_u64, "[abcé\u{1f600}]{1,6}").prop_map(|(at, text)| Call::Write(at, text)),
            1 => (0..24_u64).prop_map(Call::Trim),
            1 => (0..24_u64, 1..8_u64).prop_map(|(at, units)| Call::Erase(at, units)),
        ]
    }

    /// The value itself, beside what of it is known to one who saw only the calls.
    struct Model {
        actual: Vec<char>,
        is_known: Vec<bool>,
        is_length_known: bool,
    }

    impl Model {
        fn new(base: &str, is_known: bool) -> Self {
            let actual: Vec<char> = base.chars().collect();
            let is_known_flags = vec![is_known; actual.len()];
            Self { actual, is_known: is_known_flags, is_length_known: is_known }
        }

        /// Applies a call as the database does; false where it would refuse it.
        fn apply(&mut self, call: &Call) -> bool {
            match call {
                Call::Write(at, text) => self.write(*at as usize, text),
                Call::Trim(length) if *length as usize > self.actual.len() => return false,
                Call::Trim(length) => {
                    self.actual.truncate(*length as usize);
                    self.is_known.truncate(*length as usize);
                    self.is_length_known = true;
                }
                Call::Erase(at, units) => {
                    let end = (at + units).min(self.actual.len() as u64);
                    for unit in *at..end {
                        self.set(unit as usize, ' ');
                    }
                }
            }
            true
        }

        fn write(&mut self, at: usize, text: &str) {
            while self.actual.len() < at {
                self.actual.push(' ');
                self.is_known.push(self.is_length_known);
            }
            for (unit, character) in text.chars().enumerate() {
                self.set(at + unit, character);
            }
        }

        fn set(&mut self, unit: usize, character: char) {
            if unit == self.actual.len() {
                self.actual.push(' ');
                self.is_known.push(true);
            }
            self.actual[unit] = character;
            self.is_known[unit] = true;
        }

        fn is_known(&self) -> bool {
            self.is_length_known && self.is_known.iter().all(|known| *known)
        }
    }

    fn apply(ranges: &mut KnownRanges<Characters>, call: &Call) {
        match call {
            Call::Write(at, value) => ranges.write(*at, text(value)),
            Call::Trim(length) => ranges.trim(*length),
            Call::Erase(at, units) => ranges.erase(*at, *units),
        }
    }

    proptest! {
        #[test]
        fn what_is_called_known_is_the_value(
            base in "[xyz]{0,12}",
            is_known in any::<bool>(),
            calls in prop::collection::vec(call(), 0..24),
        ) {
            let mut model = Model::new(&base, is_known);
            let mut ranges =
                if is_known { KnownRanges::whole(text(&base)) } else { KnownRanges::unknown() };
            for call in &calls {
                if model.apply(call) {
                    apply(&mut ranges, call);
                }
                let actual: String = model.actual.iter().collect();
                prop_assert!(value(&ranges).is_none_or(|value| value == actual), "{:?}", call);
                // An erase tells what is before it even where nothing was: padding is the same.
                prop_assert!(!model.is_known() || value(&ranges).is_some(), "{:?}", call);
            }
        }
    }
}
