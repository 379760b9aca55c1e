//! What a client may do, a bit an operation (KIP-430). Without access control it may do everything.

/// Read, write, create, delete, alter, describe, describe and alter configurations.
const TOPIC: [u32; 8] = [3, 4, 5, 6, 7, 8, 10, 11];
/// Create, alter, describe, cluster action, describe and alter configurations, idempotent write.
const CLUSTER: [u32; 7] = [5, 7, 8, 9, 10, 11, 12];
/// Says nothing: nobody asked.
const UNASKED: i32 = i32::MIN;

pub(crate) fn on_topic(asked: bool) -> i32 {
    if asked { bits(&TOPIC) } else { UNASKED }
}

pub(crate) fn on_cluster(asked: bool) -> i32 {
    if asked { bits(&CLUSTER) } else { UNASKED }
}

fn bits(operations: &[u32]) -> i32 {
    operations.iter().fold(0, |bits, operation| bits | 1 << operation)
}
