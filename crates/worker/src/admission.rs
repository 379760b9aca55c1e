//! Whether a configuration that somebody gives may become a connector's.

use std::sync::Arc;

use highwater_connector::Problem;
use tokio::sync::MutexGuard;

use crate::herder::Herder;
use crate::keys;
use crate::ownership;
use crate::pipeline::Properties;
use crate::plan::Plan;
use crate::plans::Planned;
use crate::rest_error::Refusal;
use crate::secrets;

/// How often a configuration is checked whose connector is changed each time meanwhile.
const ATTEMPTS: usize = 10;

/// A configuration that may become a connector's, and the turn to store it.
pub(crate) struct Admitted<'a> {
    pub(crate) turn: MutexGuard<'a, ()>,
    pub(crate) properties: Properties,
    pub(crate) plan: Arc<Plan>,
}

impl Herder {
    /// Checks the configuration that `wanted` makes for a connector: its name, its secrets, its keys, its
    /// topics; and takes the turn to store it. Others have theirs while the connector's code checks it,
    /// which may hang: where this connector was changed meanwhile, it is checked anew.
    ///
    /// # Errors
    /// What is wrong with it; or the connector was changed each time, or another worker makes changes.
    pub(crate) async fn admit(
        &self,
        name: &str,
        wanted: impl Fn() -> Result<Properties, Refusal>,
    ) -> Result<Admitted<'_>, Refusal> {
        check_name(name)?;
        for _ in 0..ATTEMPTS {
            let revision = self.configs().revision(name);
            let mut properties = wanted()?;
            check_named(name, &mut properties)?;
            let plan = self.fitting(name, &mut properties).await.map_err(Refusal::Invalid)?;
            let turn = self.turn().await?;
            if self.configs().revision(name) == revision {
                self.check_others(&plan).map_err(Refusal::Invalid)?;
                return Ok(Admitted { turn, properties, plan });
            }
        }
        Err(Refusal::rebalancing())
    }

    /// What follows from a configuration that somebody gives, with the secrets that are stored in place of
    /// their masks.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) async fn judged(&self, name: &str, properties: &mut Properties) -> Planned {
        let plan = self.fitting(name, properties).await?;
        self.check_others(&plan)?;
        Ok(plan)
    }

    /// The same, whatever other connectors have.
    async fn fitting(&self, name: &str, properties: &mut Properties) -> Planned {
        let stored = self.configs().properties(name).cloned();
        secrets::unmask(self.plugin(&properties.clone()), properties, stored.as_ref())?;
        self.planned(name, properties, &[]).await
    }

    fn check_others(&self, plan: &Plan) -> Result<(), Vec<Problem>> {
        self.check_owner(plan)?;
        self.check_claims(plan)
    }

    /// What a connector claims is nobody else's.
    fn check_claims(&self, plan: &Plan) -> Result<(), Vec<Problem>> {
        let others = self.plans.others(&plan.name);
        let others = others.iter().map(|other| (other.name.as_str(), other.claims.as_slice()));
        match ownership::claimed(&plan.claims, others) {
            None => Ok(()),
            Some((owner, claim)) => Err(vec![Problem {
                key: claim.key.to_owned(),
                message: format!(
                    "leads to {}, which connector {owner} uses; two connectors cannot share it",
                    claim.what
                ),
            }]),
        }
    }

    /// Rule R2: a topic has one owner.
    fn check_owner(&self, plan: &Plan) -> Result<(), Vec<Problem>> {
        let Some(topics) = &plan.topics else { return Ok(()) };
        if let Some(topic) = ownership::internal(topics) {
            let message = format!(
                "leads to topic {topic}; names that begin with highwater. are for the server's own topics"
            );
            let key = ownership::key(topics).to_owned();
            return Err(vec![Problem { key, message }]);
        }
        let others = self.plans.others(&plan.name);
        let others =
            others.iter().filter_map(|other| Some((other.name.as_str(), other.topics.as_ref()?)));
        match ownership::owner(topics, others) {
            None => Ok(()),
            Some((owner, topic)) => Err(vec![Problem {
                key: ownership::key(topics).to_owned(),
                message: format!(
                    "leads to topic {topic}, which connector {owner} owns; a topic has one owner"
                ),
            }]),
        }
    }
}

/// Its name may stand in the configuration, too.
fn check_named(name: &str, properties: &mut Properties) -> Result<(), Refusal> {
    let named = properties.entry(keys::NAME.to_owned()).or_insert_with(|| name.to_owned());
    if named == name {
        return Ok(());
    }
    Err(Refusal::BadRequest(format!(
        "Connector name configuration ({named}) doesn't match connector name in the URL ({name})"
    )))
}

/// Longest name of a connector, in bytes.
const MAX_NAME: usize = 255;

fn check_name(name: &str) -> Result<(), Refusal> {
    let message = if name.is_empty() {
        "must not be empty".to_owned()
    } else if name.len() > MAX_NAME {
        format!("must not be longer than {MAX_NAME} bytes")
    } else if name.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::Invalid(vec![Problem { key: keys::NAME.to_owned(), message }]))
}
