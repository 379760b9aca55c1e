//! What a topic is: name, id, partitions and settings.

use std::sync::Arc;

use uuid::Uuid;

use crate::{LogError, TopicConfig};

/// The most partitions one topic may have.
pub const MAX_PARTITIONS: i32 = 10_000;

/// A topic as it is now.
#[derive(Clone, Debug)]
pub struct TopicInfo {
    /// The name.
    pub name: String,
    /// The id that tells it from an earlier topic of the same name.
    pub id: Uuid,
    /// The number of partitions.
    pub partitions: i32,
    /// The settings.
    pub config: Arc<TopicConfig>,
}

/// Kafka's rule for names of topics.
///
/// # Errors
/// [`LogError::InvalidTopic`].
pub fn check_name(name: &str) -> Result<(), LogError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=249).contains(&name.len()) && name.chars().all(legal);
    if fits && name != "." && name != ".." {
        return Ok(());
    }
    Err(LogError::InvalidTopic { name: name.to_owned() })
}
