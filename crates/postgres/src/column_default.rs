//! Defaults of columns as Debezium puts them into schemas (`PostgresDefaultValueConverter`).

use std::borrow::Cow;

use highwater_connector::Json;

use crate::column_form::{ColumnFacts, Form};

/// The JSON of a column's default under its form, if Debezium gives one.
///
/// It takes a literal's text, and a constant of the type's own for a call of a function: a `serial`
/// column has the default 0. What it cannot evaluate it leaves out.
pub(crate) fn default_json(facts: &ColumnFacts, form: Form) -> Option<String> {
    let expression = facts.default.as_deref()?;
    let called = constant(facts, form)?;
    if expression.starts_with("NULL::") && !matches!(form, Form::Text) {
        return None;
    }
    let text = if is_call(expression) { called.into() } else { literal(expression) };
    let text = match form {
        Form::Boolean => if text.eq_ignore_ascii_case("true") { "t" } else { "f" }.to_owned(),
        Form::Integer(_) => text.parse::<i64>().ok()?.to_string(),
        Form::Float | Form::Double => text.parse::<f64>().ok()?.to_string(),
        Form::Decimal | Form::DecimalText | Form::DecimalDouble => scaled(&text, facts)?,
        // A structure is no default (KAFKA-12694).
        Form::FreeDecimal => return None,
        _ => text.into_owned(),
    };
    let mut json = Json::java();
    form.write(&mut json, &text).ok()?;
    Some(String::from_utf8_lossy(&json.finish()).into_owned())
}

/// What stands for the result of a function; none for types whose defaults Debezium leaves out.
fn constant(facts: &ColumnFacts, form: Form) -> Option<&'static str> {
    Some(match form {
        Form::Boolean => "false",
        Form::Integer(_) if facts.oid != 26 => "0",
        Form::Float | Form::Double => "0.0",
        Form::Decimal | Form::FreeDecimal | Form::DecimalText | Form::DecimalDouble => "0.0",
        Form::Date(_) => "1970-01-01",
        Form::Time(_) => "00:00:00",
        Form::Timestamp(_) => "1970-01-01 00:00:00",
        Form::ZonedTimestamp(_) => "1970-01-01 00:00:00+00",
        Form::Text => match facts.oid {
            25 | 1042 | 1043 | 142 => "",
            114 | 3802 => "{}",
            2950 => "00000000-0000-0000-0000-000000000000",
            _ => return None,
        },
        _ => return None,
    })
}

/// `nextval('s'::regclass)`, and in parentheses.
fn is_call(expression: &str) -> bool {
    let name = expression.strip_prefix('(').unwrap_or(expression);
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    rest.len() < name.len() && rest.starts_with('(') && rest.contains(')')
}

/// What stands between the first two quotes that are no doubled ones, or all of it where there are
/// none.
fn literal(expression: &str) -> Cow<'_, str> {
    let Some((_, behind)) = expression.split_once('\'') else { return expression.into() };
    // What follows a doubled quote begins with the second one.
    let mut pieces = behind.split('\'').peekable();
    let mut text = pieces.next().unwrap_or_default().to_owned();
    while pieces.next_if_eq(&"").is_some() {
        let Some(piece) = pieces.next() else { break };
        text.push('\'');
        text.push_str(piece);
    }
    text.into()
}

/// A decimal with the column's scale; one with more digits is no default.
fn scaled(text: &str, facts: &ColumnFacts) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().chain(fraction.bytes()).all(|c| c.is_ascii_digit()) {
        return None;
    }
    let Ok(scale) = usize::try_from(crate::column_form::declared_scale(facts.modifier)?) else {
        return None;
    };
    let (kept, cut) = fraction.split_at(fraction.len().min(scale));
    if cut.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{whole}{point}{kept:0<scale$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::Decimals;

    fn json(oid: u32, modifier: i32, form: Form, default: &str) -> Option<String> {
        let default = Some(default.to_owned());
        let facts = ColumnFacts { oid, modifier, default, ..ColumnFacts::default() };
        default_json(&facts, form)
    }

    #[test]
    fn defaults_are_debeziums() {
        let integer = Form::Integer(32);
        let numeric = ((6 << 16) | 2) + 4;
        for (oid, modifier, form, default, expected) in [
            (23, -1, integer, "nextval('s'::regclass)", Some("0")),
            (23, -1, integer, "7", Some("7")),
            (23, -1, integer, "'-7'::integer", Some("-7")),
            (23, -1, integer, "(1 + 2)", None),
            (16, -1, Form::Boolean, "true", Some("true")),
            (25, -1, Form::Text, "'x'::text", Some("\"x\"")),
            (25, -1, Form::Text, "'it''s'::text", Some("\"it's\"")),
            (25, -1, Form::Text, "''::text", Some("\"\"")),
            (25, -1, Form::Text, "''''::text", Some("\"'\"")),
            (25, -1, Form::Text, "upper('x'::text)", Some("\"\"")),
            (1700, numeric, Form::Decimal, "1.5", Some("\"AJY=\"")),
            (1700, numeric, Form::DecimalText, "1.5", Some("\"1.50\"")),
            (790, -1, Form::Money(Decimals::Text), "'$1.00'::money", None),
        ] {
            let found = json(oid, modifier, form, default);
            assert_eq!(found.as_deref(), expected, "{default}");
        }
    }
}
