//! The transforms by their class names.

use std::collections::BTreeMap;
use std::fmt::Debug;

use highwater_config::{Config, ConfigDef, ConfigKey};
use highwater_data::DataError;

use crate::options::{Problems, wrong};
use crate::place::Place;
use crate::record::Record;
use crate::{
    cast, drop_headers, extract_field, filter, flatten, header_from, hoist_field, insert_field,
    insert_header, mask_field, regex_router, replace_field, set_schema_metadata,
    timestamp_converter, timestamp_router, value_to_key,
};

/// What becomes of a record: another, or none when it is dropped.
pub type Applied = Result<Option<Record>, DataError>;

/// Makes another record of each record, or none.
pub trait Transform: Debug + Send + Sync {
    /// Works on one record.
    ///
    /// # Errors
    /// The record is none that it can work on.
    fn apply(&self, record: Record) -> Applied;

    /// Whether it may drop records or send them to another topic or partition (rule R2: not on a trail).
    fn reroutes(&self) -> bool {
        false
    }
}

type Make = fn(Place, &Config) -> Result<Box<dyn Transform>, Problems>;

/// A transform: its simple name, whether it has the forms `$Key` and `$Value`, its keys, and how it is
/// made.
#[derive(Debug)]
pub struct Kind {
    name: &'static str,
    placed: bool,
    keys: fn() -> Vec<ConfigKey>,
    make: Make,
}

const fn placed(name: &'static str, keys: fn() -> Vec<ConfigKey>, make: Make) -> Kind {
    Kind { name, placed: true, keys, make }
}

const fn plain(name: &'static str, keys: fn() -> Vec<ConfigKey>, make: Make) -> Kind {
    Kind { name, placed: false, keys, make }
}

/// All of them, in the order of the alphabet.
pub const TRANSFORMS: &[Kind] = &[
    placed("Cast", cast::keys, cast::make),
    plain("DropHeaders", drop_headers::keys, drop_headers::make),
    placed("ExtractField", extract_field::keys, extract_field::make),
    plain("Filter", Vec::new, filter::make),
    placed("Flatten", flatten::keys, flatten::make),
    placed("HeaderFrom", header_from::keys, header_from::make),
    placed("HoistField", hoist_field::keys, hoist_field::make),
    placed("InsertField", insert_field::keys, insert_field::make),
    plain("InsertHeader", insert_header::keys, insert_header::make),
    placed("MaskField", mask_field::keys, mask_field::make),
    plain("RegexRouter", regex_router::keys, regex_router::make),
    placed("ReplaceField", replace_field::keys, replace_field::make),
    placed("SetSchemaMetadata", set_schema_metadata::keys, set_schema_metadata::make),
    placed("TimestampConverter", timestamp_converter::keys, timestamp_converter::make),
    plain("TimestampRouter", timestamp_router::keys, timestamp_router::make),
    plain("ValueToKey", value_to_key::keys, value_to_key::make),
];

const PACKAGE: &str = "org.apache.kafka.connect.transforms.";

impl Kind {
    /// The class names: one, or two for key and value.
    pub fn classes(&self) -> Vec<String> {
        let Self { name, placed, .. } = self;
        if *placed {
            vec![format!("{PACKAGE}{name}$Key"), format!("{PACKAGE}{name}$Value")]
        } else {
            vec![format!("{PACKAGE}{name}")]
        }
    }
}

/// The transform that a class names, in full or without its package.
fn find(class: &str) -> Option<(&'static Kind, Place)> {
    let simple = class.strip_prefix(PACKAGE).unwrap_or(class);
    let (name, place) = match simple.split_once('$') {
        Some((name, "Key")) => (name, Some(Place::Key)),
        Some((name, "Value")) => (name, Some(Place::Value)),
        Some(_) => return None,
        None => (simple, None),
    };
    let kind = TRANSFORMS.iter().find(|kind| kind.name == name)?;
    (kind.placed == place.is_some()).then_some((kind, place.unwrap_or(Place::Value)))
}

/// The keys of a transform, without its prefix; `None` for a class that is none.
pub fn transform_keys(class: &str) -> Option<Vec<ConfigKey>> {
    find(class).map(|(kind, _)| (kind.keys)())
}

/// The transform of this class with these options, from whose keys its prefix was taken. Keys that it
/// does not know are the chain's to refuse, which knows what else stands behind that prefix.
///
/// # Errors
/// There is no such class, or an option does not fit.
pub fn new_transform(
    class: &str,
    options: &BTreeMap<String, String>,
) -> Result<Box<dyn Transform>, Problems> {
    let Some((kind, place)) = find(class) else {
        let mut known: Vec<String> = TRANSFORMS.iter().flat_map(Kind::classes).collect();
        known.iter_mut().for_each(|class| drop(class.drain(..PACKAGE.len())));
        return Err(wrong(
            "type",
            format!("is not known; the transforms are {}", known.join(", ")),
        ));
    };
    (kind.make)(place, &checked((kind.keys)(), options)?)
}

/// The options of these keys.
pub(crate) fn checked(
    keys: Vec<ConfigKey>,
    options: &BTreeMap<String, String>,
) -> Result<Config, Problems> {
    let known = options.iter().filter(|(name, _)| keys.iter().any(|key| key.name == name.as_str()));
    let known = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    ConfigDef::new(keys).parse(&known, &[])
}
