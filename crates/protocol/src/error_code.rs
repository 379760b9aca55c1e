//! The error codes of the protocol.

use std::fmt;

/// An error code as it stands in a response. A code without a name here is kept as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i16);

macro_rules! codes {
    ($( $(#[$doc:meta])* $name:ident = $code:literal; )*) => {
        impl ErrorCode {
            $( $(#[$doc])* pub const $name: Self = Self($code); )*

            /// The name in the protocol's own list, if it is one that we use.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $code => Some(stringify!($name)), )*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// The broker failed in a way it has no code for.
    UNKNOWN_SERVER_ERROR = -1;
    /// No error.
    NONE = 0;
    /// The offset is below the log start or above the log end.
    OFFSET_OUT_OF_RANGE = 1;
    /// A batch fails its CRC, its size, or lacks a key on a compacted topic.
    CORRUPT_MESSAGE = 2;
    /// No such topic or partition here.
    UNKNOWN_TOPIC_OR_PARTITION = 3;
    /// The partition has no leader at the moment.
    LEADER_NOT_AVAILABLE = 5;
    /// Another broker leads the partition.
    NOT_LEADER_OR_FOLLOWER = 6;
    /// The broker could not finish in time.
    REQUEST_TIMED_OUT = 7;
    /// The broker is not available.
    BROKER_NOT_AVAILABLE = 8;
    /// The replica is not available.
    REPLICA_NOT_AVAILABLE = 9;
    /// A batch is larger than `max.message.bytes`.
    MESSAGE_TOO_LARGE = 10;
    /// What a consumer wants to remember with an offset is too long.
    OFFSET_METADATA_TOO_LARGE = 12;
    /// The connection ended before the answer.
    NETWORK_EXCEPTION = 13;
    /// The coordinator is still loading.
    COORDINATOR_LOAD_IN_PROGRESS = 14;
    /// There is no coordinator at the moment.
    COORDINATOR_NOT_AVAILABLE = 15;
    /// Another broker is the coordinator.
    NOT_COORDINATOR = 16;
    /// The topic's name is not allowed, or it may not be written.
    INVALID_TOPIC_EXCEPTION = 17;
    /// The batches are larger than a segment.
    RECORD_LIST_TOO_LARGE = 18;
    /// Fewer replicas in sync than the topic asks for.
    NOT_ENOUGH_REPLICAS = 19;
    /// As above, seen after the append.
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20;
    /// `acks` is none of -1, 0, 1.
    INVALID_REQUIRED_ACKS = 21;
    /// The group's generation is another.
    ILLEGAL_GENERATION = 22;
    /// The member's protocols are none that the group can use.
    INCONSISTENT_GROUP_PROTOCOL = 23;
    /// The group's name is not allowed.
    INVALID_GROUP_ID = 24;
    /// The group has no such member.
    UNKNOWN_MEMBER_ID = 25;
    /// The session time-out is outside of what the broker allows.
    INVALID_SESSION_TIMEOUT = 26;
    /// The group is rebalancing.
    REBALANCE_IN_PROGRESS = 27;
    /// The offsets of one commit are too large for a batch.
    INVALID_COMMIT_OFFSET_SIZE = 28;
    /// No permission for the topic.
    TOPIC_AUTHORIZATION_FAILED = 29;
    /// No permission for the group.
    GROUP_AUTHORIZATION_FAILED = 30;
    /// No permission for the cluster.
    CLUSTER_AUTHORIZATION_FAILED = 31;
    /// A record's timestamp is outside of what the topic takes.
    INVALID_TIMESTAMP = 32;
    /// The SASL mechanism is not offered.
    UNSUPPORTED_SASL_MECHANISM = 33;
    /// The request does not fit the state of authentication.
    ILLEGAL_SASL_STATE = 34;
    /// The version of the API, or a value that needs a newer one, is not spoken.
    UNSUPPORTED_VERSION = 35;
    /// The topic exists.
    TOPIC_ALREADY_EXISTS = 36;
    /// The number of partitions is below one.
    INVALID_PARTITIONS = 37;
    /// The replication factor is below one or above the number of brokers.
    INVALID_REPLICATION_FACTOR = 38;
    /// The assignment of replicas does not fit.
    INVALID_REPLICA_ASSIGNMENT = 39;
    /// A configuration value is not allowed.
    INVALID_CONFIG = 40;
    /// Another broker is the controller.
    NOT_CONTROLLER = 41;
    /// The request contradicts itself.
    INVALID_REQUEST = 42;
    /// The log's format cannot do this.
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    /// A policy of the cluster forbids it.
    POLICY_VIOLATION = 44;
    /// The batch does not follow the producer's last one.
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
    /// The batch is there already.
    DUPLICATE_SEQUENCE_NUMBER = 46;
    /// The producer's epoch is an old one.
    INVALID_PRODUCER_EPOCH = 47;
    /// The transaction is not in a state for this.
    INVALID_TXN_STATE = 48;
    /// The producer id does not belong to the transactional id.
    INVALID_PRODUCER_ID_MAPPING = 49;
    /// The transaction timeout is above the broker's maximum.
    INVALID_TRANSACTION_TIMEOUT = 50;
    /// The transaction before is still being completed.
    CONCURRENT_TRANSACTIONS = 51;
    /// Another coordinator has taken over.
    TRANSACTION_COORDINATOR_FENCED = 52;
    /// No permission for the transactional id.
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53;
    /// There is no authorisation to administer.
    SECURITY_DISABLED = 54;
    /// Not tried, because another part failed.
    OPERATION_NOT_ATTEMPTED = 55;
    /// The disk failed; the partition may come back.
    KAFKA_STORAGE_ERROR = 56;
    /// The credentials are wrong.
    SASL_AUTHENTICATION_FAILED = 58;
    /// The log knows nothing of the producer.
    UNKNOWN_PRODUCER_ID = 59;
    /// The group has members.
    NON_EMPTY_GROUP = 68;
    /// There is no such group.
    GROUP_ID_NOT_FOUND = 69;
    /// No such fetch session.
    FETCH_SESSION_ID_NOT_FOUND = 70;
    /// The fetch session is at another epoch.
    INVALID_FETCH_SESSION_EPOCH = 71;
    /// The leader has no listener like the one asked.
    LISTENER_NOT_FOUND = 72;
    /// Topics may not be deleted here.
    TOPIC_DELETION_DISABLED = 73;
    /// The request's leader epoch is older than the leader's.
    FENCED_LEADER_EPOCH = 74;
    /// The request's leader epoch is newer than the leader's.
    UNKNOWN_LEADER_EPOCH = 75;
    /// The version cannot carry the codec.
    UNSUPPORTED_COMPRESSION_TYPE = 76;
    /// A new leader does not know the offset yet.
    OFFSET_NOT_AVAILABLE = 78;
    /// Join again with the member id given.
    MEMBER_ID_REQUIRED = 79;
    /// The group has as many members as it may.
    GROUP_MAX_SIZE_REACHED = 81;
    /// Another instance has taken the place of the static member.
    FENCED_INSTANCE_ID = 82;
    /// Members of the group are subscribed to the topic.
    GROUP_SUBSCRIBED_TO_TOPIC = 86;
    /// A record does not fit its batch.
    INVALID_RECORD = 87;
    /// Offsets of an open transaction are in the way.
    UNSTABLE_OFFSET_COMMIT = 88;
    /// A quota is used up.
    THROTTLING_QUOTA_EXCEEDED = 89;
    /// A newer producer has the transactional id.
    PRODUCER_FENCED = 90;
    /// No such resource.
    RESOURCE_NOT_FOUND = 91;
    /// The same resource twice in one request.
    DUPLICATE_RESOURCE = 92;
    /// No topic with this id.
    UNKNOWN_TOPIC_ID = 100;
    /// The topic has another id.
    INCONSISTENT_TOPIC_ID = 103;
    /// No such transactional id.
    TRANSACTIONAL_ID_NOT_FOUND = 105;
    /// The request belongs to another kind of endpoint.
    MISMATCHED_ENDPOINT_TYPE = 114;
    /// The kind of endpoint is not supported.
    UNSUPPORTED_ENDPOINT_TYPE = 115;
    /// The transaction must be aborted; the producer may go on.
    TRANSACTION_ABORTABLE = 120;
}

impl ErrorCode {
    /// Whether this is no error.
    pub fn is_ok(self) -> bool {
        self == Self::NONE
    }

    /// Whether the same request may succeed later, as Kafka's own client sees it.
    pub fn is_retriable(self) -> bool {
        matches!(
            self,
            Self::CORRUPT_MESSAGE
                | Self::UNKNOWN_TOPIC_OR_PARTITION
                | Self::LEADER_NOT_AVAILABLE
                | Self::NOT_LEADER_OR_FOLLOWER
                | Self::REQUEST_TIMED_OUT
                | Self::REPLICA_NOT_AVAILABLE
                | Self::NETWORK_EXCEPTION
                | Self::COORDINATOR_LOAD_IN_PROGRESS
                | Self::COORDINATOR_NOT_AVAILABLE
                | Self::NOT_COORDINATOR
                | Self::NOT_ENOUGH_REPLICAS
                | Self::NOT_ENOUGH_REPLICAS_AFTER_APPEND
                | Self::NOT_CONTROLLER
                | Self::CONCURRENT_TRANSACTIONS
                | Self::KAFKA_STORAGE_ERROR
                | Self::FETCH_SESSION_ID_NOT_FOUND
                | Self::INVALID_FETCH_SESSION_EPOCH
                | Self::LISTENER_NOT_FOUND
                | Self::FENCED_LEADER_EPOCH
                | Self::UNKNOWN_LEADER_EPOCH
                | Self::OFFSET_NOT_AVAILABLE
                | Self::UNSTABLE_OFFSET_COMMIT
                | Self::THROTTLING_QUOTA_EXCEEDED
                | Self::UNKNOWN_TOPIC_ID
                | Self::INCONSISTENT_TOPIC_ID
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "error code {}", self.0),
        }
    }
}
