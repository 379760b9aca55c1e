//! Values of large objects and parts of them, measured in the units in which `DBMS_LOB` counts.

/// A part of a large object: a CLOB is counted in code points, a BLOB in bytes.
pub(crate) trait Run: Clone {
    /// As many units of what `DBMS_LOB` fills a large object with: spaces or zero bytes.
    fn filler(units: u64) -> Self;

    /// How many units it has.
    fn units(&self) -> u64;

    /// How many bytes of memory its content takes.
    fn bytes(&self) -> u64;

    /// Appends a part.
    fn append(&mut self, other: Self);

    /// Cuts it after so many units, and returns the rest.
    fn split_off(&mut self, units: u64) -> Self;
}

/// Text, with its code points counted once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Characters {
    text: String,
    count: u64,
}

impl Characters {
    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl From<String> for Characters {
    fn from(text: String) -> Self {
        let count = text.chars().count() as u64;
        Self { text, count }
    }
}

impl Run for Characters {
    fn filler(units: u64) -> Self {
        Self { text: " ".repeat(size(units)), count: units }
    }

    fn units(&self) -> u64 {
        self.count
    }

    fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.count += other.count;
    }

    fn split_off(&mut self, units: u64) -> Self {
        if units >= self.count {
            return Self::default();
        }
        let byte = self.text.char_indices().nth(size(units)).map_or(self.text.len(), |(at, _)| at);
        let rest = Self { text: self.text.split_off(byte), count: self.count - units };
        self.count = units;
        rest
    }
}

impl Run for Vec<u8> {
    fn filler(units: u64) -> Self {
        vec![0; size(units)]
    }

    fn units(&self) -> u64 {
        self.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn append(&mut self, mut other: Self) {
        Vec::append(self, &mut other);
    }

    fn split_off(&mut self, units: u64) -> Self {
        let cut = size(units).min(self.len());
        Vec::split_off(self, cut)
    }
}

/// A part whose content was let go, as it is above the limit: its place is still known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blank(pub(crate) u64);

impl Run for Blank {
    fn filler(units: u64) -> Self {
        Self(units)
    }

    fn units(&self) -> u64 {
        self.0
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn append(&mut self, other: Self) {
        self.0 += other.0;
    }

    fn split_off(&mut self, units: u64) -> Self {
        let rest = self.0.saturating_sub(units);
        self.0 -= rest;
        Self(rest)
    }
}

/// What is in memory has a size that memory can have.
fn size(units: u64) -> usize {
    usize::try_from(units).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_code_points() {
        let mut text = Characters::from("a\u{1f600}é".to_owned());
        assert_eq!((text.units(), text.bytes()), (3, 7));
        let rest = text.split_off(2);
        assert_eq!((text.units(), text.into_text().as_str()), (2, "a\u{1f600}"));
        assert_eq!((rest.units(), rest.into_text().as_str()), (1, "é"));
    }

    #[test]
    fn nothing_is_left_after_the_end() {
        let mut text = Characters::from("ab".to_owned());
        assert_eq!(text.split_off(2), Characters::default());
        assert_eq!(Run::split_off(&mut vec![1, 2], 9), Vec::<u8>::new());
        assert_eq!(Blank(2).split_off(9), Blank(0));
    }

    #[test]
    fn fillers_are_spaces_and_zeros() {
        assert_eq!(Characters::filler(3).into_text(), "   ");
        assert_eq!(<Vec<u8> as Run>::filler(2), [0, 0]);
    }

    #[test]
    fn parts_are_joined() {
        let mut blank = Blank(2);
        blank.append(Blank(3));
        assert_eq!((blank.split_off(1), blank), (Blank(4), Blank(1)));
        let mut text = Characters::from("é".to_owned());
        text.append(Characters::from("x".to_owned()));
        assert_eq!((text.units(), text.into_text().as_str()), (2, "éx"));
    }
}
