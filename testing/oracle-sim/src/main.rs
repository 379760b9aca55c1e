//! Prints what a simulated database has committed, as JSON lines.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use highwater_oracle_sim::{
    FolderSettings, Quirk, Quirks, Simulation, SimulationSettings, actions_of, row_json,
};

const USAGE: &str = "oracle-sim history|tables [--seed N] [--actions N] [--threads N] [--pdbs N] \
                     [--quirk NAME]... [--no-quirks] [--folder FOLDER]\n\
                     history: committed transactions, thread by thread, by the redo order of their \
                     commits\n\
                     tables: the committed rows of each table\n\
                     --folder: of the database that lives there, as it is now";

/// What is printed.
#[derive(Clone, Copy)]
enum Report {
    History,
    Tables,
}

struct Arguments {
    report: Report,
    settings: SimulationSettings,
    actions: u64,
}

fn main() -> ExitCode {
    let printed = arguments(std::env::args().skip(1)).and_then(|arguments| {
        print(&arguments, &mut io::stdout().lock()).map_err(|error| error.to_string())
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let report = match words.next().as_deref() {
        Some("history") => Report::History,
        Some("tables") => Report::Tables,
        _ => return Err("history or tables is wanted".to_owned()),
    };
    let mut read = Arguments { report, settings: SimulationSettings::default(), actions: 1000 };
    while let Some(option) = words.next() {
        let settings = &mut read.settings;
        match option.as_str() {
            "--seed" => settings.seed = number(&option, words.next())?,
            "--actions" => read.actions = number(&option, words.next())?,
            "--threads" => settings.threads = number(&option, words.next())?,
            "--pdbs" => settings.pdbs = number(&option, words.next())?,
            "--quirk" => drop(settings.quirks.insert(quirk(words.next())?)),
            "--no-quirks" => settings.quirks = Quirks::new(),
            "--folder" => read.take_folder(Path::new(&words.next().unwrap_or_default()))?,
            other => return Err(format!("{other} is no option")),
        }
    }
    Ok(read)
}

impl Arguments {
    fn take_folder(&mut self, folder: &Path) -> Result<(), String> {
        let read = FolderSettings::read(folder).and_then(|it| Ok((it, actions_of(folder)?)));
        let told = |error| format!("{}: {error}", folder.display());
        let (settings, actions) = read.map_err(told)?;
        (self.settings, self.actions) = (settings.simulation, actions);
        Ok(())
    }
}

fn number<T: FromStr>(option: &str, word: Option<String>) -> Result<T, String> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| format!("{option} wants a number"))
}

fn quirk(word: Option<String>) -> Result<Quirk, String> {
    word.and_then(|word| Quirk::named(&word)).ok_or_else(|| {
        let names: Vec<_> = Quirk::ALL.iter().map(|quirk| format!("{quirk:?}")).collect();
        format!("--quirk wants one of {}", names.join(", "))
    })
}

fn print(arguments: &Arguments, out: &mut impl Write) -> io::Result<()> {
    let simulation = Simulation::at(arguments.settings.clone(), arguments.actions);
    match arguments.report {
        Report::History => {
            for transaction in simulation.history().iter().flat_map(|thread| &thread.transactions) {
                writeln!(out, "{}", transaction.to_json())?;
            }
        }
        Report::Tables => {
            for (table, rows) in &simulation.tables_now() {
                for row in rows {
                    writeln!(out, "{}", row_json(table, row))?;
                }
            }
        }
    }
    out.flush()
}
