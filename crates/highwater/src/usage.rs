//! A command line that cannot be read, in the parts and the form of every other failure.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::cli::Output;
use crate::failure::Failure;

/// Prints what clap has to say: help and version as they are, an error as ours.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let output = output(&arguments);
    let shows_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || (shows_help && output == Output::Text) {
        // When nobody reads it, nothing is lost.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    failure(&error.render().to_string(), &arguments).report(output)
}

/// The form that was asked for, as far as it can be told.
fn output(arguments: &[String]) -> Output {
    let pairs = arguments.iter().zip(arguments.iter().skip(1));
    let json = arguments.iter().any(|argument| argument == "--output=json")
        || pairs.into_iter().any(|(flag, value)| flag == "--output" && value == "json");
    if json { Output::Json } else { Output::Text }
}

/// Takes clap's text apart: what is wrong with its hints, then how the command is used; where it
/// does not say that, the command is the words that were given.
fn failure(text: &str, arguments: &[String]) -> Failure {
    let words = arguments.iter().skip(1).map(String::as_str);
    let given = [&["highwater"][..], &words.collect::<Vec<_>>()].concat().join(" ");
    let (what, usage) = text.split_once("Usage: ").unwrap_or((text, &given));
    let lines = what.trim_start_matches("error: ").lines().map(str::trim);
    let what: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let command: Vec<&str> =
        usage.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
    Failure::usage(joined(&what)).remedy(format!("{} --help", command.join(" ")))
}

/// Lines as one sentence; what a line announces follows its colon.
fn joined(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let between = match text.chars().last() {
            None => "",
            Some(':') => " ",
            Some(_) => "; ",
        };
        text.push_str(between);
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn refused(arguments: &[&str]) -> Failure {
        let error = Cli::try_parse_from(arguments).unwrap_err();
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        failure(&error.render().to_string(), &arguments)
    }

    #[test]
    fn a_wrong_word_is_named_with_the_nearest_and_the_help() {
        let failure = refused(&["highwater", "connector", "lst"]);
        assert!(
            failure.what.contains("'lst'") && failure.what.contains("'list'"),
            "{}",
            failure.what
        );
        assert_eq!(failure.remedy, "highwater connector --help");
    }

    #[test]
    fn what_is_missing_is_named() {
        let failure = refused(&["highwater", "connector", "show"]);
        assert_eq!(failure.what, "the following required arguments were not provided: <NAME>");
        assert_eq!(failure.remedy, "highwater connector show --help");
    }

    #[test]
    fn a_value_that_does_not_fit_leads_to_the_help_of_its_command() {
        let failure = refused(&["/bin/highwater", "user", "add", "--role", "king", "ann"]);
        assert!(failure.what.ends_with("[possible values: view, operate, admin]"));
        assert_eq!(failure.remedy, "highwater user add --help");
    }

    #[test]
    fn json_is_recognised_however_it_is_asked_for() {
        let asked = |words: &[&str]| {
            output(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert!(asked(&["highwater", "--output", "json", "x"]) == Output::Json);
        assert!(asked(&["highwater", "x", "--output=json"]) == Output::Json);
        assert!(asked(&["highwater", "x", "json"]) == Output::Text);
    }
}
