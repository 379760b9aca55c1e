//! A second reader of statements, slow and plain: it goes through the text letter by letter, as the grammar
//! below says, and shares nothing with the first. Both must accept the same texts and read the same of them.
//!
//! ```text
//! statement  = ( insert | update | delete ) [ ";" ]
//! insert     = INSERT INTO table "(" name { "," name } ")" VALUES "(" literal { "," literal } ")"
//! update     = UPDATE table [ alias ] SET column "=" literal { "," column "=" literal } [ where ]
//! delete     = DELETE FROM table [ [ alias ] where ]
//! table      = name "." name
//! where      = WHERE term { AND term }
//! term       = column ( "=" literal | IS NULL ) | [ alias "." ] ROWID "=" string
//! column     = [ alias "." ] name
//! literal    = [ "/*" JSON "*/" ] value
//! value      = NULL | Unsupported Type | texts | HEXTORAW "(" hex ")" { "||" HEXTORAW "(" hex ")" }
//!            | TO_DATE "(" string "," string ")" | TO_TIMESTAMP[_TZ] "(" string [ "," string ] ")"
//!            | TO_YMINTERVAL "(" string ")" | TO_DSINTERVAL "(" string ")" | EMPTY_CLOB "(" ")"
//!            | EMPTY_BLOB "(" ")" | constructor
//! texts      = text { "||" text }
//! text       = string | CHR "(" ascii ")" | UNISTR "(" string ")"
//! constructor = ( XMLTYPE | part "." part { "." part } ) "(" anything in balance ")"
//! ```

use highwater_oracle::Verb;
use highwater_oracle::statement::{Literal, Quoting, RowStatement, read_row};
use proptest::prelude::*;

/// A value as both readers can say it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    Null,
    Unsupported,
    Text(String),
    National(String),
    Call(&'static str, Vec<String>),
    Json(Box<Value>),
    Constructor(String),
}

type Columns = Vec<(String, Value)>;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    verb: Verb,
    owner: String,
    table: String,
    before: Columns,
    after: Columns,
    row_id: Option<String>,
}

struct Slow {
    letters: Vec<char>,
    at: usize,
}

/// What does not fit. The place is not compared.
type Read<T> = Option<T>;

impl Slow {
    fn next(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.next().is_some_and(|letter| " \n\r\t".contains(letter)) {
            self.at += 1;
        }
    }

    fn is(&mut self, mark: &str) -> bool {
        self.blanks();
        self.letters[self.at..].starts_with(&mark.chars().collect::<Vec<_>>())
    }

    fn may(&mut self, mark: &str) -> bool {
        let is = self.is(mark);
        if is {
            self.at += mark.chars().count();
        }
        is
    }

    fn must(&mut self, mark: &str) -> Read<()> {
        self.may(mark).then_some(())
    }

    fn word(&mut self) -> String {
        self.blanks();
        let mut word = String::new();
        while let Some(letter) = self.next().filter(|letter| is_of_word(*letter)) {
            word.push(letter);
            self.at += 1;
        }
        word
    }

    fn may_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let is = self.word().eq_ignore_ascii_case(word);
        if !is {
            self.at = before;
        }
        is
    }

    fn must_word(&mut self, word: &str) -> Read<()> {
        self.may_word(word).then_some(())
    }

    fn between(&mut self, quote: char) -> Read<String> {
        self.must(&quote.to_string())?;
        let mut text = String::new();
        loop {
            let letter = self.next()?;
            self.at += 1;
            if letter != quote {
                text.push(letter);
            } else if self.next() == Some(quote) {
                text.push(quote);
                self.at += 1;
            } else {
                return Some(text);
            }
        }
    }

    fn name(&mut self) -> Read<String> {
        self.between('"').filter(|name| !name.is_empty())
    }

    fn string(&mut self) -> Read<String> {
        self.between('\'')
    }

    fn statement(&mut self) -> Read<Row> {
        let row = match self.word().to_ascii_uppercase().as_str() {
            "INSERT" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            _ => None,
        }?;
        self.may(";");
        self.blanks();
        self.next().is_none().then_some(row)
    }

    fn table(&mut self) -> Read<(String, String)> {
        let owner = self.name()?;
        self.must(".")?;
        Some((owner, self.name()?))
    }

    fn insert(&mut self) -> Read<Row> {
        self.must_word("INTO")?;
        let (owner, table) = self.table()?;
        self.must("(")?;
        let mut names = vec![self.name()?];
        while self.may(",") {
            names.push(self.name()?);
        }
        self.must(")")?;
        self.must_word("VALUES")?;
        self.must("(")?;
        let mut values = vec![self.literal()?];
        while self.may(",") {
            values.push(self.literal()?);
        }
        self.must(")")?;
        let fits = names.len() == values.len();
        let after = names.into_iter().zip(values).collect();
        fits.then_some(Row {
            verb: Verb::Insert,
            owner,
            table,
            before: vec![],
            after,
            row_id: None,
        })
    }

    fn update(&mut self) -> Read<Row> {
        let (owner, table) = self.table()?;
        let alias = if self.may_word("SET") {
            String::new()
        } else {
            let alias = self.word();
            self.must_word("SET")?;
            alias
        };
        let mut after = vec![self.assignment(&alias)?];
        while self.may(",") {
            after.push(self.assignment(&alias)?);
        }
        let (before, row_id) =
            if self.may_word("WHERE") { self.terms(&alias)? } else { (vec![], None) };
        Some(Row { verb: Verb::Update, owner, table, before, after, row_id })
    }

    fn delete(&mut self) -> Read<Row> {
        self.must_word("FROM")?;
        let (owner, table) = self.table()?;
        let (before, row_id) = if self.may_word("WHERE") {
            self.terms("")?
        } else {
            let alias = self.word();
            if alias.is_empty() {
                (vec![], None)
            } else {
                self.must_word("WHERE")?;
                self.terms(&alias)?
            }
        };
        Some(Row { verb: Verb::Delete, owner, table, before, after: vec![], row_id })
    }

    fn unalias(&mut self, alias: &str) -> Read<()> {
        if !alias.is_empty() && self.may_word(alias) { self.must(".") } else { Some(()) }
    }

    fn assignment(&mut self, alias: &str) -> Read<(String, Value)> {
        self.unalias(alias)?;
        let name = self.name()?;
        self.must("=")?;
        Some((name, self.literal()?))
    }

    fn terms(&mut self, alias: &str) -> Read<(Columns, Option<String>)> {
        let (mut columns, mut row_id) = (vec![], None);
        loop {
            self.unalias(alias)?;
            if self.may_word("ROWID") {
                self.must("=")?;
                if row_id.replace(self.string()?).is_some() {
                    return None;
                }
            } else {
                let name = self.name()?;
                let value = if self.may("=") {
                    self.literal()?
                } else {
                    self.must_word("IS")?;
                    self.must_word("NULL")?;
                    Value::Null
                };
                columns.push((name, value));
            }
            if !self.may_word("AND") {
                return Some((columns, row_id));
            }
        }
    }

    fn literal(&mut self) -> Read<Value> {
        if self.may("/*") {
            self.must_word("JSON")?;
            self.must("*/")?;
            return Some(Value::Json(Box::new(self.value()?)));
        }
        self.value()
    }

    fn value(&mut self) -> Read<Value> {
        let before = self.at;
        if self.is("'") {
            return self.texts();
        }
        match self.word().to_ascii_uppercase().as_str() {
            "NULL" => Some(Value::Null),
            "UNSUPPORTED" => {
                self.must_word("TYPE")?;
                Some(Value::Unsupported)
            }
            "UNISTR" | "CHR" => {
                self.at = before;
                self.texts()
            }
            "HEXTORAW" => self.bytes(),
            "TO_DATE" => self.strings(2, 2).map(|strings| Value::Call("TO_DATE", strings)),
            "TO_TIMESTAMP" => {
                self.strings(1, 2).map(|strings| Value::Call("TO_TIMESTAMP", strings))
            }
            "TO_TIMESTAMP_TZ" => {
                self.strings(1, 2).map(|strings| Value::Call("TO_TIMESTAMP_TZ", strings))
            }
            "TO_YMINTERVAL" => {
                self.strings(1, 1).map(|strings| Value::Call("TO_YMINTERVAL", strings))
            }
            "TO_DSINTERVAL" => {
                self.strings(1, 1).map(|strings| Value::Call("TO_DSINTERVAL", strings))
            }
            "EMPTY_CLOB" => self.strings(0, 0).map(|strings| Value::Call("EMPTY_CLOB", strings)),
            "EMPTY_BLOB" => self.strings(0, 0).map(|strings| Value::Call("EMPTY_BLOB", strings)),
            _ => {
                self.at = before;
                self.constructor()
            }
        }
    }

    fn strings(&mut self, least: usize, most: usize) -> Read<Vec<String>> {
        self.must("(")?;
        let mut strings = vec![];
        while !self.is(")") {
            if !strings.is_empty() {
                self.must(",")?;
            }
            strings.push(self.string()?);
        }
        self.must(")")?;
        (least..=most).contains(&strings.len()).then_some(strings)
    }

    fn bytes(&mut self) -> Read<Value> {
        let mut hex = self.hexadecimal()?;
        while self.may("||") {
            self.must_word("HEXTORAW")?;
            hex.push_str(&self.hexadecimal()?);
        }
        Some(Value::Call("HEXTORAW", vec![hex]))
    }

    fn hexadecimal(&mut self) -> Read<String> {
        let hex = self.strings(1, 1)?.remove(0);
        let is_hex = hex.chars().all(|letter| letter.is_ascii_hexdigit());
        (is_hex && hex.len() % 2 == 0).then_some(hex)
    }

    /// All pieces as UTF-16 code units, since a pair may be split between them.
    fn texts(&mut self) -> Read<Value> {
        let (mut units, mut is_national) = (vec![], false);
        loop {
            if self.is("'") {
                units.extend(self.string()?.encode_utf16().collect::<Vec<_>>());
            } else if self.may_word("CHR") {
                self.must("(")?;
                let digits = self.word();
                let is_number = digits.chars().all(|digit| digit.is_ascii_digit());
                let code = digits.parse::<u16>().ok().filter(|code| is_number && *code < 128)?;
                self.must(")")?;
                units.push(code);
            } else {
                self.must_word("UNISTR")?;
                units.extend(unescaped(&self.strings(1, 1)?[0])?);
                is_national = true;
            }
            if !self.may("||") {
                let text = String::from_utf16(&units).ok()?;
                return Some(if is_national { Value::National(text) } else { Value::Text(text) });
            }
        }
    }

    fn constructor(&mut self) -> Read<Value> {
        self.blanks();
        let from = self.at;
        let is_xml = self.may_word("XMLTYPE");
        self.at = from;
        let mut parts = 0;
        loop {
            if self.is("\"") {
                self.name()?;
            } else if self.word().is_empty() {
                return None;
            }
            parts += 1;
            if !self.may(".") {
                break;
            }
        }
        if parts == 1 && !is_xml {
            return None;
        }
        self.must("(")?;
        let mut open = 1;
        while open > 0 {
            if self.is("'") {
                self.string()?;
            } else if self.is("\"") {
                self.name()?;
            } else if self.may("(") {
                open += 1;
            } else if self.may(")") {
                open -= 1;
            } else {
                self.next()?;
                self.at += 1;
            }
        }
        Some(Value::Constructor(self.letters[from..self.at].iter().collect()))
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_$#".contains(letter) || !letter.is_ascii()
}

fn unescaped(text: &str) -> Read<Vec<u16>> {
    let letters: Vec<char> = text.chars().collect();
    let (mut units, mut at) = (vec![], 0);
    while at < letters.len() {
        if letters[at] != '\\' {
            units.extend(letters[at].encode_utf16(&mut [0; 2]).iter());
            at += 1;
        } else if letters.get(at + 1) == Some(&'\\') {
            units.push(u16::from(b'\\'));
            at += 2;
        } else {
            let digits: String = letters.get(at + 1..at + 5)?.iter().collect();
            digits.chars().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
            units.push(u16::from_str_radix(&digits, 16).ok()?);
            at += 5;
        }
    }
    Some(units)
}

fn slow(sql: &str) -> Read<Row> {
    Slow { letters: sql.chars().collect(), at: 0 }.statement()
}

fn value(literal: &Literal<'_>) -> Value {
    let call = |name, arguments: &[Option<&str>]| {
        let arguments = arguments.iter().flatten().map(|text| (*text).to_owned());
        Value::Call(name, arguments.collect())
    };
    match literal {
        Literal::Null => Value::Null,
        Literal::Unsupported => Value::Unsupported,
        Literal::Text(text) => Value::Text(text.clone().into_owned()),
        Literal::National(text) => Value::National(text.clone().into_owned()),
        Literal::Date { value, mask } => call("TO_DATE", &[Some(value), Some(mask)]),
        Literal::Timestamp { value, mask } => call("TO_TIMESTAMP", &[Some(value), mask.as_deref()]),
        Literal::TimestampTz { value, mask } => {
            call("TO_TIMESTAMP_TZ", &[Some(value), mask.as_deref()])
        }
        Literal::YearToMonth(text) => call("TO_YMINTERVAL", &[Some(text)]),
        Literal::DayToSecond(text) => call("TO_DSINTERVAL", &[Some(text)]),
        Literal::Raw(hex) => call("HEXTORAW", &[Some(hex)]),
        Literal::EmptyClob => call("EMPTY_CLOB", &[]),
        Literal::EmptyBlob => call("EMPTY_BLOB", &[]),
        Literal::Json(inner) => Value::Json(Box::new(value(inner))),
        Literal::Other(text) => Value::Constructor(text.clone().into_owned()),
    }
}

fn fast(sql: &str) -> Read<Row> {
    let columns = |columns: &[(std::borrow::Cow<'_, str>, Literal<'_>)]| {
        columns.iter().map(|(name, literal)| (name.clone().into_owned(), value(literal))).collect()
    };
    let RowStatement { verb, owner, table, before, after, row_id } =
        read_row(sql, Quoting::Strict).ok()?;
    Some(Row {
        verb,
        owner: owner.into_owned(),
        table: table.into_owned(),
        before: columns(&before),
        after: columns(&after),
        row_id: row_id.map(std::borrow::Cow::into_owned),
    })
}

/// Words and marks of the grammar, and what is near them.
const TOKENS: [&str; 62] = [
    "insert into ",
    "update ",
    "delete from ",
    " values (",
    " set ",
    " where ",
    " and ",
    " or ",
    "\"A\"",
    "\"B\"",
    "\"\"",
    "\"a\"\"b\"",
    "\"A\".\"T\"",
    "(\"C\",\"D\")",
    "(\"C\")",
    "(",
    ")",
    ",",
    ", ",
    ".",
    ";",
    " = ",
    "=",
    " IS NULL",
    "is",
    " null",
    "ROWID = 'AAA'",
    "rowid",
    " a ",
    "a.",
    "a.\"C\"",
    "'x'",
    "''",
    "'",
    "'it''s'",
    "'客户'",
    "NULL",
    "Unsupported Type",
    "Unsupported",
    "TO_DATE('1', 'Y')",
    "TO_DATE(",
    "TO_TIMESTAMP('1')",
    "TO_TIMESTAMP_TZ('1','F')",
    "TO_YMINTERVAL('+01-01')",
    "TO_DSINTERVAL('1')",
    "HEXTORAW('0aFf')",
    "HEXTORAW('0')",
    "HEXTORAW(",
    "EMPTY_CLOB()",
    "EMPTY_BLOB( )",
    "UNISTR('\\00E9')",
    "UNISTR('\\D83D')",
    "UNISTR('\\DEA2')",
    " || ",
    "||",
    "|",
    "CHR(10)",
    "CHR(",
    "/* JSON */ ",
    "MDSYS.SDO(NULL,(1),'x)')",
    "XMLTYPE('a')",
    "\n",
];

const WHOLE: [&str; 6] = [
    "insert into \"A\".\"T\"(\"C\",\"D\") values ('1',UNISTR('\\00E9') || UNISTR('b'))",
    "insert into \"A\".\"T\"(\"C\") values (/* JSON */ HEXTORAW('0a') || HEXTORAW('0b'));",
    "update \"A\".\"T\" a set a.\"C\" = 'it''s', a.\"D\" = NULL where a.\"C\" = TO_DATE('1', 'Y') and a.ROWID = 'AAA'",
    "update \"A\".\"T\" set \"C\" = MDSYS.SDO('1',X(2)) where \"D\" IS NULL and \"C\" = EMPTY_CLOB()",
    "delete from \"A\".\"T\" where \"C\" = '1' || CHR(10) || '2' and \"D\" = Unsupported Type;",
    "delete from \"A\".\"T\" where ROWID = 'AAA'",
];

fn tokens(number: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&TOKENS[..]), number)
        .prop_map(|tokens| tokens.concat())
}

fn cut_at(text: &str, at: prop::sample::Index) -> usize {
    let ends: Vec<_> = (0..=text.len()).filter(|end| text.is_char_boundary(*end)).collect();
    *at.get(&ends)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_are_read_alike(values in tokens(1..6)) {
        let sql = format!("insert into \"A\".\"T\"(\"C\") values ({values})");
        prop_assert_eq!(fast(&sql), slow(&sql), "{}", sql);
    }

    #[test]
    fn conditions_are_read_alike(terms in tokens(1..8), alias in prop::sample::select(&["", " a", " set"][..])) {
        let sql = format!("delete from \"A\".\"T\"{alias} where {terms}");
        prop_assert_eq!(fast(&sql), slow(&sql), "{}", sql);
    }

    #[test]
    fn mutated_statements_are_read_alike(
        whole in prop::sample::select(&WHOLE[..]),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), tokens(0..2)),
            1..3,
        ),
    ) {
        let mut sql = whole.to_owned();
        for (from, to, put) in changes {
            let (from, to) = (cut_at(&sql, from), cut_at(&sql, to));
            // Most changes insert or take a little; a few take a long piece.
            let to = if to > from && to - from < 12 { to } else { from };
            sql.replace_range(from..to, &put);
        }
        prop_assert_eq!(fast(&sql), slow(&sql), "{}", sql);
    }
}

/// Without it the two readers could agree by refusing everything.
#[test]
fn whole_statements_are_read_by_both() {
    for sql in WHOLE {
        assert!(slow(sql).is_some(), "{sql}");
        assert_eq!(fast(sql), slow(sql), "{sql}");
    }
}

/// Every beginning and every loss of one letter, of every case.
#[test]
fn beginnings_and_losses_of_every_case_are_read_alike() {
    for line in include_str!("cases/sql_redo.jsonl").lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let sql = case["sql"].as_str().unwrap();
        for (at, letter) in sql.char_indices() {
            let lost = [&sql[..at], &sql[at + letter.len_utf8()..]].concat();
            for sql in [&sql[..at], &lost] {
                assert_eq!(fast(sql), slow(sql), "{sql}");
            }
        }
    }
}

/// So that the text can be shown from there.
#[test]
fn a_place_is_before_a_letter() {
    for sql in WHOLE {
        for (at, _) in sql.char_indices() {
            let text = format!("{}é{}", &sql[..at], &sql[at..]);
            if let Err(fault) = read_row(&text, Quoting::Relaxed) {
                assert!(text.is_char_boundary(fault.at), "{text}: {fault}");
            }
        }
    }
}
