//! Whatever the values, what is written is JSON and reads back.

use proptest::prelude::*;

use super::*;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A row of texts and numbers, each of which may be NULL.
type Row = (u32, Option<String>, Option<i64>);

fn row() -> impl Strategy<Value = Row> {
    (any::<u32>(), prop::option::of(any::<String>()), prop::option::of(any::<i64>()))
}

fn literals((id, name, pay): &Row) -> [(&'static str, Option<String>); 3] {
    [
        ("ID", Some(quoted(&(id % 100_000).to_string()))),
        ("NAME", name.as_deref().map(quoted)),
        // Two digits behind the point, as LogMiner writes them: without a zero in front.
        ("PAY", pay.map(|pay| quoted(&format!("{pay}.25").replace("0.25", ".25")))),
    ]
}

fn condition(row: &Row) -> String {
    let term = |(name, value): (&str, Option<String>)| match value {
        Some(value) => format!("\"{name}\" = {value}"),
        None => format!("\"{name}\" IS NULL"),
    };
    literals(row).map(term).join(" and ")
}

fn image((id, name, pay): &Row) -> Value {
    serde_json::json!({
        "ID": id % 100_000,
        "NAME": name,
        "PAY": pay.map(|pay| {
            // What the text above is worth, spelled as a decimal.
            let text = format!("{pay}.25").replace("0.25", ".25");
            match text.strip_prefix("-.").map(|rest| format!("-0.{rest}")) {
                Some(text) => text,
                None if text.starts_with('.') => format!("0{text}"),
                None => text,
            }
        }),
    })
}

const COLUMNS: [&str; 3] = ["ID", "NAME", "PAY"];

/// A change of each kind, by number.
fn kind(number: u8, at: u32) -> Change {
    let (verb, sql) = match number {
        0 => (Verb::Insert, r#"insert into "HR"."EMP"("ID") values ('1')"#),
        1 => (Verb::Update, r#"update "HR"."EMP" set "NAME" = 'b' where "ID" = '1'"#),
        2 => (Verb::Update, r#"update "HR"."EMP" set "ID" = '2' where "ID" = '1'"#),
        _ => (Verb::Delete, r#"delete from "HR"."EMP" where "ID" = '2'"#),
    };
    change(verb, at, sql, vec![])
}

proptest! {
    #[test]
    fn any_row_is_read_back(before in row(), after in row()) {
        let set = |(name, value): (&str, Option<String>)| {
            format!("\"{name}\" = {}", value.unwrap_or_else(|| "NULL".to_owned()))
        };
        let set = literals(&after).map(set).join(", ");
        let sql = format!("update \"HR\".\"EMP\" set {set} where {}", condition(&before));
        let updated = record(&COLUMNS, Verb::Update, &sql);
        prop_assert_eq!(&value(&updated)["before"], &image(&before));
        prop_assert_eq!(&value(&updated)["after"], &image(&after));
        prop_assert_eq!(json(&updated.key), serde_json::json!({"ID": after.0 % 100_000}));
        let sql = format!("delete from \"HR\".\"EMP\" where {}", condition(&before));
        let deleted = record(&COLUMNS, Verb::Delete, &sql);
        prop_assert_eq!(&value(&deleted)["before"], &image(&before));
    }

    /// Wherever a run ends, whatever of it was stored, nothing is lost, and what is repeated is what was
    /// not safe: the parts of a change together.
    #[test]
    fn exactly_the_rest_comes_again(
        kinds in prop::collection::vec(0..4_u8, 1..7),
        is_trail in any::<bool>(),
        has_tombstones in any::<bool>(),
        records in 1..4_u64,
    ) {
        let layouts = sample::layouts(vec![sample::version(&COLUMNS)]);
        let run = |skip| {
            let output = if is_trail { trail() } else { per_table() };
            let split = SplitLimits { records, bytes: u64::MAX };
            let output = Output { has_tombstones, split, ..output };
            let changes = kinds.iter().zip(1..).map(|(kind_of, at)| kind(*kind_of, at)).collect();
            let (mut records, end) = delivered(output, &layouts, committed(changes), skip);
            end.unwrap();
            records.retain(|record| record.hw.is_some());
            records
        };
        let ids = |records: &[SourceRecord]| -> Vec<String> {
            records.iter().map(|it| it.hw.as_ref().unwrap().record_id().to_string()).collect()
        };
        let all = run(0);
        let index = |record: &SourceRecord| record.hw.as_ref().unwrap().index;
        for written in 1..=all.len() {
            let safe = u64::try_from(safe(&all[written - 1])).unwrap();
            let covered = all.iter().filter(|record| index(record) < safe).count();
            prop_assert!(covered <= written, "{covered} records count as safe, {written} are");
            prop_assert!(written - covered <= 2, "more than the parts of a change come again");
            prop_assert_eq!(ids(&run(safe)), ids(&all[covered..]));
        }
        prop_assert_eq!(safe(all.last().unwrap()), i64::try_from(kinds.len()).unwrap());
        let places: Vec<_> = all.iter().filter_map(|record| record.hw.as_ref()).collect();
        let places: Vec<_> = places.iter().map(|hw| (&hw.position, hw.index, hw.part)).collect();
        prop_assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }

    /// Names are the user's own, too.
    #[test]
    fn any_name_is_read_back(names in prop::collection::hash_set("[^\"\u{0}]{1,12}", 2..5)) {
        let names: Vec<String> = names.into_iter().collect();
        let mut version = sample::version(&["NAME", "NICK"]);
        let name = version.columns[0].clone();
        version.columns = names.iter().map(|own| crate::ColumnLayout { name: own.clone(), ..name.clone() }).collect();
        version.key.columns = vec![names[0].clone()];
        let columns: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let values: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let sql = format!("insert into \"HR\".\"EMP\"({}) values ({})", columns.join(","), values.join(","));
        let inserted = records(trail(), version, vec![change(Verb::Insert, 0x20, &sql, vec![])]).remove(0);
        let after = value(&inserted)["after"].clone();
        let members: Vec<(&String, &str)> =
            after.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
        let expected: Vec<(&String, &str)> = names.iter().map(|name| (name, name.as_str())).collect();
        prop_assert_eq!(members, expected);
    }

    /// No text makes it panic, and none is taken for a row in part.
    #[test]
    fn no_text_makes_it_panic(sql in ".{0,60}", locator in any::<bool>()) {
        let mut change = change(Verb::Update, 0x20, &sql, vec![]);
        if locator {
            change.image = crate::Image::Locator;
        }
        let layouts = sample::layouts(vec![sample::version(&COLUMNS)]);
        let (records, end) = delivered(per_table(), &layouts, committed(vec![change]), 0);
        prop_assert!(records.is_empty() == end.is_err());
    }
}
