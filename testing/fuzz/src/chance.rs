//! Seeded chance, and what it does to bytes.
//!
//! Most inputs of a parser are refused at their first byte. So a mutation begins with an input that
//! is good, and changes what parsers believe: lengths, counts, versions, ends, the order of parts.

/// A generator (SplitMix64): the same seed says the same on every machine.
#[derive(Clone, Debug)]
pub struct Chance(u64);

/// Values at the edges of number types, and those that are special in the formats at hand.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Variable-length numbers: the greatest, one that does not end, one above the range.
const VARINTS: [&[u8]; 4] = [
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x80, 0x80, 0x80, 0x80, 0x10],
];

/// No input grows beyond this.
const LONGEST: usize = 64 << 10;

impl Chance {
    /// Begins with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }

    /// One of some.
    pub fn one_of<T: Clone>(&mut self, some: &[T]) -> Option<T> {
        some.get(self.below(some.len())).cloned()
    }

    /// An input of the corpus, changed a few times.
    pub fn mutated(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.one_of(corpus).unwrap_or_default();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, corpus);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        match self.below(10) {
            0 => self.flip(bytes),
            1 => self.set(bytes),
            2 | 3 => self.number(bytes),
            4 => self.length(bytes),
            5 => bytes.truncate(self.below(bytes.len() + 1)),
            6 => self.remove(bytes),
            7 => self.repeat(bytes),
            8 => self.insert_varint(bytes),
            _ => self.splice(bytes, corpus),
        }
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        let at = self.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << self.below(8);
        }
    }

    fn set(&mut self, bytes: &mut [u8]) {
        let at = self.below(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = self.next() as u8;
        }
    }

    /// Puts a number from the edges, of 1 to 8 bytes in either order, over what is there.
    fn number(&mut self, bytes: &mut [u8]) {
        let number = self.one_of(&EDGES).unwrap_or(0);
        self.overwrite(bytes, number);
    }

    /// Puts a number there that could be a length: of what follows, or a little more or less.
    fn length(&mut self, bytes: &mut [u8]) {
        let near = self.below(bytes.len() + 1) as u64;
        let number = near.wrapping_add(self.below(5) as u64).wrapping_sub(2);
        self.overwrite(bytes, number);
    }

    fn overwrite(&mut self, bytes: &mut [u8], number: u64) {
        let width = 1 << self.below(4);
        let at = self.below((bytes.len() + 1).saturating_sub(width));
        let Some(place) = bytes.get_mut(at..at + width) else { return };
        place.copy_from_slice(&number.to_be_bytes()[8 - width..]);
        if self.below(2) == 0 {
            place.reverse();
        }
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length);
        from..from + self.below((length - from).min(64) + 1).min(length - from)
    }

    fn remove(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes.len());
        bytes.drain(range);
    }

    fn repeat(&mut self, bytes: &mut Vec<u8>) {
        let range = self.range(bytes.len());
        let times = 1 << self.below(8);
        let repeated = bytes[range.clone()].repeat(times);
        bytes.splice(range.end..range.end, repeated);
    }

    fn insert_varint(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let varint = self.one_of(&VARINTS).unwrap_or_default();
        bytes.splice(at..at, varint.iter().copied());
    }

    /// Puts a piece of another input in.
    fn splice(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let Some(other) = self.one_of(corpus) else { return };
        let from = self.range(other.len());
        let over = self.range(bytes.len());
        bytes.splice(over, other[from].iter().copied());
    }
}
