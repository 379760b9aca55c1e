//! Filter: drops every record; under a predicate, those that it holds for.

use highwater_config::Config;

use crate::options::Problems;
use crate::place::Place;
use crate::record::Record;
use crate::transform::{Applied, Transform};

#[derive(Debug)]
struct Filter;

pub(crate) fn make(_: Place, _: &Config) -> Result<Box<dyn Transform>, Problems> {
    Ok(Box::new(Filter))
}

impl Transform for Filter {
    fn apply(&self, _: Record) -> Applied {
        Ok(None)
    }

    fn reroutes(&self) -> bool {
        true
    }
}
