//! What a group's leader tells a consumer.

use bytes::Bytes;

schema! {
    /// The fields with which a consumer's assignment begins.
    struct ConsumerAssignment {
        /// The partitions that it reads.
        assigned_partitions: Vec<AssignedTopic>, 0..;
        /// Of no concern to the consumer's library.
        user_data: Option<Bytes>, 0.., null 0..;
    }

    /// The partitions of a topic in a [`ConsumerAssignment`].
    struct AssignedTopic {
        /// Its name.
        topic: String, 0..;
        /// The partitions.
        partitions: Vec<i32>, 0..;
    }
}
