//! What follows from each connector's configuration, as long as that stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::Problem;
use parking_lot::Mutex;

use crate::pipeline::Properties;
use crate::plan::Plan;

/// A plan, or what is wrong with the configuration.
pub(crate) type Planned = Result<Arc<Plan>, Vec<Problem>>;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<String, Known>>);

struct Known {
    /// Of which time that the connector was given.
    revision: u64,
    planned: Planned,
    division: Division,
}

/// Who divided the work among tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Division {
    /// The connector, here and now.
    Own,
    /// The leader, as the log says.
    Stored,
}

impl Plans {
    /// The one of a connector; without it there is nothing that could be run.
    pub(crate) fn get(&self, name: &str) -> Planned {
        self.0.lock().get(name).map_or_else(|| Err(Vec::new()), |known| known.planned.clone())
    }

    /// Those of all connectors but `name` that can be run.
    pub(crate) fn others(&self, name: &str) -> Vec<Arc<Plan>> {
        let known = self.0.lock();
        let others = known.iter().filter(|(other, _)| other.as_str() != name);
        others.filter_map(|(_, known)| known.planned.as_ref().ok().cloned()).collect()
    }

    /// Takes a new one, unless there is one of a later time. Where nothing has changed the old one stays,
    /// so that its tasks run on.
    pub(crate) fn set(&self, name: &str, revision: u64, planned: Planned, division: Division) {
        let mut known = self.0.lock();
        if known.get(name).is_some_and(|known| known.revision > revision) {
            return;
        }
        if let Some(known) = known.get_mut(name)
            && known.revision == revision
            && let (Ok(old), Ok(new)) = (&known.planned, &planned)
            && old.stored == new.stored
        {
            known.division = division;
            return;
        }
        known.insert(name.to_owned(), Known { revision, planned, division });
    }

    /// Whether the one of a connector is of this revision, and of these tasks where there are any.
    pub(crate) fn fits(&self, name: &str, revision: u64, stored: &[Properties]) -> bool {
        self.0.lock().get(name).is_some_and(|known| {
            let divided = |plan: &Arc<Plan>| stored.is_empty() || plan.stored == stored;
            known.revision == revision && known.planned.as_ref().is_ok_and(divided)
        })
    }

    /// Connectors whose work was divided as the log says.
    pub(crate) fn divided_by_others(&self) -> Vec<String> {
        let known = self.0.lock();
        let others = known.iter().filter(|(_, known)| known.division == Division::Stored);
        others.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(key: &str) -> Planned {
        Err(vec![Problem { key: key.to_owned(), message: String::new() }])
    }

    #[test]
    fn what_was_planned_of_an_earlier_configuration_is_not_put_over_the_later_ones() {
        let plans = Plans::default();
        let first = |plans: &Plans| plans.get("a").err().unwrap()[0].key.clone();
        plans.set("a", 2, wrong("new"), Division::Own);
        plans.set("a", 1, wrong("old"), Division::Own);
        assert_eq!(first(&plans), "new");
        plans.set("a", 3, wrong("newest"), Division::Own);
        assert_eq!(first(&plans), "newest");
    }
}
