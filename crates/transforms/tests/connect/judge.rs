//! The JVM in which Connect's own classes answer (`testing/kafka/Conversions.java`): one for all tests.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value as Json, json};

struct Judge {
    _process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

static JUDGE: LazyLock<Mutex<Judge>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/kafka");
    let mut process = Command::new(format!("{folder}/kafka.sh"))
        .args(["tool", &format!("{folder}/Conversions.java")])
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("testing/kafka/kafka.sh starts");
    let questions = process.stdin.take().unwrap();
    let answers = BufReader::new(process.stdout.take().unwrap());
    Mutex::new(Judge { _process: process, questions, answers })
});

/// How Connect refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The configuration.
    Configuration(String),
    /// What was to be converted.
    Data(String),
}

/// What a class of Connect answers.
pub(crate) fn ask(
    what: &str,
    class: &str,
    config: &[(&str, &str)],
    on: &Json,
) -> Result<Json, Refusal> {
    let config: serde_json::Map<_, _> =
        config.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let question = json!({"do": what, "class": class, "config": config, "on": on});
    let mut judge = JUDGE.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(judge.questions, "{question}").unwrap();
    let mut line = String::new();
    judge.answers.read_line(&mut line).unwrap();
    let mut answer: Json = serde_json::from_str(&line).expect("the judge answers in JSON");
    let text = answer["text"].as_str().unwrap_or_default().to_owned();
    match answer["error"].as_str() {
        None => Ok(answer["ok"].take()),
        Some("configuration") => Err(Refusal::Configuration(text)),
        Some(_) => Err(Refusal::Data(text)),
    }
}
