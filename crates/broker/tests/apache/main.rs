//! Apache Kafka as the judge: the same requests, byte for byte, to a real node and to us, and the same
//! answers back. One binary, so that the node is started once (`testing/kafka/kafka.sh`).

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod administration;
mod batches;
mod client;
mod clusters;
mod compacted;
mod differential;
mod exceptions;
mod groups;
mod in_transactions;
mod list_offsets;
mod names;
mod normal;
mod normal_groups;
mod normal_transactions;
mod pair;
mod production;
mod random;
mod reading;
mod restarted;
mod second_members;
mod tools;
mod transactions;
mod world;
