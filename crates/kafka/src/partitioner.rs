//! Which partition a key chooses, as Kafka's Java clients and Debezium choose it.

/// The partition of a key among `partitions`: murmur2 without its sign, as the Java client's
/// `BuiltInPartitioner.partitionForKey`. 0 where there are no partitions.
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    let positive = (murmur2(key) & 0x7fff_ffff) as i32;
    positive.checked_rem(partitions).unwrap_or_default()
}

/// Austin Appleby's MurmurHash2 with the seed that Kafka took (`org.apache.kafka.common.utils.Utils`).
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, byte| (tail << 8) | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of Apache Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn it_hashes_as_the_java_client_does() {
        let known = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (text, hash) in known {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }

    #[test]
    fn a_negative_hash_chooses_a_partition_that_exists() {
        for partitions in 1..20 {
            assert!((0..partitions).contains(&partition_of(b"foobar", partitions)));
        }
        assert_eq!(partition_of(b"foobar", 0), 0);
    }
}
