//! Names of fields, and paths to fields within fields.

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, Field, Map, Schema, Struct, Value};

use crate::options::{Problems, optional, wrong};
use crate::place::{map_of, name, struct_of};

const SYNTAX: &str = "field.syntax.version";

/// The key of the syntax.
pub(crate) const fn syntax() -> ConfigKey {
    optional(
        SYNTAX,
        KeyType::String,
        "V1",
        "V1: a field's name is what stands there. V2: names divided by dots lead to a field within \
         fields; a name with a dot stands between backticks.",
    )
    .of_importance(Importance::High)
}

/// The steps to a field: one at least.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldPath {
    steps: Vec<String>,
}

impl FieldPath {
    /// The path that a key names, in the syntax of the configuration.
    pub(crate) fn new(config: &Config, key: &str, path: &str) -> Result<Self, Problems> {
        let syntax = config.text(SYNTAX);
        if syntax.eq_ignore_ascii_case("V1") {
            Ok(Self { steps: vec![path.to_owned()] })
        } else if syntax.eq_ignore_ascii_case("V2") {
            let steps =
                steps(path).ok_or_else(|| wrong(key, "has a backtick without its partner"))?;
            Ok(Self { steps })
        } else {
            Err(wrong(SYNTAX, "must be V1 or V2"))
        }
    }

    /// The field in this schema.
    pub(crate) fn field<'a>(&self, schema: &'a Schema) -> Option<&'a Field> {
        let (last, before) = self.steps.split_last()?;
        let mut at = schema;
        for step in before {
            at = &at.fields()?.get(step)?.schema;
        }
        at.fields()?.get(last)
    }

    /// The value in this struct; null where the path leads nowhere.
    pub(crate) fn in_struct(&self, row: &Struct, replace_null: bool) -> Result<Value, DataError> {
        let mut at = row;
        let Some((last, before)) = self.steps.split_last() else { return Ok(Value::Null) };
        for step in before {
            match at.read(step, replace_null) {
                None | Some(Value::Null) => return Ok(Value::Null),
                Some(value) => at = struct_of(value)?,
            }
        }
        Ok(at.read(last, replace_null).cloned().unwrap_or_default())
    }

    /// The value in this map; null where the path leads nowhere.
    pub(crate) fn in_map(&self, map: &Map) -> Result<Value, DataError> {
        let mut at = map;
        let Some((last, before)) = self.steps.split_last() else { return Ok(Value::Null) };
        for step in before {
            match at.get(&name(step)) {
                None | Some(Value::Null) => return Ok(Value::Null),
                Some(value) => at = map_of(value)?,
            }
        }
        Ok(at.get(&name(last)).cloned().unwrap_or_default())
    }
}

/// Divides a path at its dots, but for those between backticks. A backtick ends a name only before a
/// dot or at the end, and not behind a backslash.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let behind = match rest.strip_prefix('`') {
            None => match rest.split_once('.') {
                None => {
                    steps.push(rest.to_owned());
                    return Some(steps);
                }
                Some((step, behind)) => {
                    steps.push(step.to_owned());
                    Some(behind)
                }
            },
            Some(quoted) => {
                let (step, behind) = quoted_step(quoted)?;
                steps.push(step);
                behind
            }
        };
        match behind {
            None => return Some(steps),
            Some(behind) => rest = behind,
        }
    }
}

/// The name up to its backtick, and what is behind the dot that follows it.
fn quoted_step(text: &str) -> Option<(String, Option<&str>)> {
    let mut step = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('`')?;
        let escaped = before.ends_with('\\');
        match after.strip_prefix('.') {
            _ if after.is_empty() => {
                step.push_str(before);
                return (!escaped).then_some((step, None));
            }
            Some(behind) if !escaped => {
                step.push_str(before);
                return Some((step, Some(behind)));
            }
            Some(_) => {
                step.push_str(before.strip_suffix('\\').unwrap_or(before));
                step.push('`');
            }
            None => {
                step.push_str(before);
                step.push('`');
            }
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_divided_at_its_dots_and_not_between_backticks() {
        for (path, wanted) in [
            ("a", Some(vec!["a"])),
            ("", Some(vec![""])),
            ("a.b", Some(vec!["a", "b"])),
            ("a.", Some(vec!["a", ""])),
            ("`a.b`.c", Some(vec!["a.b", "c"])),
            ("`a`b`", Some(vec!["a`b"])),
            ("`a\\`.b`", Some(vec!["a`.b"])),
            ("`a", None),
            ("`a\\`", None),
        ] {
            let wanted = wanted.map(|steps| steps.iter().map(ToString::to_string).collect());
            assert_eq!(steps(path), wanted, "{path}");
        }
    }
}
