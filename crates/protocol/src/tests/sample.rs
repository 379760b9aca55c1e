//! Messages to test with, made of a string of choices so that a failure shrinks well.

use bytes::Bytes;
use uuid::Uuid;

use crate::{ErrorCode, Records, Secret};

/// Bytes that decide what a message holds; when they run out, everything is zero.
pub(crate) struct Choices<'a> {
    bytes: &'a [u8],
    pub(crate) version: i16,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8], version: i16) -> Self {
        Self { bytes, version }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn up_to(&mut self, most: u8) -> u8 {
        self.byte() % (most + 1)
    }

    /// A value or null; null only where the version has it.
    pub(crate) fn nullable<T: Sample>(&mut self, allowed: bool) -> Option<T> {
        if allowed && self.up_to(2) == 0 { None } else { Some(T::sample(self)) }
    }
}

/// A type that choices can make.
pub(crate) trait Sample: Sized {
    fn sample(choices: &mut Choices<'_>) -> Self;
}

macro_rules! numbers {
    ($($type:ident)*) => { $(
        impl Sample for $type {
            fn sample(choices: &mut Choices<'_>) -> Self {
                Self::from_be_bytes(choices.bytes())
            }
        }
    )* };
}

numbers! { i8 i16 i32 i64 }

impl Sample for bool {
    fn sample(choices: &mut Choices<'_>) -> Self {
        choices.up_to(1) == 1
    }
}

impl Sample for ErrorCode {
    fn sample(choices: &mut Choices<'_>) -> Self {
        Self(i16::sample(choices))
    }
}

impl Sample for Uuid {
    fn sample(choices: &mut Choices<'_>) -> Self {
        Self::from_bytes(choices.bytes())
    }
}

impl Sample for String {
    fn sample(choices: &mut Choices<'_>) -> Self {
        let letters = ['a', 'b', '-', '9', 'ß', '木'];
        (0..choices.up_to(6)).map(|_| letters[usize::from(choices.up_to(5))]).collect()
    }
}

impl Sample for Bytes {
    fn sample(choices: &mut Choices<'_>) -> Self {
        (0..choices.up_to(9)).map(|_| choices.byte()).collect()
    }
}

impl Sample for Records {
    fn sample(choices: &mut Choices<'_>) -> Self {
        Self::Here(Bytes::sample(choices))
    }
}

impl Sample for Secret {
    fn sample(choices: &mut Choices<'_>) -> Self {
        Self(Bytes::sample(choices))
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(choices: &mut Choices<'_>) -> Self {
        choices.nullable(true)
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(choices: &mut Choices<'_>) -> Self {
        (0..choices.up_to(2)).map(|_| T::sample(choices)).collect()
    }
}
