//! Timeline histories: where a server's history left an older one.

use crate::lsn::Lsn;

/// A timeline and where it was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Switch {
    /// The timeline that was left.
    pub(crate) timeline: u32,
    /// Where.
    pub(crate) at: Lsn,
}

/// Reads a timeline history file: a line a switch, of timeline, LSN and reason. Lines that say
/// nothing of the kind are comments.
pub(crate) fn parse(file: &str) -> Vec<Switch> {
    file.lines().filter_map(switch).collect()
}

fn switch(line: &str) -> Option<Switch> {
    let mut fields = line.split_whitespace();
    Some(Switch { timeline: fields.next()?.parse().ok()?, at: fields.next()?.parse().ok()? })
}

/// Whether a position on a timeline is part of a server's history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Descent {
    /// It is.
    Same,
    /// The server left that timeline before the position.
    ForkedAt(Lsn),
    /// The server's history never was on that timeline.
    Stranger,
}

/// Compares a position on `timeline` with a server on `current` that has this history.
pub(crate) fn descent(timeline: u32, position: Lsn, current: u32, history: &[Switch]) -> Descent {
    if timeline == current {
        return Descent::Same;
    }
    match history.iter().find(|switch| switch.timeline == timeline) {
        Some(switch) if position <= switch.at => Descent::Same,
        Some(switch) => Descent::ForkedAt(switch.at),
        None => Descent::Stranger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_file_is_read() {
        let file = "1\t0/3000060\tno recovery target specified\n\n# note\n2\t0/5000000\tbefore x\n";
        let at = |timeline, at| Switch { timeline, at: Lsn(at) };
        assert_eq!(parse(file), [at(1, 0x300_0060), at(2, 0x500_0000)]);
    }

    #[test]
    fn a_position_belongs_to_the_history_up_to_the_switch() {
        let history = [Switch { timeline: 1, at: Lsn(100) }, Switch { timeline: 2, at: Lsn(200) }];
        assert_eq!(descent(3, Lsn(900), 3, &history), Descent::Same);
        assert_eq!(descent(1, Lsn(100), 3, &history), Descent::Same);
        assert_eq!(descent(1, Lsn(101), 3, &history), Descent::ForkedAt(Lsn(100)));
        assert_eq!(descent(4, Lsn(1), 3, &history), Descent::Stranger);
    }
}
