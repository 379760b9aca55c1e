//! `highwater explain CODE`: the documentation's page of an error code, from the binary itself.

use highwater_connector::nearest;
use include_dir::{Dir, include_dir};
use serde_json::json;

use crate::cli::Output;
use crate::failure::{Exit, Failure};
use crate::output;

/// One page a code.
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/reference/errors");

pub(crate) fn run(output: Output, code: &str) -> Result<(), Failure> {
    let (code, page) = page(code).ok_or_else(|| unknown(code))?;
    Ok(output::result(output, &json!({ "code": code, "page": page }), page.trim_end())?)
}

/// Names of all codes that have a page.
fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.files().filter_map(|file| file.path().file_stem()?.to_str())
}

/// A code as it is written, and its page. No two codes differ by case alone.
fn page(code: &str) -> Option<(&'static str, &'static str)> {
    let name = codes().find(|name| name.eq_ignore_ascii_case(code))?;
    let file = PAGES.get_file(format!("{name}.md"))?;
    Some((name, file.contents_utf8()?))
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(
        Exit::NotFound,
        "CODE_UNKNOWN",
        format!("{code:?} is no code of this release"),
    )
    .kept("nothing was changed");
    match nearest(code, codes()) {
        Some(meant) => failure.remedy(format!("highwater explain {meant}")),
        None => failure
            .remedy("give the word behind `error` in what a command printed, such as UNREACHABLE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_page_however_it_is_written() {
        for code in ["UNREACHABLE", "unreachable", "trail_missing"] {
            let (name, page) = page(code).unwrap();
            assert!(page.starts_with(&format!("# {name}")), "{page}");
        }
    }

    #[test]
    fn an_unknown_code_leads_to_the_nearest() {
        let failure = unknown("UNREACHBLE");
        assert_eq!(
            (failure.exit, failure.remedy.as_str()),
            (Exit::NotFound, "highwater explain UNREACHABLE")
        );
    }
}
