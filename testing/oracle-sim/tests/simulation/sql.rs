//! Reads the statements of the rows, and refuses whatever else there is.

use std::collections::BTreeMap;

/// Values by column.
pub(crate) type Values = BTreeMap<String, Option<String>>;

/// What a statement says.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    /// Values that an INSERT or the SET of an UPDATE gives.
    pub(crate) given: Values,
    /// Values in the WHERE.
    pub(crate) named: Values,
}

struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn eat(&mut self, word: &str) -> bool {
        let rest = self.0.strip_prefix(word);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn want(&mut self, word: &str) {
        assert!(self.eat(word), "{word:?} is wanted at {:?}", self.0);
    }

    /// Text between two quotes of a kind, doubled ones inside.
    fn quoted(&mut self, quote: char) -> String {
        self.want(&quote.to_string());
        let mut text = String::new();
        loop {
            let end = self.0.find(quote).expect("a closing quote");
            text.push_str(&self.0[..end]);
            self.0 = &self.0[end + 1..];
            if !self.eat(&quote.to_string()) {
                return text;
            }
            text.push(quote);
        }
    }

    fn value(&mut self) -> Option<String> {
        if self.eat("NULL") {
            return None;
        }
        if self.0.starts_with('\'') {
            return Some(self.quoted('\''));
        }
        let (function, rest): (&'a str, _) = self.0.split_once('(').expect("a function");
        self.0 = rest;
        if self.eat(")") {
            assert!(matches!(function, "EMPTY_CLOB" | "EMPTY_BLOB"), "{function}");
            return Some(String::new());
        }
        let text = self.quoted('\'');
        if function == "TO_DATE" {
            self.want(", 'YYYY-MM-DD HH24:MI:SS'");
        }
        self.want(")");
        Some(if function == "UNISTR" { national(&text) } else { text })
    }

    fn table(&mut self) -> String {
        let owner = self.quoted('"');
        self.want(".");
        format!("{owner}.{}", self.quoted('"'))
    }

    fn insert(&mut self) -> Values {
        let mut columns = Vec::new();
        self.want("(");
        while !self.eat(")") {
            columns.push(self.quoted('"'));
            self.eat(",");
        }
        self.want(" values (");
        let mut given = Values::new();
        for column in columns {
            given.insert(column, self.value());
            self.eat(",");
        }
        self.want(")");
        given
    }

    fn terms(&mut self, between: &str) -> Values {
        let mut values = Values::new();
        loop {
            let column = if self.eat("ROWID") { "ROWID".to_owned() } else { self.quoted('"') };
            let value = if self.eat(" IS NULL") {
                None
            } else {
                self.want(" = ");
                self.value()
            };
            assert!(values.insert(column, value).is_none(), "a column twice");
            if !self.eat(between) {
                return values;
            }
        }
    }
}

/// Text with UTF-16 code units in it.
fn national(text: &str) -> String {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter != '\\' {
            units.extend(letter.encode_utf16(&mut [0; 2]).iter());
        } else if let Some(after) = rest.strip_prefix('\\') {
            rest = after;
            units.push(u16::from(b'\\'));
        } else {
            units.push(u16::from_str_radix(&rest[..4], 16).unwrap());
            rest = &rest[4..];
        }
    }
    String::from_utf16(&units).unwrap()
}

/// What a block does to a large object.
#[derive(Debug)]
pub(crate) enum Edit {
    Write { offset: usize, data: String },
    Trim(usize),
    Erase,
}

/// Reads a block: the column, its row, and what is done.
pub(crate) fn parse_block(sql: &str) -> (String, Values, Edit) {
    let (head, rest) = sql.split_once("BEGIN\n select ").expect("a block");
    assert!(head.starts_with("DECLARE \n"));
    let mut text = Text(rest);
    let column = text.quoted('"');
    text.0 = &text.0[text.0.find(" from ").unwrap() + 6..];
    text.table();
    text.want(" where ");
    let row = text.terms(" and ");
    text.want(" for update;\n\n");
    let edit = text.edit();
    text.want("END;\n\n");
    assert_eq!(text.0, "");
    (column, row, edit)
}

impl Text<'_> {
    fn edit(&mut self) -> Edit {
        if self.eat("  dbms_lob.trim(") {
            let (_, length) = self.0.split_once(", ").unwrap();
            let (length, rest) = length.split_once(");\n").unwrap();
            self.0 = rest;
            return Edit::Trim(length.parse().unwrap());
        }
        if self.eat(" e_len := ") {
            self.0 = &self.0[self.0.find(");\n").unwrap() + 3..];
            return Edit::Erase;
        }
        self.want(" buf_");
        self.0 = &self.0[self.0.find(" := ").unwrap() + 4..];
        let is_raw = self.0.starts_with("HEXTORAW");
        let data = self.value().unwrap();
        self.0 = &self.0[self.0.find(", ").unwrap() + 2..];
        let (amount, rest) = self.0.split_once(", ").unwrap();
        let (offset, rest) = rest.split_once(", buf_").unwrap();
        self.0 = &rest[rest.find(");\n").unwrap() + 3..];
        let length = if is_raw { data.len() / 2 } else { data.chars().count() };
        assert_eq!(amount.parse::<usize>().unwrap(), length);
        Edit::Write { offset: offset.parse().unwrap(), data }
    }
}

/// Reads a statement whole; gives its table, too.
pub(crate) fn parse(sql: &str) -> (String, Statement) {
    let mut text = Text(sql);
    let mut read = Statement::default();
    let table;
    if text.eat("insert into ") {
        table = text.table();
        read.given = text.insert();
    } else if text.eat("update ") {
        table = text.table();
        text.want(" set ");
        read.given = text.terms(", ");
    } else {
        text.want("delete from ");
        table = text.table();
    }
    if text.eat(" where ") {
        read.named = text.terms(" and ");
    }
    assert_eq!(text.0, "", "after the end of {sql:?}");
    (table, read)
}
