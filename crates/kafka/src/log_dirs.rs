//! How many bytes topics take on the brokers' disks (KIP-113).

use std::collections::BTreeMap;

use highwater_protocol::{DescribeLogDirsRequest, DescribeLogDirsResponse, ErrorCode};

use crate::Admin;
use crate::KafkaError;
use crate::cluster::{Failure, refused};

/// A volume on which a broker keeps partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Address of the broker.
    pub broker: String,
    /// A folder of the log that lies on it.
    pub folder: String,
    /// Its size in bytes.
    pub total: u64,
    /// Bytes of it that are free.
    pub free: u64,
}

impl Admin {
    /// The volumes of all brokers, as far as they say (KIP-827): releases before 3.3 do not.
    ///
    /// # Errors
    /// When a broker refuses, or cannot be reached.
    pub async fn volumes(&self) -> Result<Vec<Volume>, KafkaError> {
        let answers = self.log_dirs().await?;
        for (_, answer) in &answers {
            check(answer).map_err(Failure::into_error)?;
        }
        Ok(answers.iter().flat_map(|(broker, answer)| volumes(broker, answer)).collect())
    }

    /// Bytes of each topic: those of its partitions together, each counted once, by its largest replica.
    ///
    /// # Errors
    /// When a broker refuses, does not offer it, or cannot be reached.
    pub async fn topic_sizes(&self) -> Result<BTreeMap<String, u64>, KafkaError> {
        let answers = self.log_dirs().await?;
        let mut largest = BTreeMap::new();
        for (_, answer) in &answers {
            check(answer).map_err(Failure::into_error)?;
            note(answer, &mut largest);
        }
        let mut sizes = BTreeMap::new();
        for ((topic, _), bytes) in largest {
            *sizes.entry(topic).or_insert(0) += bytes;
        }
        Ok(sizes)
    }

    async fn log_dirs(&self) -> Result<Vec<(String, DescribeLogDirsResponse)>, KafkaError> {
        let cluster = self.cluster();
        let asking = async || {
            cluster.metadata(Some(&[])).await?;
            cluster.ask_each(&DescribeLogDirsRequest::default()).await
        };
        cluster.persist(asking).await
    }
}

/// The folders of an answer whose volume is known.
fn volumes(broker: &str, answer: &DescribeLogDirsResponse) -> Vec<Volume> {
    let known = answer.results.iter().filter_map(|folder| {
        Some(Volume {
            broker: broker.to_owned(),
            folder: folder.log_dir.clone(),
            total: u64::try_from(folder.total_bytes).ok()?,
            free: u64::try_from(folder.usable_bytes).ok()?,
        })
    });
    known.collect()
}

/// Before version 3 the whole answer has no code: who may not ask is told of no folder.
fn check(answer: &DescribeLogDirsResponse) -> Result<(), Failure> {
    let code = match answer.error_code {
        code if !code.is_ok() => code,
        _ if answer.results.is_empty() => ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
        _ => return Ok(()),
    };
    Err(Failure::Final(refused("ask for the sizes of topics".to_owned(), code, None)))
}

/// Takes the partitions of an answer; those of a folder that a broker cannot read are not in it.
fn note(answer: &DescribeLogDirsResponse, largest: &mut BTreeMap<(String, i32), u64>) {
    for topic in answer.results.iter().flat_map(|folder| &folder.topics) {
        for partition in topic.partitions.iter().filter(|partition| !partition.is_future_key) {
            let size = u64::try_from(partition.partition_size).unwrap_or(0);
            let known = largest.entry((topic.name.clone(), partition.partition_index)).or_insert(0);
            *known = size.max(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use highwater_protocol::{
        DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
    };

    use super::*;

    #[test]
    fn a_partition_counts_once_however_many_replicas_it_has() {
        let partition = |partition_index, partition_size, is_future_key| DescribeLogDirsPartition {
            partition_index,
            partition_size,
            offset_lag: 0,
            is_future_key,
        };
        let answer = |size| DescribeLogDirsResponse {
            results: vec![DescribeLogDirsResult {
                topics: vec![DescribeLogDirsTopic {
                    name: "t".to_owned(),
                    partitions: vec![partition(0, size, false), partition(0, 9000, true)],
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let mut largest = BTreeMap::new();
        for size in [5, 7, 6] {
            note(&answer(size), &mut largest);
        }
        assert_eq!(largest, BTreeMap::from([(("t".to_owned(), 0), 7)]));
        assert!(check(&answer(1)).is_ok() && check(&DescribeLogDirsResponse::default()).is_err());
    }
}
