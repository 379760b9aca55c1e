//! Leader epochs: which began at which offset (Kafka's `leader-epoch-checkpoint`).
//!
//! An epoch begins whenever history may have changed: after a truncation, after a failed fsync, and
//! after an unclean start of a log that shows records before they are fsynced (rules L1, L2). The last
//! entry is the current epoch, also while it holds no record.

/// The epochs of one partition, oldest first; epochs and starts both rise strictly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Epochs {
    entries: Vec<(i32, i64)>,
}

impl Epochs {
    /// Those of a new partition: epoch 0 from offset 0.
    pub(crate) fn new() -> Self {
        Self { entries: vec![(0, 0)] }
    }

    /// Those that were kept elsewhere; the error says what does not fit.
    pub(crate) fn from_entries(entries: Vec<(i32, i64)>) -> Result<Self, String> {
        Self::parse(&Self { entries }.to_text())
    }

    /// Each epoch and where it began, of what lies below an offset.
    pub(crate) fn below(&self, end: i64) -> Vec<(i32, i64)> {
        let (first, others) = match self.entries.split_first() {
            Some((first, others)) => (Some(*first), others),
            None => (None, [].as_slice()),
        };
        let others = others.iter().copied().filter(|(_, start)| *start < end);
        first.into_iter().chain(others).collect()
    }

    /// Each epoch and where it began, of what lies below an offset, and the current one, also where it holds
    /// no record of that: the next one must be greater.
    pub(crate) fn up_to(&self, end: i64) -> Vec<(i32, i64)> {
        let mut known = self.entries.clone();
        known.retain(|(_, start)| *start < end);
        if known.last().is_none_or(|(epoch, _)| *epoch != self.current()) {
            known.push((self.current(), end));
        }
        known
    }

    /// The epoch in which appends are made now.
    pub(crate) fn current(&self) -> i32 {
        self.entries.last().map_or(0, |(epoch, _)| *epoch)
    }

    /// The oldest epoch if it began at or below `log_start`, as ListOffsets earliest answers; else -1.
    pub(crate) fn earliest(&self, log_start: i64) -> i32 {
        self.entries
            .first()
            .filter(|(_, start)| *start <= log_start)
            .map_or(-1, |(epoch, _)| *epoch)
    }

    /// Begins the next epoch at the log end `start`, forgetting what began at or after it.
    pub(crate) fn begin(&mut self, start: i64) {
        let next = self.current().saturating_add(1);
        self.entries.retain(|(_, began)| *began < start);
        self.entries.push((next, start));
    }

    /// Forgets epochs that ended at or below the new log start.
    pub(crate) fn cut_start(&mut self, log_start: i64) {
        let ended = self.entries.partition_point(|(_, start)| *start <= log_start);
        self.entries.drain(..ended.saturating_sub(1));
        if let Some((_, start)) = self.entries.first_mut() {
            *start = (*start).max(log_start);
        }
    }

    /// True if an epoch began above the log end: records of it were lost.
    pub(crate) fn passes(&self, log_end: i64) -> bool {
        self.entries.last().is_some_and(|(_, start)| *start > log_end)
    }

    /// The greatest known epoch at or below `epoch` and its exclusive end, by Kafka's rule for
    /// OffsetForLeaderEpoch; (-1, -1) if unknown.
    pub(crate) fn end(&self, epoch: i32, log_end: i64) -> (i32, i64) {
        if epoch == -1 {
            // No epoch, which has no end.
            return (-1, -1);
        }
        if epoch == self.current() {
            return (epoch, log_end);
        }
        let above = self.entries.partition_point(|(known, _)| *known <= epoch);
        let Some(&(_, end)) = self.entries.get(above) else { return (-1, -1) };
        match above.checked_sub(1).and_then(|floor| self.entries.get(floor)) {
            Some(&(floor, _)) => (floor, end),
            None => (epoch, end),
        }
    }

    /// Kafka's text: version, number of entries, then `epoch start` a line.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for (epoch, start) in &self.entries {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        text
    }

    /// Reads [`Epochs::to_text`]; the error says what does not fit.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some("0") {
            return Err("the first line is not version 0".to_owned());
        }
        let count: usize = lines
            .next()
            .and_then(|line| line.parse().ok())
            .ok_or("the second line is no number of entries")?;
        let entries: Vec<_> = lines
            .map(|line| parse_entry(line).ok_or_else(|| format!("{line:?} is no epoch and offset")))
            .collect::<Result<_, _>>()?;
        let rising = entries.windows(2).all(|pair| match pair {
            [(epoch, start), (next_epoch, next_start)] => epoch < next_epoch && start < next_start,
            _ => false,
        });
        if entries.len() != count || entries.is_empty() || !rising {
            return Err(format!("it announces {count} rising entries and has {entries:?}"));
        }
        Ok(Self { entries })
    }
}

fn parse_entry(line: &str) -> Option<(i32, i64)> {
    let (epoch, start) = line.split_once(' ')?;
    Some((epoch.parse().ok()?, start.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        Epochs { entries: entries.to_vec() }
    }

    #[test]
    fn an_epoch_without_records_gives_way_to_the_next() {
        let mut epochs = Epochs::new();
        epochs.begin(0);
        epochs.begin(7);
        epochs.begin(7);
        assert_eq!(epochs, self::epochs(&[(1, 0), (3, 7)]));
    }

    #[test]
    fn an_epoch_ends_where_the_next_known_one_begins() {
        let epochs = epochs(&[(1, 0), (3, 7), (4, 20)]);
        assert_eq!(epochs.end(0, 30), (0, 0), "older than all that is known");
        assert_eq!(epochs.end(1, 30), (1, 7));
        assert_eq!(epochs.end(2, 30), (1, 7));
        assert_eq!(epochs.end(3, 30), (3, 20));
        assert_eq!(epochs.end(4, 30), (4, 30));
        assert_eq!(epochs.end(5, 30), (-1, -1));
    }

    #[test]
    fn the_current_epoch_is_known_also_where_it_holds_nothing() {
        let epochs = epochs(&[(1, 0), (3, 7), (4, 20)]);
        assert_eq!(epochs.up_to(30), [(1, 0), (3, 7), (4, 20)]);
        assert_eq!(epochs.up_to(20), [(1, 0), (3, 7), (4, 20)]);
        assert_eq!(epochs.up_to(9), [(1, 0), (3, 7), (4, 9)]);
        assert_eq!(epochs.up_to(7), [(1, 0), (4, 7)]);
        assert_eq!(Epochs::new().up_to(0), [(0, 0)]);
    }

    #[test]
    fn a_raised_log_start_keeps_the_epoch_it_falls_into() {
        let mut epochs = epochs(&[(1, 0), (3, 7), (4, 20)]);
        epochs.cut_start(10);
        assert_eq!(epochs, self::epochs(&[(3, 10), (4, 20)]));
        assert_eq!(epochs.earliest(10), 3);
        assert_eq!(epochs.earliest(9), -1);
        epochs.cut_start(50);
        assert_eq!(epochs, self::epochs(&[(4, 50)]));
    }

    #[test]
    fn the_text_is_kafkas_and_comes_back() {
        let epochs = epochs(&[(1, 0), (3, 7)]);
        assert_eq!(epochs.to_text(), "0\n2\n1 0\n3 7\n");
        assert_eq!(Epochs::parse(&epochs.to_text()), Ok(epochs));
        for broken in ["", "1\n0\n", "0\n1\n", "0\n2\n1 0\n", "0\n2\n1 0\n1 5\n", "0\n1\nx 0\n"] {
            assert!(Epochs::parse(broken).is_err(), "{broken:?}");
        }
    }
}
