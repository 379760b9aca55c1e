//! `highwater oracle decode`: what the Oracle source reads of statements of LogMiner; needs no server.

use std::io::{self, BufRead, Read as _};

use highwater_oracle::statement::{Quoting, decode_line};

use crate::cli::{OracleCommand, QuotingArgument};
use crate::failure::{Exit, Failure};
use crate::output;

/// Longest line, bytes: a statement in pieces with all its large objects is shorter.
const LONGEST: u64 = 64 << 20;

pub(crate) fn run(command: &OracleCommand) -> Result<(), Failure> {
    let OracleCommand::Decode { quoting } = command;
    let quoting = match quoting {
        QuotingArgument::Strict => Quoting::Strict,
        QuotingArgument::Relaxed => Quoting::Relaxed,
    };
    decode(io::stdin().lock(), quoting, |answer| output::line(&answer).map_err(Failure::from))
}

/// Gives an answer for each line that is not empty.
fn decode(
    mut input: impl BufRead,
    quoting: Quoting,
    mut answer: impl FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        number += 1;
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == LONGEST && line.last() != Some(&b'\n') {
            return Err(too_long(number));
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            answer(decode_line(text.trim_end(), quoting))?;
        }
    }
}

fn too_long(number: u64) -> Failure {
    let what = format!("line {number} is longer than {LONGEST} bytes");
    Failure::new(Exit::Usage, "LINE_TOO_LONG", what)
        .kept("the answers to the lines before it were printed")
        .remedy("give one statement a line")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &str) -> Vec<String> {
        let mut answers = Vec::new();
        let keep = |answer| {
            answers.push(answer);
            Ok(())
        };
        decode(input.as_bytes(), Quoting::Strict, keep).unwrap();
        answers
    }

    #[test]
    fn each_line_has_an_answer_and_a_fault_stops_nothing() {
        let input = concat!(
            r#"{"id":1,"sql":"delete from \"A\".\"B\" where \"K\" = '1'","op_code":2}"#,
            "\n\n{\n",
            r#"{"id":2,"sql":"insert into nothing","op_code":1}"#,
        );
        let answers = answers(input);
        assert_eq!(answers.len(), 3);
        assert!(answers[0].starts_with(r#"{"id":1,"op":"delete","owner":"A","table":"B""#));
        assert!(answers[1].contains("no_json"), "{}", answers[1]);
        assert!(answers[2].contains(r#""code":"unexpected_token""#), "{}", answers[2]);
    }
}
