//! Record batches that a message only announces: who sends it adds them from where they lie.

use bytes::{BufMut, Bytes};

use crate::DecodeError;
use crate::reader::Reader;
use crate::wire::Counted;
use crate::writer::Writer;

/// Record batches of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Records {
    /// In the message. What is decoded is always here.
    Here(Bytes),
    /// So many bytes that the sender puts into the [`Gap`] that encoding leaves.
    Apart(usize),
}

/// Where in an encoded message bytes are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// How many encoded bytes stand before it.
    pub at: usize,
    /// How many are missing.
    pub len: usize,
}

impl Records {
    /// The batches; nothing for those that lie apart.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Here(bytes) => bytes,
            Self::Apart(_) => Bytes::new(),
        }
    }
}

impl Default for Records {
    fn default() -> Self {
        Self::Here(Bytes::new())
    }
}

impl Counted for Records {
    fn read_counted(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        Ok(Bytes::read_counted(reader)?.map(Self::Here))
    }

    fn write_counted(value: Option<&Self>, writer: &mut Writer<'_>) {
        match value {
            None => writer.length(None),
            Some(Self::Here(bytes)) => {
                writer.length(Some(bytes.len()));
                writer.out.put_slice(bytes);
            }
            Some(Self::Apart(len)) => {
                writer.length(Some(*len));
                writer.gaps.push(Gap { at: writer.out.len(), len: *len });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::{FetchResponse, FetchableTopicResponse, PartitionData, frame};

    fn answer(records: [Records; 3]) -> FetchResponse {
        let partition =
            |records| PartitionData { records: Some(records), ..PartitionData::default() };
        let partitions = records.map(partition).into();
        let responses = vec![FetchableTopicResponse { topic: "t".to_owned(), partitions }];
        FetchResponse { responses, ..Default::default() }
    }

    /// With its gaps filled, an answer is what it would have been with the batches in it.
    #[test]
    fn a_filled_gap_is_as_bytes_that_were_here() {
        let (one, two) = (Bytes::from(vec![1; 300]), Bytes::from(vec![2; 70_000]));
        for version in 4..=12 {
            let (mut whole, mut around) = (BytesMut::new(), BytesMut::new());
            let here = [one.clone(), Bytes::new(), two.clone()].map(Records::Here);
            frame::encode_response(&mut whole, version, 7, &answer(here));
            let apart = [Records::Apart(300), Records::default(), Records::Apart(70_000)];
            let gaps = frame::encode_around(&mut around, version, 7, &answer(apart));
            let mut filled = Vec::new();
            let mut from = 0;
            for (gap, bytes) in gaps.iter().zip([&one, &two]) {
                assert_eq!(gap.len, bytes.len());
                filled.extend_from_slice(&around[from..gap.at]);
                filled.extend_from_slice(bytes);
                from = gap.at;
            }
            filled.extend_from_slice(&around[from..]);
            assert_eq!(filled, whole, "version {version}");
        }
    }
}
