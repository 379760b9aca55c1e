//! The codecs of a batch, bounded.

use std::io::{self, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};

use super::{BatchError, snappy};

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not.
    #[default]
    None = 0,
    /// gzip.
    Gzip = 1,
    /// Snappy: blocks in the framing of the Java library, or one raw block.
    Snappy = 2,
    /// An LZ4 frame.
    Lz4 = 3,
    /// Zstandard; needs Produce 7 and Fetch 10.
    Zstd = 4,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// From the number in a batch's attributes.
    pub(crate) fn from_id(id: i16) -> Result<Self, BatchError> {
        Self::ALL.into_iter().find(|codec| *codec as i16 == id).ok_or(BatchError::Codec { id })
    }

    pub(crate) fn compress(self, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
        self.compress_at(None, bytes)
    }

    /// Compresses at a level of the codec's, where it has levels; None for its own.
    pub(crate) fn compress_at(
        self,
        level: Option<i32>,
        bytes: &[u8],
    ) -> Result<Vec<u8>, BatchError> {
        let compressed = match self {
            Self::None => Ok(bytes.to_vec()),
            Self::Gzip => gzip(level, bytes),
            Self::Snappy => snappy::compress(bytes),
            Self::Lz4 => lz4(bytes),
            // Level 3 is Kafka's default.
            Self::Zstd => zstd::bulk::compress(bytes, level.unwrap_or(3)),
        };
        compressed.map_err(|error| self.failed(&error))
    }

    /// Decompresses to at most `limit` bytes.
    pub(crate) fn decompress(self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, BatchError> {
        let bounded = match self {
            Self::None => read_bounded(bytes, limit),
            Self::Gzip => read_bounded(MultiGzDecoder::new(bytes), limit),
            Self::Snappy => snappy::decompress(bytes, limit),
            Self::Lz4 => read_bounded(FrameDecoder::new(bytes), limit),
            Self::Zstd => {
                zstd::Decoder::with_buffer(bytes).and_then(|zstd| read_bounded(zstd, limit))
            }
        };
        bounded.map_err(|error| self.failed(&error))?.ok_or(BatchError::TooLarge { limit })
    }

    fn failed(self, error: &io::Error) -> BatchError {
        BatchError::Compressed { codec: self, reason: error.to_string() }
    }
}

/// Everything that `reader` gives, or `None` if that is more than `limit` bytes.
fn read_bounded(reader: impl Read, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut out)?;
    Ok((out.len() <= limit).then_some(out))
}

fn gzip(level: Option<i32>, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let level = level.and_then(|level| u32::try_from(level).ok());
    let level = level.map_or_else(flate2::Compression::default, flate2::Compression::new);
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(bytes)?;
    encoder.finish().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decompressor that would give a gigabyte, and counts what it gave.
    struct Bomb<'a>(io::Take<io::Repeat>, &'a mut u64);

    impl Read for Bomb<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let given = self.0.read(room)?;
            *self.1 += given as u64;
            Ok(given)
        }
    }

    #[test]
    fn no_more_is_decompressed_than_the_limit_and_one_byte() {
        let mut given = 0;
        let bomb = Bomb(io::repeat(0).take(1 << 30), &mut given);
        assert!(matches!(read_bounded(bomb, 100_000), Ok(None)));
        assert_eq!(given, 100_001);
    }

    #[test]
    fn exactly_the_limit_is_allowed() {
        for codec in Compression::ALL {
            let compressed = codec.compress(&[7; 1000]).unwrap();
            assert_eq!(codec.decompress(&compressed, 1000), Ok(vec![7; 1000]));
            let error = BatchError::TooLarge { limit: 999 };
            assert_eq!(codec.decompress(&compressed, 999), Err(error));
        }
    }
}
