//! Cuts lines out of the bytes of a file. Pure.

use std::ops::Range;

/// Bytes that were read and not yet given out as lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no end of that line is.
    searched: usize,
}

impl Lines {
    /// Takes in the bytes that follow.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end, and how many bytes it takes with it. A line ends with a
    /// line feed, a carriage return, or both in this order.
    pub(crate) fn peek(&mut self) -> Option<(&[u8], usize)> {
        let (line, end) = self.find()?;
        self.searched = line.end;
        let taken = end - self.start;
        Some((self.buffer.get(line)?, taken))
    }

    /// Goes on behind the line that was seen, of so many bytes with its end.
    pub(crate) fn pass(&mut self, taken: usize) {
        self.start += taken;
        self.searched = self.start;
    }

    fn find(&mut self) -> Option<(Range<usize>, usize)> {
        let rest = self.buffer.get(self.searched..)?;
        let Some(found) = memchr::memchr2(b'\n', b'\r', rest) else {
            self.searched = self.buffer.len();
            return None;
        };
        let until = self.searched + found;
        let end = match (self.buffer.get(until), self.buffer.get(until + 1)) {
            (Some(b'\r'), Some(b'\n')) => until + 2,
            // What follows decides how long the end is, and so where the next line begins.
            (Some(b'\r'), None) => {
                self.searched = until;
                return None;
            }
            _ => until + 1,
        };
        Some((self.start..until, end))
    }

    /// Number of bytes of the line that has no end yet.
    pub(crate) fn unfinished(&self) -> usize {
        self.buffer.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(lines: &mut Lines) -> Vec<(String, usize)> {
        let mut all = Vec::new();
        while let Some((line, taken)) = lines.peek() {
            all.push((String::from_utf8(line.to_vec()).unwrap(), taken));
            lines.pass(taken);
        }
        all
    }

    fn cut(text: &str) -> (Vec<(String, usize)>, usize) {
        let mut lines = Lines::default();
        lines.push(text.as_bytes());
        (all(&mut lines), lines.unfinished())
    }

    #[test]
    fn a_line_is_what_ends_and_its_end_is_counted() {
        let lines = |pairs: &[(&str, usize)]| -> Vec<(String, usize)> {
            pairs.iter().map(|(line, taken)| ((*line).to_owned(), *taken)).collect()
        };
        assert_eq!(cut("a\nbc\n\nd"), (lines(&[("a", 2), ("bc", 3), ("", 1)]), 1));
        assert_eq!(cut("a\r\nb\rc\n"), (lines(&[("a", 3), ("b", 2), ("c", 2)]), 0));
        assert_eq!(cut("a\r"), (lines(&[]), 2), "a line feed may follow");
        assert_eq!(cut(""), (lines(&[]), 0));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_come(text in "[a\r\n]{0,40}", sizes in prop::collection::vec(1_usize..7, 40)) {
            let mut lines = Lines::default();
            let (mut found, mut rest) = (Vec::new(), text.as_bytes());
            for size in sizes {
                let (head, tail) = rest.split_at(size.min(rest.len()));
                rest = tail;
                lines.push(head);
                found.extend(all(&mut lines));
            }
            prop_assert_eq!((found, lines.unfinished()), cut(&text));
        }
    }
}
