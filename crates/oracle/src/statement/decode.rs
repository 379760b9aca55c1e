//! The tool behind `highwater oracle decode`: a row of the log as a line of JSON becomes what was read of it,
//! as another.

use serde_json::{Map, Value, json};

use super::error::StatementError;
use super::{
    Columns, Literal, LobPiece, Quoting, WrittenColumn, WrittenRow, read_ddl, read_lob, read_row,
    read_string_begin, read_string_write, read_xml_begin, read_xml_write,
};
use crate::Verb;

/// Decodes a row. `line` is a JSON object: `sql` (or `csf_parts`, the texts of a chain of rows),
/// `op_code`, and an `id` that comes back. The answer has what was read, or an `error` with its `code`,
/// `message` and place (`at`, in bytes of the text, or of a line that is no JSON).
#[must_use]
pub fn decode_line(line: &str, quoting: Quoting) -> String {
    let value = serde_json::from_str::<Value>(line);
    let mut answer = Map::new();
    let id = value.as_ref().ok().and_then(|value| value.get("id")).cloned();
    answer.insert("id".to_owned(), id.unwrap_or_default());
    match value.map_err(|error| Fault::line(&error)).and_then(|value| decode(&value, quoting)) {
        Ok(read) => answer.extend(read),
        Err(fault) => drop(answer.insert("error".to_owned(), fault.json())),
    }
    Value::Object(answer).to_string()
}

/// Why a line has no answer.
struct Fault {
    code: &'static str,
    message: String,
    at: usize,
}

impl Fault {
    /// Syntax errors name a place and no value.
    fn line(error: &serde_json::Error) -> Self {
        let at = error.column().saturating_sub(1);
        Self { code: "no_json", message: format!("the line is no JSON: {error}"), at }
    }

    fn member(code: &'static str, message: &str) -> Self {
        Self { code, message: message.to_owned(), at: 0 }
    }

    fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message, "at": self.at })
    }
}

impl From<StatementError> for Fault {
    fn from(error: StatementError) -> Self {
        let message = format!("expected {}", error.expected);
        Self { code: error.kind.text(), message, at: error.at }
    }
}

type Members = Map<String, Value>;

fn decode(line: &Value, quoting: Quoting) -> Result<Members, Fault> {
    let sql = sql(line).ok_or_else(|| Fault::member("no_sql", "the line has no text in sql"))?;
    let code = line.get("op_code").and_then(Value::as_u64);
    let code =
        code.ok_or_else(|| Fault::member("no_op_code", "the line has no number in op_code"))?;
    Ok(match code {
        1 => row(&sql, quoting, Verb::Insert)?,
        2 => row(&sql, quoting, Verb::Delete)?,
        3 => row(&sql, quoting, Verb::Update)?,
        5 => ddl(&sql)?,
        9 if sql.is_empty() => bare("lob_locator"),
        9 | 10 | 11 | 28 | 29 => lob(&sql, code)?,
        68 => column("xml_begin", "xml", read_xml_begin(&sql)?),
        70 => xml_write(&sql)?,
        91 => column("str32k_begin", "str32k", read_string_begin(&sql)?),
        92 => string_write(&sql)?,
        _ => bare(plain(code)),
    })
}

/// The text of a row, or of a chain of rows joined. A row without text has null there.
fn sql(line: &Value) -> Option<String> {
    if let Some(parts) = line.get("csf_parts") {
        return parts.as_array()?.iter().map(Value::as_str).collect();
    }
    match line.get("sql")? {
        Value::Null => Some(String::new()),
        sql => sql.as_str().map(str::to_owned),
    }
}

/// Operations whose text says no more than their code.
const fn plain(code: u64) -> &'static str {
    match code {
        0 => "internal",
        6 => "start",
        7 => "commit",
        25 => "select_for_update",
        34 => "missing_scn",
        36 => "rollback",
        71 => "xml_end",
        93 => "str32k_end",
        255 => "unsupported",
        _ => "other",
    }
}

/// The members that every answer has.
fn members(op: &str, owner: Option<&str>, table: Option<&str>) -> Members {
    let mut members = Members::new();
    members.insert("op".to_owned(), op.into());
    members.insert("owner".to_owned(), owner.into());
    members.insert("table".to_owned(), table.into());
    for name in ["before", "after", "where_rowid"] {
        members.insert(name.to_owned(), Value::Null);
    }
    members
}

fn bare(op: &str) -> Members {
    members(op, None, None)
}

fn row(sql: &str, quoting: Quoting, verb: Verb) -> Result<Members, Fault> {
    let row = read_row(sql, quoting)?;
    if row.verb != verb {
        return Err(
            StatementError::unexpected(0, "the statement that the operation code says").into()
        );
    }
    let op = match verb {
        Verb::Insert => "insert",
        Verb::Delete => "delete",
        Verb::Update => "update",
    };
    let mut members = members(op, Some(&row.owner), Some(&row.table));
    if verb != Verb::Insert {
        members.insert("before".to_owned(), columns(&row.before));
    }
    if verb != Verb::Delete {
        members.insert("after".to_owned(), columns(&row.after));
    }
    members.insert("where_rowid".to_owned(), row.row_id.as_deref().into());
    Ok(members)
}

fn columns(columns: &Columns<'_>) -> Value {
    columns.iter().map(|(name, value)| (name.clone().into_owned(), literal(value))).collect()
}

fn literal(value: &Literal<'_>) -> Value {
    let call = |name: &str, value: &str| json!({ "fn": name, "v": value });
    let masked = |name: &str, value: &str, mask: Option<&str>| match mask {
        Some(mask) => json!({ "fn": name, "v": value, "fmt": mask }),
        None => call(name, value),
    };
    match value {
        Literal::Null => Value::Null,
        Literal::Unsupported => json!({ "unsupported": true }),
        Literal::Text(text) => text.as_ref().into(),
        Literal::National(text) => call("UNISTR", text),
        Literal::Date { value, mask } => masked("TO_DATE", value, Some(mask)),
        Literal::Timestamp { value, mask } => masked("TO_TIMESTAMP", value, mask.as_deref()),
        Literal::TimestampTz { value, mask } => masked("TO_TIMESTAMP_TZ", value, mask.as_deref()),
        Literal::YearToMonth(value) => call("TO_YMINTERVAL", value),
        Literal::DayToSecond(value) => call("TO_DSINTERVAL", value),
        Literal::Raw(hex) => json!({ "fn": "HEXTORAW", "hex": hex }),
        Literal::EmptyClob => json!({ "fn": "EMPTY_CLOB" }),
        Literal::EmptyBlob => json!({ "fn": "EMPTY_BLOB" }),
        Literal::Json(value) => hinted(literal(value)),
        Literal::Other(text) => json!({ "raw": text }),
    }
}

fn hinted(value: Value) -> Value {
    let mut members = match value {
        Value::Object(members) => members,
        plain => Members::from_iter([("v".to_owned(), plain)]),
    };
    members.insert("hint".to_owned(), "JSON".into());
    members.into()
}

/// The row of a column that is written, and what is said of the column.
fn written(op: &str, row: Option<&WrittenRow<'_>>, said: (&str, Value)) -> Members {
    let owner = row.map(|row| row.owner.as_ref());
    let mut members = members(op, owner, row.map(|row| row.table.as_ref()));
    if let Some(row) = row {
        members.insert("before".to_owned(), columns(&row.before));
        members.insert("where_rowid".to_owned(), row.row_id.as_deref().into());
    }
    members.insert(said.0.to_owned(), said.1);
    members
}

fn column(op: &str, member: &str, begun: WrittenColumn<'_>) -> Members {
    written(op, Some(&begun.row), (member, json!({ "column": begun.column })))
}

fn lob(sql: &str, code: u64) -> Result<Members, Fault> {
    let lob = read_lob(sql)?;
    let mut said = Members::from_iter([("column".to_owned(), lob.column.as_deref().into())]);
    let (op, codes) = match &lob.piece {
        LobPiece::Locator => ("lob_locator", 9..=9),
        LobPiece::Write { data, amount, offset } => {
            said.extend([data_member(data)]);
            said.extend(numbers([("amount", *amount), ("offset", *offset)]));
            ("lob_write", 10..=10)
        }
        LobPiece::Trim { length } => {
            said.extend(numbers([("length", *length)]));
            ("lob_trim", 11..=11)
        }
        LobPiece::Erase { amount, offset } => {
            said.extend(numbers([("amount", *amount), ("offset", *offset)]));
            ("lob_erase", 28..=29)
        }
    };
    if !codes.contains(&code) {
        return Err(StatementError::unexpected(0, "the block that the operation code says").into());
    }
    let mut members = written(op, lob.row.as_ref(), ("lob", said.into()));
    if lob.piece.amount_differs() {
        members.insert("check".to_owned(), "amount_mismatch".into());
    }
    Ok(members)
}

fn numbers<const N: usize>(numbers: [(&str, u64); N]) -> impl Iterator<Item = (String, Value)> {
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number.into()))
}

fn data_member(data: &Literal<'_>) -> (String, Value) {
    match data {
        Literal::Raw(hex) => ("hex".to_owned(), hex.as_ref().into()),
        Literal::Text(text) | Literal::National(text) => ("data".to_owned(), text.as_ref().into()),
        _ => ("data".to_owned(), Value::Null),
    }
}

fn piece(op: &str, member: &str, data: &Literal<'_>, amount: Option<u64>) -> Members {
    let said = [data_member(data), ("amount".to_owned(), amount.into())];
    written(op, None, (member, Value::Object(Members::from_iter(said))))
}

fn xml_write(sql: &str) -> Result<Members, Fault> {
    let read = read_xml_write(sql)?;
    Ok(piece("xml_write", "xml", &read.data, read.amount))
}

fn string_write(sql: &str) -> Result<Members, Fault> {
    let read = read_string_write(sql)?;
    Ok(piece("str32k_write", "str32k", &Literal::Text(read.text), read.amount))
}

fn ddl(sql: &str) -> Result<Members, Fault> {
    let head = read_ddl(sql)?;
    let mut members = members("ddl", head.owner.as_deref(), head.table.as_deref());
    members.insert("ddl_kind".to_owned(), head.kind.text().into());
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(line: &str) -> Value {
        serde_json::from_str(&decode_line(line, Quoting::Strict)).unwrap()
    }

    #[test]
    fn a_line_that_cannot_be_read_gets_an_error() {
        for (line, code, at) in [
            ("", "no_json", 0),
            ("{\"id\":\"a\",", "no_json", 9),
            ("[1]", "no_sql", 0),
            ("{\"op_code\":1}", "no_sql", 0),
            ("{\"sql\":7,\"op_code\":1}", "no_sql", 0),
            ("{\"csf_parts\":[\"a\",1],\"op_code\":1}", "no_sql", 0),
            ("{\"sql\":\"x\",\"op_code\":-1}", "no_op_code", 0),
            ("{\"sql\":\"insert into nothing\",\"op_code\":1}", "unexpected_token", 12),
        ] {
            let error = &decoded(line)["error"];
            assert_eq!((&error["code"], &error["at"]), (&json!(code), &json!(at)), "{line}");
        }
    }

    #[test]
    fn the_id_comes_back_with_an_error_too() {
        assert_eq!(decoded("{\"id\":[7]}")["id"], json!([7]));
        assert_eq!(decoded("{\"sql\":\"commit\",\"op_code\":7}")["id"], Value::Null);
    }

    #[test]
    fn a_text_of_another_operation_is_refused() {
        let delete = "delete from \\\"A\\\".\\\"B\\\" where ROWID = 'x'";
        let trim = "dbms_lob.trim(loc_c, 1);";
        for (sql, code) in [(delete, 1), (delete, 3), (trim, 10), (trim, 29), ("commit", 2)] {
            let line = format!("{{\"sql\":\"{sql}\",\"op_code\":{code}}}");
            assert_eq!(decoded(&line)["error"]["code"], "unexpected_token", "{line}");
        }
    }

    #[test]
    fn a_row_without_text_may_say_so() {
        for (code, op) in [(9, "lob_locator"), (71, "xml_end"), (93, "str32k_end")] {
            assert_eq!(decoded(&format!("{{\"sql\":null,\"op_code\":{code}}}"))["op"], op);
        }
        assert_eq!(decoded("{\"sql\":null,\"op_code\":1}")["error"]["code"], "unexpected_token");
    }

    #[test]
    fn bytes_of_an_object_are_hexadecimal() {
        let line = r#"{"sql":" buf_b := HEXTORAW('0aff'); \n dbms_lob.write(loc_b, 2, 5, buf_b);","op_code":10}"#;
        let lob = json!({ "column": null, "hex": "0aff", "amount": 2, "offset": 5 });
        assert_eq!(decoded(line)["lob"], lob);
    }
}
