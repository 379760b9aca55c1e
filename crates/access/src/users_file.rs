//! The file that users are kept in: TOML, of one owner, replaced whole.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::decoy::Decoy;
use crate::error::AccessError;
use crate::grant::Grant;
use crate::role::Role;
use crate::token::Token;
use crate::user::{User, Users};
use crate::verifier::Verifier;

/// The largest file that is read: 10,000 users with their grants, and more.
const LARGEST: u64 = 16 << 20;
/// The longest name of a user, in bytes.
const LONGEST_NAME: usize = 256;
/// Names that principals of our own bear.
const RESERVED: [&str; 2] = ["highwater", "ANONYMOUS"];

const HEADING: &str = "\
# Users of Highwater. `highwater user` writes this file whole; a server that runs reads it again when
# it changes. Keys of credentials are salted; keep the file from others all the same.
";

/// A users file by its path.
#[derive(Clone, Debug)]
pub struct UsersFile {
    path: PathBuf,
}

/// What lies in the file.
#[derive(Debug, Default)]
pub struct Contents {
    /// The users.
    pub users: Users,
    /// What makes up an answer for who is none.
    pub(crate) decoy: Decoy,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    decoy_key: String,
    #[serde(default, rename = "user")]
    users: Vec<Entry>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: toml::Spanned<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(default)]
    grants: Vec<String>,
    #[serde(default)]
    credentials: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<String>,
}

/// What tells one state of a file from another: inode, length, and the time of the last change, of its
/// mode and owner, too.
pub(crate) type Stamp = (u64, u64, i64, i64);

impl UsersFile {
    /// The file at `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read, when others may read it, when its text is none of a users file.
    pub fn read(&self) -> Result<Contents, AccessError> {
        // Before it is opened: a pipe would keep us waiting.
        let metadata = std::fs::metadata(&self.path).map_err(|error| self.failed(error))?;
        if !metadata.is_file() {
            return Err(self.failed(std::io::Error::other("it is no file")));
        }
        let file = File::open(&self.path).map_err(|error| self.failed(error))?;
        let mode = file.metadata().map_err(|error| self.failed(error))?.mode() & 0o777;
        if mode & 0o027 != 0 {
            return Err(AccessError::Exposed { path: self.path.clone(), mode });
        }
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| self.failed(error))?;
        // What is cut off could be read as fewer users.
        if text.len() as u64 > LARGEST {
            return Err(self.failed(std::io::Error::other("it is larger than 16 MiB")));
        }
        self.parse(&text)
    }

    /// Reads it, and again after a change of `change`, which is written; a file that is not there
    /// is one without users. Two that change it at once come one after the other.
    ///
    /// # Errors
    /// As [`read`](Self::read); what `change` says; when it cannot be written.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut Users) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let beside = |suffix: &str| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let lock = owners_file(&beside(".lock")).map_err(|error| self.failed(error))?;
        lock.lock().map_err(|error| self.failed(error))?;
        let mut contents = match self.read() {
            Err(AccessError::File { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Contents::default()
            }
            read => read?,
        };
        let changed = change(&mut contents.users)?;
        let text = contents.to_text();
        self.replace(&beside(".new"), &text).map_err(|error| self.failed(error))?;
        Ok(changed)
    }

    /// What tells this state of the file from another; none where it cannot be looked at.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let file = std::fs::metadata(&self.path).ok()?;
        Some((file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
    }

    fn failed(&self, source: std::io::Error) -> AccessError {
        AccessError::File { path: self.path.clone(), source }
    }

    /// Puts `text` in the file's place, with its owner and mode.
    fn replace(&self, new: &Path, text: &str) -> std::io::Result<()> {
        match std::fs::remove_file(new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = owners_file(new)?;
        if let Ok(old) = std::fs::metadata(&self.path) {
            // Where root changes it, who reads it must be able to go on.
            chown(new, Some(old.uid()), Some(old.gid()))?;
            file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    pub(crate) fn parse(&self, text: &str) -> Result<Contents, AccessError> {
        let at = |offset: usize| 1 + text.bytes().take(offset).filter(|b| *b == b'\n').count();
        let invalid =
            |line: usize, why: String| AccessError::Invalid { path: self.path.clone(), line, why };
        // Not the error's own text: it quotes the value, which may be a key.
        let unread = |error: toml::de::Error| {
            let line = at(error.span().map_or(0, |span| span.start));
            invalid(line, "it is no TOML, or not as a users file has it".to_owned())
        };
        let document: Document = toml::from_str(text).map_err(unread)?;
        let decoy = Decoy::parse(&document.decoy_key)
            .ok_or_else(|| invalid(1, "decoy_key is not 32 bytes in base64".to_owned()))?;
        let mut users = Users::default();
        for entry in document.users {
            // Lines are counted where one is named, not once a user.
            let start = entry.name.span().start;
            let user = entry.user().map_err(|why| invalid(at(start), why))?;
            if users.get(&user.name).is_some() {
                return Err(invalid(at(start), format!("user {} stands here twice", user.name)));
            }
            users.put(user);
        }
        Ok(Contents { users, decoy })
    }
}

/// A file that its owner alone may read and write.
fn owners_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl Entry {
    fn user(self) -> Result<User, String> {
        let name = self.name.into_inner();
        check_name(&name).map_err(|error| error.to_string())?;
        let grants: Result<Vec<Grant>, AccessError> =
            self.grants.iter().map(|grant| grant.parse()).collect();
        let verifiers: Option<Vec<Verifier>> =
            self.credentials.iter().map(|text| Verifier::parse(text)).collect();
        let tokens: Option<Vec<Token>> =
            self.tokens.iter().map(|text| Token::parse(text)).collect();
        Ok(User {
            tokens: tokens
                .ok_or_else(|| format!("user {name}: a token is not LABEL$SHA-256$DIGEST"))?,
            role: self.role,
            grants: grants.map_err(|error| format!("user {name}: {error}"))?,
            verifiers: verifiers.ok_or_else(|| {
                format!("user {name}: a credential is not SCRAM-SHA-256$ITERATIONS:SALT$KEY:KEY")
            })?,
            name,
        })
    }
}

impl Contents {
    pub(crate) fn to_text(&self) -> String {
        let entry = |user: &User| Entry {
            name: toml::Spanned::new(0..0, user.name.clone()),
            role: user.role,
            grants: user.grants.iter().map(ToString::to_string).collect(),
            credentials: user.verifiers.iter().map(Verifier::to_text).collect(),
            tokens: user.tokens.iter().map(Token::to_text).collect(),
        };
        let document = Document {
            decoy_key: BASE64.encode(self.decoy.key()),
            users: self.users.iter().map(entry).collect(),
        };
        // Texts and lists of texts: nothing in it that TOML could not hold.
        format!("{HEADING}\n{}", toml::to_string(&document).unwrap_or_default())
    }
}

/// Whether a user can be called so.
///
/// # Errors
/// When not.
pub fn check_name(name: &str) -> Result<(), AccessError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > LONGEST_NAME {
        "it is longer than 256 bytes"
    } else if name.chars().any(char::is_control) {
        "it has a control character"
    } else if RESERVED.contains(&name) {
        "the server itself bears it"
    } else {
        return Ok(());
    };
    Err(AccessError::Name { name: name.to_owned(), why })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::mechanism::Hash;
    use crate::password::Password;

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            role: Some(Role::View),
            grants: vec!["read topic shop.*".parse().unwrap()],
            verifiers: vec![Verifier::new(Hash::Sha256, &Password::new(b"secret"))],
            tokens: vec![Token::mint("ci").unwrap().0],
        }
    }

    fn file(dir: &tempfile::TempDir) -> UsersFile {
        UsersFile::new(dir.path().join("users.toml"))
    }

    fn with_ann(dir: &tempfile::TempDir) -> UsersFile {
        let file = file(dir);
        file.change(|users| {
            users.put(user("ann"));
            Ok(())
        })
        .unwrap();
        file
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        for name in ["ann", "CN=bob,O=\"x\""] {
            file.change(|users| {
                users.put(user(name));
                Ok(())
            })
            .unwrap();
        }
        let before = file.read().unwrap();
        let names: Vec<&str> = before.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["CN=bob,O=\"x\"", "ann"]);
        let ann = before.users.get("ann").unwrap();
        assert_eq!((ann.role, ann.grants.len(), ann.verifiers.len()), (Some(Role::View), 1, 1));
        file.change(|users| {
            users.remove("ann");
            Ok(())
        })
        .unwrap();
        let after = file.read().unwrap();
        assert_eq!(after.users.iter().count(), 1);
        assert_eq!(before.decoy.key(), after.decoy.key(), "who is not there looks as before");
        let mode = std::fs::metadata(file.path()).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = with_ann(&dir);
        let before = std::fs::read(file.path()).unwrap();
        let failed: Result<(), _> = file.change(|users| {
            users.remove("ann");
            Err(AccessError::Unknown { name: "bob".to_owned() })
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(file.path()).unwrap(), before);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        file.change(|_| Ok(())).unwrap();
        for (mode, good) in
            [(0o640, true), (0o644, false), (0o660, false), (0o604, false), (0o400, true)]
        {
            std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(file.read().is_ok(), good, "{mode:o}");
        }
    }

    /// Half a file would be half its users; and whoever changes it then would write that half.
    #[test]
    fn what_is_too_large_or_no_file_is_refused_and_left() {
        let dir = tempfile::tempdir().unwrap();
        let file = with_ann(&dir);
        let text = std::fs::read_to_string(file.path()).unwrap();
        let room = usize::try_from(LARGEST).unwrap() - text.len() - 2;
        let padded = |more: usize| format!("# {}\n{text}", "x".repeat(room - 1 + more));
        std::fs::write(file.path(), padded(0)).unwrap();
        assert_eq!(file.read().unwrap().users.iter().count(), 1);
        std::fs::write(file.path(), padded(1)).unwrap();
        let change = file.change(|_| Ok(())).unwrap_err().to_string();
        assert!(change.contains("larger than 16 MiB"), "{change}");
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), LARGEST + 1);

        let pipe = UsersFile::new(dir.path().join("pipe"));
        assert!(std::process::Command::new("mkfifo").arg(pipe.path()).status().unwrap().success());
        assert!(pipe.read().unwrap_err().to_string().contains("it is no file"));
    }

    /// Each user's line was counted from the file's beginning: minutes for a file of the largest size.
    #[test]
    fn many_users_are_read_in_no_time() {
        let named = |number| User {
            name: format!("user-{number}"),
            role: None,
            grants: Vec::new(),
            verifiers: Vec::new(),
            tokens: Vec::new(),
        };
        let users = Users::new((0..50_000).map(named));
        let contents = Contents { users, ..Contents::default() };
        let text = contents.to_text();
        let began = std::time::Instant::now();
        let read = UsersFile::new("users.toml").parse(&text).unwrap();
        assert_eq!(read.users.iter().count(), 50_000);
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_never_quoted() {
        let file = UsersFile::new("users.toml");
        let key = BASE64.encode([7; 32]);
        for (text, line, why) in [
            ("[[user]\nname = 's3cret'", 2, "no TOML"),
            ("[[user]]\nname = 'a'\npassword = 's3cret'", 4, "no TOML"),
            ("[[user]]\nname = 'a'\ncredentials = 's3cret'", 4, "no TOML"),
            ("[[user]]\nname = 'a'\ncredentials = ['s3cret']", 3, "credential"),
            ("[[user]]\nname = 'a'\ngrants = ['eat topic a']", 3, "must begin"),
            ("[[user]]\nname = 'a'\n[[user]]\nname = 'a'", 5, "twice"),
            ("[[user]]\nname = 'highwater'", 3, "itself"),
        ] {
            let error =
                file.parse(&format!("decoy_key = '{key}'\n{text}")).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}:")) && error.contains(why), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
