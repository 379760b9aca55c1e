//! Kafka Connect as the judge: what its own converters, transforms and predicates answer, ours answer.
//! One binary, so that the JVM is started once (`testing/kafka/kafka.sh`).

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod avro;
mod converters;
mod form;
mod judge;
mod records;
mod transforms;
