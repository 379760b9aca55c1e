//! Snappy as it is met in batches: Java's library frames blocks of raw Snappy (called xerial after
//! it), librdkafka writes one raw block.

use std::io;

use snap::raw::{Decoder, Encoder, decompress_len};

/// The mark, then version 1, readable by version 1.
const FRAME_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";

/// What the mark alone takes: the versions behind it are not looked at, as in Java's reader.
const MARK: &[u8] = b"\x82SNAPPY\0";

/// The block size of Java's writer, in bytes before compression.
const BLOCK: usize = 32 << 10;

/// Compresses in Java's framing, which every client reads.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new();
    let mut out = FRAME_HEADER.to_vec();
    for block in bytes.chunks(BLOCK) {
        let compressed = encoder.compress_vec(block)?;
        let length = u32::try_from(compressed.len()).map_err(io::Error::other)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    Ok(out)
}

/// Decompresses either form, or gives `None` if that makes more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    if !bytes.starts_with(MARK) {
        return Ok(block(bytes, &mut out, limit)?.then_some(out));
    }
    let mut rest = bytes.get(FRAME_HEADER.len()..).ok_or_else(cut)?;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(io::Error::other)?;
        let (compressed, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
        if !block(compressed, &mut out, limit)? {
            return Ok(None);
        }
        rest = behind;
    }
    Ok(Some(out))
}

/// Appends one raw block, or says false if `out` would then be larger than `limit`.
fn block(compressed: &[u8], out: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let start = out.len();
    let length = decompress_len(compressed)?;
    if length > limit.saturating_sub(start) {
        return Ok(false);
    }
    out.resize(start + length, 0);
    if let Some(room) = out.get_mut(start..) {
        Decoder::new().decompress(compressed, room)?;
    }
    Ok(true)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a block is cut")
}
