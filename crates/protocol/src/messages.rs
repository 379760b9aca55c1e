//! The bodies, one file an API.

mod api_versions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod fetch;
mod find_coordinator;
mod incremental_alter_configs;
mod init_producer_id;
mod list_offsets;
mod metadata;
mod offset_for_leader_epoch;
mod produce;

pub use api_versions::*;
pub use create_topics::*;
pub use delete_records::*;
pub use delete_topics::*;
pub use describe_cluster::*;
pub use describe_configs::*;
pub use fetch::*;
pub use find_coordinator::*;
pub use incremental_alter_configs::*;
pub use init_producer_id::*;
pub use list_offsets::*;
pub use metadata::*;
pub use offset_for_leader_epoch::*;
pub use produce::*;
