//! Infers a statement from the difference between two descriptions of a table.
//!
//! The stream tells the shape before a row, not the statement behind it; so what stands here is
//! one way to get from the one shape to the other, marked as inferred.

use highwater_connector::{Column, TableDescription};

use crate::name::{TableName, quoted};

/// The statement that turns `before` into `after`.
pub(crate) fn inferred(
    table: &TableName,
    before: &TableDescription,
    after: &TableDescription,
) -> String {
    let actions = actions(&before.columns, &after.columns);
    let statements: Vec<String> =
        actions.into_iter().map(|action| format!("ALTER TABLE {} {action}", table.sql())).collect();
    if statements.is_empty() {
        // Only the order of columns differs: the table was made anew.
        return format!("-- the columns of {} have another order", table.sql());
    }
    statements.join("; ")
}

fn actions(before: &[Column], after: &[Column]) -> Vec<String> {
    let mut actions = Vec::new();
    let renamed = renamed(before, after);
    let was = |column: &Column| match renamed {
        Some((old, new)) if new == column.name => old.to_owned(),
        _ => column.name.clone(),
    };
    if let Some((old, new)) = renamed {
        actions.push(format!("RENAME COLUMN {} TO {}", quoted(old), quoted(new)));
    }
    let dropped = before.iter().filter(|old| !after.iter().any(|new| was(new) == old.name));
    actions.extend(dropped.map(|column| format!("DROP COLUMN {}", quoted(&column.name))));
    for new in after {
        let name = quoted(&new.name);
        match before.iter().find(|old| old.name == was(new)) {
            None => actions.push(format!("ADD COLUMN {name} {}", new.source_type)),
            Some(old) if old.type_id != new.type_id => {
                actions.push(format!("ALTER COLUMN {name} TYPE {}", new.source_type));
            }
            Some(_) => {}
        }
    }
    actions.extend(rekeyed(before, after, was));
    actions
}

/// A column that changed nothing but its name: one gone, one new, same place, same type.
fn renamed<'a>(before: &'a [Column], after: &'a [Column]) -> Option<(&'a str, &'a str)> {
    if before.len() != after.len() {
        return None;
    }
    let mut pairs = before.iter().zip(after).filter(|(old, new)| old.name != new.name);
    let (old, new) = pairs.next()?;
    let single = pairs.next().is_none() && old.type_id == new.type_id;
    single.then_some((old.name.as_str(), new.name.as_str()))
}

fn rekeyed(before: &[Column], after: &[Column], was: impl Fn(&Column) -> String) -> Option<String> {
    let old: Vec<&str> =
        before.iter().filter(|column| column.key).map(|column| column.name.as_str()).collect();
    let new: Vec<&Column> = after.iter().filter(|column| column.key).collect();
    if old.iter().copied().eq(new.iter().map(|column| was(column))) || new.is_empty() {
        return None;
    }
    let names: Vec<String> = new.iter().map(|column| quoted(&column.name)).collect();
    Some(format!("ADD PRIMARY KEY ({})", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(columns: &str) -> TableDescription {
        let column = |text: &str| {
            let mut parts = text.split(' ');
            let name = parts.next().unwrap().to_owned();
            let source_type = parts.next().unwrap().to_owned();
            let type_id = source_type.clone();
            let key = parts.next() == Some("key");
            Column { name, source_type, json_type: String::new(), nullable: true, key, type_id }
        };
        TableDescription {
            table: "public.t".to_owned(),
            version: 1,
            from_position: String::new(),
            from_index: 0,
            columns: columns.split(',').map(column).collect(),
            notes: None,
        }
    }

    fn between(before: &str, after: &str) -> String {
        let statement =
            inferred(&TableName::new("s", "t"), &description(before), &description(after));
        statement.replace("ALTER TABLE \"s\".\"t\" ", "")
    }

    #[test]
    fn each_kind_of_difference_has_its_statement() {
        assert_eq!(between("id int", "id int,b text"), "ADD COLUMN \"b\" text");
        assert_eq!(between("id int,b text", "id int"), "DROP COLUMN \"b\"");
        assert_eq!(between("id int,b text", "id int,c text"), "RENAME COLUMN \"b\" TO \"c\"");
        assert_eq!(between("id int", "id bigint"), "ALTER COLUMN \"id\" TYPE bigint");
        assert_eq!(between("id int", "id int key"), "ADD PRIMARY KEY (\"id\")");
        assert_eq!(
            between("id int,b text", "id int,c date"),
            "DROP COLUMN \"b\"; ADD COLUMN \"c\" date"
        );
        assert_eq!(
            between("a int,b text", "b text,a int"),
            "-- the columns of \"s\".\"t\" have another order"
        );
    }
}
