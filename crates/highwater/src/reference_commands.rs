//! The reference of the command line: what `--help` shows, command by command; and that every command in
//! the documentation is one.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _, Parser as _};

use crate::cli::Cli;
use crate::reference::holds;

const HEAD: &str = "\
# Command line

What `--help` shows, command by command. `--url` and `--output` may stand anywhere. Errors go to standard
error in the five parts of [Error codes](errors.md), as JSON with `--output json`.

";

/// A command and those below it.
fn section(command: &Command, name: &str, page: &mut String) {
    let mut shown = command.clone().bin_name(name).disable_help_subcommand(true);
    // The page would change with the environment of the test.
    shown = shown.mut_args(|argument| argument.hide_env_values(true));
    let help = shown.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("## {name}\n\n```text\n{}\n```\n\n", lines.join("\n")));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(below, &format!("{name} {}", below.get_name()), page);
    }
}

#[test]
fn the_command_reference_says_what_help_says() {
    let mut page = HEAD.to_owned();
    section(&Cli::command(), "highwater", &mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command-line.md");
    holds(&path, &format!("{}\n", page.trim_end()));
}

/// The Markdown files below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the documentation is there");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    here.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

/// The words of a shell's simple command, up to where it ends.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '|' | ';' | '&' | '>' | '<' | ')') => break,
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The lines of a page's shell blocks that call our program.
fn commands(page: &str) -> Vec<Vec<String>> {
    let blocks =
        page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let lines = blocks.flat_map(|block| block.split("\n")).map(str::trim_start);
    lines.filter(|line| line.starts_with("highwater ")).map(words).collect()
}

#[test]
fn the_commands_of_the_documentation_are_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut number = 0;
    for path in pages(&root.join("docs")).into_iter().chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&path).expect("a page can be read");
        for command in commands(&text) {
            number += 1;
            let shown = command.join(" ");
            // Help and version are answers as well.
            if let Err(error) = Cli::try_parse_from(&command) {
                assert!(!error.use_stderr(), "{}: {shown}\n{error}", path.display());
            }
        }
    }
    assert!(number > 50, "only {number} commands were found");
}

#[test]
fn a_line_is_read_as_a_shell_reads_it() {
    let line = "highwater offsets set shop lsn=0/1 --reason \"it's so\" > log &  # why";
    let expected = ["highwater", "offsets", "set", "shop", "lsn=0/1", "--reason", "it's so"];
    assert_eq!(words(line), expected);
    assert_eq!(
        commands("```sh\nhighwater x | y\n```\nhighwater no\n```text\nhighwater no\n```"),
        [["highwater", "x"]]
    );
}
