//! A statement that is written of random names and values is read back as it was.

use std::borrow::Cow;

use highwater_oracle::Verb;
use highwater_oracle::statement::{Literal, Quoting, RowStatement, read_row};
use proptest::prelude::*;

/// Text with what a reader may stumble on.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 ]{0,6}",
        4 => prop::sample::select(vec![
            "'", "''", "'''", "\"", ",", "', '", "','", "(", ")", ");", "') ", "||", "' || '", ";", "--", "/* JSON */",
            " and ", " where ", " set ", " IS NULL", "NULL", "ROWID = 'x'", "values (", "\\", "\\0041", "\n", "\r\n",
            "\t", "UNISTR('", "HEXTORAW(''", "Unsupported Type", "= ", "é", "客户", "🚢", "e\u{301}", "\u{0}",
        ]).prop_map(str::to_owned),
        1 => ".{0,4}",
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = String> {
    text().prop_filter("a name has letters", |name| !name.is_empty())
}

fn hex() -> impl Strategy<Value = String> {
    "([0-9a-fA-F]{2}){0,5}"
}

fn own(text: String) -> Cow<'static, str> {
    Cow::Owned(text)
}

fn literal() -> impl Strategy<Value = Literal<'static>> {
    let plain = prop_oneof![
        Just(Literal::Null),
        Just(Literal::Unsupported),
        Just(Literal::EmptyClob),
        Just(Literal::EmptyBlob),
        text().prop_map(|value| Literal::Text(own(value))),
        text().prop_map(|value| Literal::National(own(value))),
        (text(), text())
            .prop_map(|(value, mask)| Literal::Date { value: own(value), mask: own(mask) }),
        (text(), prop::option::of(text())).prop_map(|(value, mask)| {
            Literal::Timestamp { value: own(value), mask: mask.map(own) }
        }),
        (text(), prop::option::of(text())).prop_map(|(value, mask)| {
            Literal::TimestampTz { value: own(value), mask: mask.map(own) }
        }),
        text().prop_map(|value| Literal::YearToMonth(own(value))),
        text().prop_map(|value| Literal::DayToSecond(own(value))),
        hex().prop_map(|value| Literal::Raw(own(value))),
        text().prop_map(|value| {
            Literal::Other(own(format!(
                "\"O\".\"T\"({}, NULL, SYS.X(1, {}))",
                quoted(&value),
                quoted(&value)
            )))
        }),
    ];
    prop_oneof![
        9 => plain.clone(),
        1 => plain.prop_map(|value| Literal::Json(Box::new(value))),
    ]
}

type Columns = Vec<(Cow<'static, str>, Literal<'static>)>;

fn columns(least: usize) -> impl Strategy<Value = Columns> {
    prop::collection::vec((name().prop_map(own), literal()), least..5)
}

fn statement() -> impl Strategy<Value = RowStatement<'static>> {
    let names = (name().prop_map(own), name().prop_map(own));
    let row_id = prop::option::of("[A-Za-z0-9+/]{18}".prop_map(Cow::Owned));
    let parts = (0..3_usize, names, columns(0), columns(1), row_id);
    parts.prop_map(|(verb, (owner, table), before, after, row_id)| {
        let verb = [Verb::Insert, Verb::Update, Verb::Delete][verb];
        let (before, row_id) = if verb == Verb::Insert { (vec![], None) } else { (before, row_id) };
        let after = if verb == Verb::Delete { vec![] } else { after };
        RowStatement { verb, owner, table, before, after, row_id }
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn named(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// National text is written in all the ways there are: what is not ASCII as code units, a backslash as two.
fn unistr(text: &str) -> String {
    let mut escaped = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit).map(char::from) {
            Ok('\\') => escaped.push_str("\\\\"),
            Ok(letter) if letter.is_ascii() => escaped.push(letter),
            _ => escaped.push_str(&format!("\\{unit:04X}")),
        }
    }
    format!("UNISTR({})", quoted(&escaped))
}

fn call(function: &str, arguments: &[&Cow<'_, str>]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
    format!("{function}({})", arguments.join(", "))
}

fn written(literal: &Literal<'_>) -> String {
    match literal {
        Literal::Null => "NULL".to_owned(),
        Literal::Unsupported => "Unsupported Type".to_owned(),
        Literal::Text(text) => quoted(text),
        Literal::National(text) => unistr(text),
        Literal::Date { value, mask } => call("TO_DATE", &[value, mask]),
        Literal::Timestamp { value, mask } => call(
            "TO_TIMESTAMP",
            &[Some(value), mask.as_ref()].into_iter().flatten().collect::<Vec<_>>(),
        ),
        Literal::TimestampTz { value, mask } => call(
            "TO_TIMESTAMP_TZ",
            &[Some(value), mask.as_ref()].into_iter().flatten().collect::<Vec<_>>(),
        ),
        Literal::YearToMonth(value) => call("TO_YMINTERVAL", &[value]),
        Literal::DayToSecond(value) => call("TO_DSINTERVAL", &[value]),
        Literal::Raw(hex) => call("HEXTORAW", &[hex]),
        Literal::EmptyClob => "EMPTY_CLOB()".to_owned(),
        Literal::EmptyBlob => "EMPTY_BLOB()".to_owned(),
        Literal::Json(value) => format!("/* JSON */ {}", written(value)),
        Literal::Other(text) => text.clone().into_owned(),
    }
}

fn condition(statement: &RowStatement<'_>, alias: &str) -> String {
    let columns = statement.before.iter().map(|(name, value)| match value {
        Literal::Null => format!("{alias}{} IS NULL", named(name)),
        value => format!("{alias}{} = {}", named(name), written(value)),
    });
    let row_id = statement.row_id.iter().map(|row_id| format!("{alias}ROWID = '{row_id}'"));
    let terms: Vec<_> = columns.chain(row_id).collect();
    if terms.is_empty() { String::new() } else { format!(" where {}", terms.join(" and ")) }
}

fn sql(statement: &RowStatement<'_>, alias: bool) -> String {
    let table = format!("{}.{}", named(&statement.owner), named(&statement.table));
    let (table_alias, alias) = if alias { (" a", "a.") } else { ("", "") };
    let after = &statement.after;
    match statement.verb {
        Verb::Insert => {
            let names: Vec<_> = after.iter().map(|(name, _)| named(name)).collect();
            let values: Vec<_> = after.iter().map(|(_, value)| written(value)).collect();
            format!("insert into {table}({}) values ({})", names.join(","), values.join(","))
        }
        Verb::Update => {
            let set = after
                .iter()
                .map(|(name, value)| format!("{alias}{} = {}", named(name), written(value)));
            let set: Vec<_> = set.collect();
            let condition = condition(statement, alias);
            format!("update {table}{table_alias} set {}{condition}", set.join(", "))
        }
        Verb::Delete => {
            let condition = condition(statement, alias);
            let table_alias = if condition.is_empty() { "" } else { table_alias };
            format!("delete from {table}{table_alias}{condition}")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(statement in statement(), alias: bool, delimiter: bool) {
        let sql = format!("{}{}", sql(&statement, alias), if delimiter { ";" } else { "" });
        for quoting in [Quoting::Strict, Quoting::Relaxed] {
            let read = read_row(&sql, quoting);
            prop_assert_eq!(read.as_ref(), Ok(&statement), "{}", sql);
        }
    }

    /// Of an INSERT: the beginning of another may be a whole statement of another row.
    #[test]
    fn a_statement_without_its_end_is_refused(
        owner in name(),
        columns in columns(1),
        cut: prop::sample::Index,
    ) {
        let (verb, owner, table) = (Verb::Insert, own(owner), own("T".to_owned()));
        let statement =
            RowStatement { verb, owner, table, before: vec![], after: columns, row_id: None };
        let sql = sql(&statement, false);
        let ends: Vec<_> = (0..sql.len()).filter(|end| sql.is_char_boundary(*end)).collect();
        prop_assert!(read_row(&sql[..*cut.get(&ends)], Quoting::Strict).is_err());
    }

    #[test]
    fn pieces_that_are_joined_are_one(pieces in prop::collection::vec(text(), 1..5)) {
        let join = |piece: fn(&str) -> String| {
            let pieces: Vec<_> = pieces.iter().map(|text| piece(text)).collect();
            format!("insert into \"O\".\"T\"(\"C\") values ({})", pieces.join(" || "))
        };
        let whole = pieces.concat();
        let (plain, national) = (join(quoted), join(unistr));
        let read = |sql| read_row(sql, Quoting::Strict).map(|read| read.after[0].1.clone());
        prop_assert_eq!(read(&plain), Ok(Literal::Text(whole.as_str().into())));
        prop_assert_eq!(read(&national), Ok(Literal::National(whole.as_str().into())));
    }

    /// Quotes that stand alone are taken, as long as no value imitates what LogMiner writes behind one.
    #[test]
    fn relaxed_reading_takes_values_as_they_stand(
        values in prop::collection::vec("[a-z.;= ][a-z.;=, ()]{0,3}('[a-z.;= ]{1,3}){1,3}", 1..4),
    ) {
        let names: Vec<_> = (0..values.len()).map(|number| format!("\"C{number}\"")).collect();
        let literals: Vec<_> = values.iter().map(|value| format!("'{value}'")).collect();
        let sql = format!("insert into \"O\".\"T\"({}) values ({})", names.join(","), literals.join(","));
        prop_assert!(read_row(&sql, Quoting::Strict).is_err());
        let read = read_row(&sql, Quoting::Relaxed).unwrap();
        let read: Vec<_> = read.after.into_iter().map(|(_, value)| value).collect();
        let expected: Vec<_> = values.iter().map(|value| Literal::Text(value.as_str().into())).collect();
        prop_assert_eq!(read, expected, "{}", sql);
    }
}
