//! Changing single settings of a topic (KIP-339).

use highwater_protocol::{
    AlterConfigsResource, AlterableConfig, ErrorCode, IncrementalAlterConfigsRequest,
};

use crate::admin::{TOPIC_RESOURCE, check, silent};
use crate::cluster::Cluster;
use crate::cluster::{Failure, refused};
use crate::{Admin, KafkaError};

/// Kafka's numbers for what is done to a setting.
const SET: i8 = 0;
const DELETE: i8 = 1;

/// A change of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// Key.
    pub name: String,
    /// The new value; none takes the default again.
    pub value: Option<String>,
}

impl Admin {
    /// Changes settings of a topic, all or none; the others stay.
    ///
    /// # Errors
    /// When the cluster refuses or cannot be reached.
    pub async fn alter_topic(
        &self,
        name: &str,
        changes: &[SettingChange],
    ) -> Result<(), KafkaError> {
        let cluster = self.cluster();
        cluster.persist(|| alter(cluster, name, changes)).await
    }
}

async fn alter(cluster: &Cluster, name: &str, changes: &[SettingChange]) -> Result<(), Failure> {
    let change = |change: &SettingChange| AlterableConfig {
        name: change.name.clone(),
        config_operation: if change.value.is_some() { SET } else { DELETE },
        value: change.value.clone(),
    };
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: TOPIC_RESOURCE,
            resource_name: name.to_owned(),
            configs: changes.iter().map(change).collect(),
        }],
        validate_only: false,
    };
    let answer = cluster.ask_controller(&request).await?;
    let told = answer.responses.into_iter().find(|told| told.resource_name == name);
    let told = told.ok_or_else(|| silent("IncrementalAlterConfigs", name))?;
    let what = || format!("change the settings of topic {name}");
    if told.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
        return Err(Failure::Final(refused(what(), told.error_code, None)));
    }
    check(told.error_code, told.error_message.as_deref(), what)
}
