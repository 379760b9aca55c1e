//! Values of large objects, and what calls on them make of them.

use std::sync::Arc;

use crate::column::ColumnType;
use crate::random::Random;
use crate::value::hexadecimal;

/// Characters of a value, or bytes of a BLOB, that a statement still has as a literal.
pub(crate) const MOST_IN_LITERAL: usize = 400;

/// Text for the large objects of a simulation: with quotes, line breaks and a supplementary character.
const SENTENCE: &str = "It's a long way;\n\u{1f6a2} and \"back\" \\ again, J\u{f6}rg. ";

impl ColumnType {
    /// Characters, or bytes of a BLOB.
    pub(crate) fn lob_length(self, value: &str) -> usize {
        match self {
            Self::Blob => value.len() / 2,
            _ => value.chars().count(),
        }
    }

    pub(crate) fn is_large(self, value: &str) -> bool {
        self.lob_length(value) > MOST_IN_LITERAL
    }

    /// A value that a statement has as a literal; none at all now and then.
    pub(crate) fn small_lob(self, random: &mut Random) -> Arc<str> {
        match (random.below(8), self) {
            (0, _) => "".into(),
            (_, Self::Blob) => hexadecimal(random, 40).into(),
            _ => self.text(random.between(1, 60), random).into(),
        }
    }

    /// A value between `least` and three times as much.
    pub(crate) fn large_lob(self, least: usize, random: &mut Random) -> Arc<str> {
        let length = random.between(least as u64, 3 * least as u64);
        match self {
            Self::Blob => {
                (0..length).map(|_| format!("{:02x}", random.below(256))).collect::<String>().into()
            }
            _ => self.text(length, random).into(),
        }
    }

    fn text(self, length: u64, random: &mut Random) -> String {
        let skipped = random.index(SENTENCE.chars().count());
        SENTENCE.chars().cycle().skip(skipped).take(usize::try_from(length).unwrap_or(0)).collect()
    }

    /// The value in pieces of so many characters or bytes, each with its offset from 1.
    pub(crate) fn lob_pieces(self, value: &str, size: usize) -> Vec<(usize, Arc<str>)> {
        let width = if self == Self::Blob { 2 } else { 1 };
        let letters: Vec<char> = value.chars().collect();
        let pieces = letters.chunks(size * width).enumerate();
        pieces
            .map(|(number, piece)| (1 + number * size, piece.iter().collect::<String>().into()))
            .collect()
    }

    /// The first so many characters or bytes.
    pub(crate) fn lob_prefix(self, value: &str, length: usize) -> Arc<str> {
        let width = if self == Self::Blob { 2 } else { 1 };
        value.chars().take(length * width).collect::<String>().into()
    }

    /// The value with a part made blank.
    pub(crate) fn lob_erased(self, value: &str, offset: usize, amount: usize) -> Arc<str> {
        let (width, blank) = if self == Self::Blob { (2, '0') } else { (1, ' ') };
        let erased = (offset - 1) * width..(offset - 1 + amount) * width;
        let letters = value.chars().enumerate();
        letters
            .map(|(place, letter)| if erased.contains(&place) { blank } else { letter })
            .collect::<String>()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_value_again() {
        let mut random = Random::new(2);
        for kind in [ColumnType::Clob, ColumnType::Blob] {
            let value = kind.large_lob(1000, &mut random);
            let pieces = kind.lob_pieces(&value, 300);
            assert!(kind.lob_length(&value) >= 1000 && pieces.len() >= 4);
            let whole: String = pieces.iter().map(|(_, data)| &**data).collect();
            assert_eq!(whole, &*value);
            assert_eq!([pieces[0].0, pieces[1].0, pieces[2].0], [1, 301, 601]);
        }
    }

    #[test]
    fn a_part_is_made_blank() {
        assert_eq!(&*ColumnType::Clob.lob_erased("abcdef", 2, 3), "a   ef");
        assert_eq!(&*ColumnType::Blob.lob_erased("0a0b0c0d", 2, 2), "0a00000d");
        assert_eq!(&*ColumnType::Blob.lob_prefix("0a0b0c0d", 3), "0a0b0c");
    }
}
