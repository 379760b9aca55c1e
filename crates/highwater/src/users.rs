//! `highwater user …`: the users file, changed where it lies. A server that runs reads it again.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use highwater_access::{
    AccessError, Grant, Hash, Password, Role, Token, User, Users, UsersFile, Verifier, check_name,
};
use serde_json::{Value, json};

use crate::cli::{
    Cli, Output, PasswordSource, RoleName, UserAdd, UserArguments, UserChange, UserCommand,
    UserToken,
};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::settings;

/// The longest input that is taken for a password.
const LONGEST_INPUT: u64 = 64 << 10;

pub(crate) fn run(cli: &Cli, arguments: &UserArguments) -> Result<(), Failure> {
    let file = UsersFile::new(path(arguments)?);
    let done = match &arguments.command {
        UserCommand::List => return list(&file, cli.output),
        UserCommand::Add(asked) => add(&file, asked)?,
        UserCommand::Password { name, source } => set_password(&file, name, source)?,
        UserCommand::Change(asked) => change(&file, asked)?,
        UserCommand::Remove { name } => remove(&file, name)?,
        UserCommand::Token(asked) if asked.revoke => revoke(&file, asked)?,
        UserCommand::Token(asked) => return token(&file, asked, cli.output),
    };
    let document = json!({ "done": done, "users_file": file.path() });
    Ok(output::result(cli.output, &document, &done)?)
}

/// The file that is named, else that of the server's configuration.
fn path(arguments: &UserArguments) -> Result<PathBuf, Failure> {
    if let Some(path) = &arguments.users_file {
        return Ok(path.clone());
    }
    let missing = || {
        Failure::usage("no users file is named")
            .remedy("add --users-file FILE, or --config FILE whose access.users_file names one")
    };
    let config = arguments.config.as_deref().ok_or_else(missing)?;
    settings::users_file(config)?.ok_or_else(missing)
}

fn list(file: &UsersFile, output: Output) -> Result<(), Failure> {
    let contents = file.read().map_err(|error| failure(&error))?;
    let users: Vec<&User> = contents.users.iter().collect();
    let document = users.iter().map(|user| shown(user)).collect();
    let rows: Vec<Vec<String>> = users.iter().map(|user| row(user)).collect();
    let text = output::columns(&["USER", "ROLE", "PASSWORD", "TOKENS", "GRANTS"], &rows);
    Ok(output::result(output, &document, &text)?)
}

fn shown(user: &User) -> Value {
    json!({
        "user": user.name,
        "role": user.role.map(Role::name),
        "password": !user.verifiers.is_empty(),
        "tokens": user.tokens.iter().map(Token::label).collect::<Vec<_>>(),
        "grants": user.grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn row(user: &User) -> Vec<String> {
    let grants: Vec<String> = user.grants.iter().map(ToString::to_string).collect();
    let password = if user.verifiers.is_empty() { "none" } else { "set" };
    let role = user.role.map_or("-", Role::name);
    let tokens: Vec<&str> = user.tokens.iter().map(Token::label).collect();
    let tokens = if tokens.is_empty() { "none".to_owned() } else { tokens.join(", ") };
    vec![user.name.clone(), role.to_owned(), password.to_owned(), tokens, grants.join("; ")]
}

fn add(file: &UsersFile, asked: &UserAdd) -> Result<String, Failure> {
    let name = &asked.name;
    check_name(name).map_err(|error| failure(&error))?;
    let grants = grants(&asked.grants)?;
    let verifiers = if asked.no_password { Vec::new() } else { verifiers(&asked.source)? };
    let (role, tokens) = (asked.role.map(role), Vec::new());
    let user = User { name: name.clone(), role, grants, verifiers, tokens };
    let put = |users: &mut Users| match users.get(name) {
        Some(_) => Err(AccessError::Exists { name: name.clone() }),
        None => {
            users.put(user);
            Ok(())
        }
    };
    file.change(put).map_err(|error| failure(&error))?;
    Ok(format!("user {name} is there"))
}

fn set_password(file: &UsersFile, name: &str, source: &PasswordSource) -> Result<String, Failure> {
    let verifiers = verifiers(source)?;
    edit(file, name, |user| user.verifiers = verifiers)?;
    Ok(format!("user {name} has a new password; connections that are open stay"))
}

fn change(file: &UsersFile, asked: &UserChange) -> Result<String, Failure> {
    let (given, taken) = (grants(&asked.grants)?, grants(&asked.revoke)?);
    edit(file, &asked.name, |user| {
        user.grants.retain(|grant| !taken.contains(grant) && !given.contains(grant));
        user.grants.extend(given);
        if asked.no_role {
            user.role = None;
        }
        user.role = asked.role.map(role).or(user.role);
    })?;
    Ok(format!("user {} is changed", asked.name))
}

fn edit(file: &UsersFile, name: &str, change: impl FnOnce(&mut User)) -> Result<(), Failure> {
    let edited = |users: &mut Users| {
        let unknown = || AccessError::Unknown { name: name.to_owned() };
        let mut user = users.get(name).cloned().ok_or_else(unknown)?;
        change(&mut user);
        users.put(user);
        Ok(())
    };
    file.change(edited).map_err(|error| failure(&error))
}

/// Makes a token. It is told before it counts: one that counts and is not told would be lost.
fn token(file: &UsersFile, asked: &UserToken, output: Output) -> Result<(), Failure> {
    let UserToken { name, label, to_file, .. } = asked;
    let (token, new) = Token::mint(label).map_err(|error| failure(&error))?;
    let there = file.read().map_err(|error| failure(&error))?;
    let user = there.users.get(name).ok_or_else(|| AccessError::Unknown { name: name.clone() });
    let user = user.map_err(|error| failure(&error))?;
    if user.tokens.iter().any(|token| token.label() == label) {
        let (name, label) = (name.clone(), label.clone());
        return Err(failure(&AccessError::Token {
            name,
            label,
            why: "has a token already that is called",
        }));
    }
    let done = format!("user {name} has a token {label}");
    let mut document = json!({ "done": done, "users_file": file.path() });
    let text = match to_file {
        Some(path) => {
            keep(path, new.reveal())?;
            format!("{done}, in {}", path.display())
        }
        None => {
            document["token"] = json!(new.reveal());
            new.reveal().to_owned()
        }
    };
    edit(file, name, |user| user.tokens.push(token))?;
    Ok(output::result(output, &document, &text)?)
}

/// Writes a secret into a file of its own, which nobody else may read.
fn keep(path: &Path, secret: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written =
        file.and_then(|mut file| writeln!(file, "{secret}").and_then(|()| file.sync_all()));
    written.map_err(|error| {
        Failure::usage(format!("{} cannot be written: {error}", path.display()))
            .kept("nothing was changed")
            .remedy("name a file that is not there yet, in a folder that you may write")
    })
}

fn revoke(file: &UsersFile, asked: &UserToken) -> Result<String, Failure> {
    let UserToken { name, label, .. } = asked;
    let mut gone = false;
    edit(file, name, |user| {
        let before = user.tokens.len();
        user.tokens.retain(|token| token.label() != label);
        gone = user.tokens.len() < before;
    })?;
    if gone {
        return Ok(format!("user {name} has no token {label} any more"));
    }
    let (name, label) = (name.clone(), label.clone());
    Err(failure(&AccessError::Token { name, label, why: "has no token that is called" }))
}

fn remove(file: &UsersFile, name: &str) -> Result<String, Failure> {
    let removed = |users: &mut Users| match users.remove(name) {
        true => Ok(()),
        false => Err(AccessError::Unknown { name: name.to_owned() }),
    };
    file.change(removed).map_err(|error| failure(&error))?;
    Ok(format!("user {name} is gone; connections that it logged in over end at their next request"))
}

fn grants(texts: &[String]) -> Result<Vec<Grant>, Failure> {
    let grants = texts.iter().map(|text| text.parse());
    grants.collect::<Result<_, AccessError>>().map_err(|error| failure(&error))
}

const fn role(name: RoleName) -> Role {
    match name {
        RoleName::View => Role::View,
        RoleName::Operate => Role::Operate,
        RoleName::Admin => Role::Admin,
    }
}

/// What is kept of the password, for every mechanism.
fn verifiers(source: &PasswordSource) -> Result<Vec<Verifier>, Failure> {
    let password = password(source)?;
    if let Some(why) = password.weakness() {
        return Err(failure(&AccessError::Password { why }));
    }
    Ok(Hash::ALL.map(|hash| Verifier::new(hash, &password)).to_vec())
}

/// Never from the command line's words: every user of the machine sees those.
fn password(source: &PasswordSource) -> Result<Password, Failure> {
    let bytes = match (&source.password_file, &source.password_env) {
        (Some(path), _) => of_file(path)?,
        (None, Some(variable)) => std::env::var(variable)
            .map_err(|_| Failure::usage(format!("the environment has no variable {variable}")))?
            .into_bytes(),
        (None, None) if std::io::stdin().is_terminal() => asked_for()?,
        (None, None) => all(std::io::stdin())?,
    };
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    Ok(Password::new(&bytes[..end]))
}

fn of_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| {
        Failure::usage(format!("{} cannot be read: {error}", path.display()))
            .remedy("name a file that holds the password and nothing else")
    };
    std::fs::File::open(path).and_then(all).map_err(failed)
}

fn all(input: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(LONGEST_INPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Asks a person, twice, without showing what is typed.
fn asked_for() -> Result<Vec<u8>, Failure> {
    let first = typed("Password: ")?;
    if typed("Again: ")? != first {
        return Err(Failure::usage("the two passwords differ"));
    }
    Ok(first.into_bytes())
}

fn typed(prompt: &str) -> std::io::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    output::note(prompt);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Flush, &shown)?;
    read?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

fn failure(error: &AccessError) -> Failure {
    let (exit, remedy) = match error {
        AccessError::File { .. } => (Exit::Failed, "name a file in a folder that you may write"),
        AccessError::Exposed { .. } => (Exit::Refused, "chmod 600 FILE"),
        AccessError::Invalid { .. } => (Exit::Failed, "correct the line, or restore the file"),
        AccessError::Exists { .. } => (Exit::Refused, "highwater user change, or user password"),
        AccessError::Unknown { .. } => (Exit::NotFound, "highwater user list shows who is there"),
        AccessError::Name { .. }
        | AccessError::Password { .. }
        | AccessError::TokenLabel { .. } => (Exit::Usage, "choose another one"),
        AccessError::Token { .. } => {
            (Exit::Refused, "highwater user list shows the tokens; --label names another")
        }
        AccessError::Grant { .. } | AccessError::SubjectRule { .. } => {
            (Exit::Usage, "highwater user add --help has examples")
        }
    };
    Failure::new(exit, error.code(), error.to_string()).kept("nothing was changed").remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (tempfile::TempDir, PasswordSource) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, text).unwrap();
        (dir, PasswordSource { password_file: Some(path), password_env: None })
    }

    fn asked(name: &str, source: PasswordSource) -> UserAdd {
        UserAdd {
            name: name.to_owned(),
            role: Some(RoleName::View),
            grants: vec!["read topic shop.*".to_owned()],
            no_password: false,
            source,
        }
    }

    #[test]
    fn users_come_change_and_go() {
        let (dir, source) = of("correct horse\n");
        let file = UsersFile::new(dir.path().join("users.toml"));
        add(&file, &asked("ann", source)).unwrap();
        let (_dir, source) = of("correct horse\n");
        let again = add(&file, &asked("ann", source)).unwrap_err();
        assert_eq!((again.code.as_str(), again.exit), ("USER_EXISTS", Exit::Refused));
        let changed = UserChange {
            name: "ann".to_owned(),
            role: None,
            no_role: true,
            grants: vec!["write topic a".to_owned()],
            revoke: vec!["read topic shop.*".to_owned()],
        };
        change(&file, &changed).unwrap();
        let ann = file.read().unwrap().users.get("ann").cloned().unwrap();
        assert_eq!(row(&ann), ["ann", "-", "set", "none", "write topic a"]);
        assert!(!shown(&ann).to_string().contains("SCRAM"));
        let (_dir, source) = of("another horse");
        set_password(&file, "ann", &source).unwrap();
        let new = file.read().unwrap().users.get("ann").cloned().unwrap();
        assert_ne!(new.verifiers, ann.verifiers);
        remove(&file, "ann").unwrap();
        assert_eq!(remove(&file, "ann").unwrap_err().exit, Exit::NotFound);
    }

    #[test]
    fn a_short_password_is_refused_and_not_quoted() {
        let (dir, source) = of("s3cret\n");
        let file = UsersFile::new(dir.path().join("users.toml"));
        let refused = add(&file, &asked("ann", source)).unwrap_err();
        assert_eq!(refused.code, "PASSWORD_UNFIT");
        assert!(!refused.what.contains("s3cret") && !file.path().exists());
    }
}
