//! How each type of field lies on the wire.

use bytes::{BufMut, Bytes};
use uuid::Uuid;

use crate::DecodeError;
use crate::error_code::ErrorCode;
use crate::reader::Reader;
use crate::writer::Writer;

/// A type that a field can have.
pub(crate) trait Wire: Sized {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! number {
    ($($type:ident $read:ident $put:ident;)*) => { $(
        impl Wire for $type {
            fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
                reader.$read()
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.out.$put(*self);
            }
        }
    )* };
}

number! {
    i8 i8 put_i8;
    i16 i16 put_i16;
    i32 i32 put_i32;
    i64 i64 put_i64;
}

impl Wire for bool {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(reader.i8()? != 0)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.out.put_u8((*self).into());
    }
}

impl Wire for ErrorCode {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        reader.i16().map(ErrorCode)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.out.put_i16(self.0);
    }
}

impl Wire for Uuid {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        reader.u128().map(Uuid::from_u128)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.out.put_u128(self.as_u128());
    }
}

/// A type with a length in front, which can be null.
pub(crate) trait Counted: Sized + Default {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError>;
    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>);
}

impl<T: Counted> Wire for T {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        T::read_counted(reader)?.ok_or(DecodeError::Null)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        T::write_counted(Some(self), writer);
    }
}

impl<T: Counted> Wire for Option<T> {
    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        T::read_counted(reader)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        T::write_counted(self.as_ref(), writer);
    }
}

/// Reads a field that may be null in some versions; `allowed` says whether in this one.
pub(crate) fn read_nullable<T: Counted>(
    reader: &mut Reader,
    allowed: bool,
) -> Result<Option<T>, DecodeError> {
    match T::read_counted(reader)? {
        None if !allowed => Err(DecodeError::Null),
        value => Ok(value),
    }
}

/// Writes a field that may be null in some versions; where it may not, null becomes empty.
pub(crate) fn write_nullable<T: Counted>(
    value: Option<&T>,
    writer: &mut Writer<'_>,
    allowed: bool,
) {
    match value {
        None if !allowed => T::default().write(writer),
        value => T::write_counted(value, writer),
    }
}

impl Counted for String {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        let Some(length) = reader.short_length()? else { return Ok(None) };
        let bytes = reader.take(length)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| DecodeError::Utf8)?;
        Ok(Some(text.to_owned()))
    }

    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>) {
        let value = value.map(|text| &text[..text.floor_char_boundary(writer.longest_string())]);
        writer.short_length(value.map(str::len));
        writer.out.put_slice(value.unwrap_or_default().as_bytes());
    }
}

impl Counted for Bytes {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        let Some(length) = reader.length()? else { return Ok(None) };
        reader.take(length).map(Some)
    }

    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.length(value.map(Bytes::len));
        writer.out.put_slice(value.map_or(&[], |bytes| bytes));
    }
}

/// Bytes that may be a password: nobody sees them by printing a message.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Bytes);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Counted for Secret {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_counted(reader)?.map(Self))
    }

    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>) {
        Bytes::write_counted(value.map(|secret| &secret.0), writer);
    }
}

impl<T: Wire> Counted for Vec<T> {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        let Some(count) = reader.length()? else { return Ok(None) };
        reader.spend(count, size_of::<T>())?;
        // Never more memory ahead of the elements than there are bytes to make them from.
        let room = reader.left() / size_of::<T>().max(1);
        let mut elements = Self::with_capacity(count.min(room));
        for _ in 0..count {
            elements.push(T::read(reader)?);
        }
        Ok(Some(elements))
    }

    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>) {
        writer.length(value.map(Vec::len));
        for element in value.into_iter().flatten() {
            element.write(writer);
        }
    }
}
