//! A committed offset in `__consumer_offsets`.

schema! {
    /// Which offset.
    struct OffsetCommitKey {
        /// The group.
        group: String, 0..;
        /// The topic.
        topic: String, 0..;
        /// The partition.
        partition: i32, 0..;
    }

    /// What was committed.
    struct OffsetCommitValue {
        /// The offset of the next record to read.
        offset: i64, 0..;
        /// The leader epoch of the last record read, or -1.
        leader_epoch: i32 = -1, 3..;
        /// What the consumer wants to remember with it.
        metadata: String, 0..;
        /// When it was committed, in milliseconds since 1970.
        commit_timestamp: i64, 0..;
        /// When it may be forgotten, or -1.
        expire_timestamp: i64 = -1, 1..=1;
    }
}
