//! The template of topic names, such as `${prefix}.${schema}.${table}`.

use crate::TableName;

/// What a template is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    Pdb,
    Schema,
    Table,
}

/// A template of topic names, read once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(Vec<Piece>);

impl Template {
    /// Reads `cdc.topic.template`; without one, names are made of prefix, pluggable database (where the
    /// database `has_containers`), schema and table.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn new(
        template: Option<&str>,
        prefix: &str,
        database: &str,
        has_containers: bool,
    ) -> Result<Self, String> {
        let default = if has_containers {
            "${prefix}.${pdb}.${schema}.${table}"
        } else {
            "${prefix}.${schema}.${table}"
        };
        let mut pieces = Vec::new();
        let mut rest = template.unwrap_or(default);
        while let Some((text, variable)) = rest.split_once("${") {
            pieces.push(Piece::Text(text.to_owned()));
            let end = variable.split_once('}');
            let (name, behind) =
                end.ok_or_else(|| format!("${{{variable} has no closing brace"))?;
            pieces.push(match name {
                "prefix" => Piece::Text(prefix.to_owned()),
                "database" => Piece::Text(database.to_owned()),
                "pdb" => Piece::Pdb,
                "schema" => Piece::Schema,
                "table" => Piece::Table,
                other => return Err(unknown(other)),
            });
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The name of a table's topic, before characters are replaced that Kafka does not take.
    pub(crate) fn fill(&self, table: &TableName) -> String {
        let piece = |piece: &'_ Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Pdb => table.pdb.clone().unwrap_or_default(),
            Piece::Schema => table.owner.clone(),
            Piece::Table => table.table.clone(),
        };
        self.0.iter().map(piece).collect()
    }
}

fn unknown(name: &str) -> String {
    format!("${{{name}}} is not known; there are prefix, pdb, schema, table and database")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: Option<&str>, pdb: Option<&str>) -> String {
        let table = TableName {
            pdb: pdb.map(str::to_owned),
            owner: "HR".to_owned(),
            table: "EMP".to_owned(),
        };
        Template::new(template, "shop", "ORCL", pdb.is_some()).unwrap().fill(&table)
    }

    #[test]
    fn a_template_is_filled() {
        assert_eq!(filled(None, None), "shop.HR.EMP");
        assert_eq!(filled(None, Some("PDB1")), "shop.PDB1.HR.EMP");
        let all = "x-${database}/${pdb}/${schema}${table}-${prefix}$";
        assert_eq!(filled(Some(all), Some("P")), "x-ORCL/P/HREMP-shop$");
        assert_eq!(filled(Some("all"), None), "all");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (template, part) in [("${owner}", "${owner} is not known"), ("a${table", "no closing")]
        {
            let error = Template::new(Some(template), "p", "d", false).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
