//! The one store of users and the one check, as a listener has it.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, RwLock};
use zeroize::Zeroizing;

use crate::attempts::Attempts;
use crate::error::AccessError;
use crate::mechanism::Hash;
use crate::operation::Operation;
use crate::password::Password;
use crate::principal::Principal;
use crate::random;
use crate::resource::{Kind, Resource};
use crate::token::Shown;
use crate::user::{User, Users};
use crate::users_file::{Contents, Stamp, UsersFile};
use crate::verifier::{SALT, Verifier};

/// Name of the server's own parts.
const OWN_NAME: &str = "highwater";
/// A random secret of 256 bits needs no stretching beyond what the standard asks for.
const OWN_ITERATIONS: NonZeroU32 = NonZeroU32::new(4_096).unwrap();

/// Who may come in through a listener, and what each may do.
#[derive(Debug)]
pub struct Access {
    kind: Listeners,
    contents: RwLock<Arc<Contents>>,
    attempts: Attempts,
}

#[derive(Debug)]
enum Listeners {
    /// Everybody is this one; nobody logs in.
    Unlocked(Principal),
    /// For the server's own parts alone.
    Own,
    /// For users of a file.
    Users(UsersFile, Mutex<Seen>),
}

/// A users file as it was last looked at.
#[derive(Debug)]
struct Seen {
    stamp: Option<Stamp>,
    /// The code of why it could not be read then. The system may let it be read the next time.
    unread: Option<&'static str>,
}

/// What the server's own parts log in with, made at each start (rule L9).
#[derive(Clone)]
pub struct OwnLogin {
    secret: Zeroizing<String>,
}

impl OwnLogin {
    /// The name.
    pub const fn name(&self) -> &'static str {
        OWN_NAME
    }

    /// The password.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for OwnLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnLogin")
    }
}

impl Access {
    fn with(kind: Listeners, contents: Contents) -> Self {
        let contents = RwLock::new(Arc::new(contents));
        Self { kind, contents, attempts: Attempts::default() }
    }

    /// Everybody who comes is the server itself: for a log that is embedded in a program.
    pub fn trusted() -> Self {
        Self::with(Listeners::Unlocked(Principal::Server), Contents::default())
    }

    /// Nobody logs in; everybody may do what is not the server's own.
    pub fn open() -> Self {
        Self::with(Listeners::Unlocked(Principal::Anonymous), Contents::default())
    }

    /// Only who has the login that is made with it comes in, and is the server itself.
    pub fn private() -> (Self, OwnLogin) {
        let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>()));
        let password = Password::new(secret.as_bytes());
        let salt = random::bytes::<SALT>().to_vec();
        let verifier = Verifier::with_salt(Hash::Sha256, &password, salt, OWN_ITERATIONS);
        let own = User {
            name: OWN_NAME.to_owned(),
            role: None,
            grants: Vec::new(),
            verifiers: vec![verifier],
            tokens: Vec::new(),
        };
        let contents = Contents { users: Users::new([own]), ..Contents::default() };
        (Self::with(Listeners::Own, contents), OwnLogin { secret })
    }

    /// The users of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_users(file: UsersFile) -> Result<Self, AccessError> {
        let stamp = file.stamp();
        let contents = file.read()?;
        let seen = Mutex::new(Seen { stamp, unread: None });
        Ok(Self::with(Listeners::Users(file, seen), contents))
    }

    /// Who everybody is; none where one has to log in.
    pub fn everybody(&self) -> Option<Principal> {
        match &self.kind {
            Listeners::Unlocked(principal) => Some(principal.clone()),
            Listeners::Own | Listeners::Users(..) => None,
        }
    }

    /// Reads the users again if their file has changed. Users stay as they were where it cannot be
    /// read, which is tried again; the error comes once a change of the file.
    ///
    /// # Errors
    /// When the file has changed and cannot be read.
    pub fn refresh(&self) -> Result<bool, AccessError> {
        let Listeners::Users(file, seen) = &self.kind else { return Ok(false) };
        let mut seen = seen.lock();
        let stamp = file.stamp();
        let (unchanged, told) = (seen.stamp == stamp, seen.unread);
        if unchanged && told.is_none_or(|code| code != AccessError::FILE) {
            return Ok(false);
        }
        seen.stamp = stamp;
        match file.read() {
            Ok(contents) => {
                seen.unread = None;
                *self.contents.write() = Arc::new(contents);
                Ok(true)
            }
            Err(error) => {
                seen.unread = Some(error.code());
                if unchanged && told == seen.unread { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Whether somebody who was let in as a user is none any more.
    pub fn is_gone(&self, principal: &Principal) -> bool {
        let Principal::User(name) = principal else { return false };
        self.contents.read().users.get(name).is_none()
    }

    /// Whether somebody may do something. Changes of the users count at once.
    pub fn allow(
        &self,
        principal: &Principal,
        operation: Operation,
        resource: Resource<'_>,
    ) -> bool {
        self.contents.read().users.allow(principal, operation, resource)
    }

    /// Whether somebody may do it to some resource of the kind.
    pub fn allow_somewhere(&self, principal: &Principal, operation: Operation, kind: Kind) -> bool {
        self.contents.read().users.allow_somewhere(principal, operation, kind)
    }

    /// The failed logins.
    pub const fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Who has this token.
    pub fn bearer(&self, token: &str) -> Option<Principal> {
        let contents = Arc::clone(&self.contents.read());
        let user = contents.users.with_token(&Shown::new(token)?)?;
        Some(self.principal(&user.name))
    }

    /// Who has this name and this password. It takes as long for a name that nobody has: milliseconds
    /// of computing, which belong where they hold nobody up.
    pub fn check(&self, name: &str, password: &Password) -> Option<Principal> {
        let contents = Arc::clone(&self.contents.read());
        let user = contents.users.get(name).filter(|user| !user.verifiers.is_empty());
        let hash =
            user.and_then(|user| user.verifiers.first()).map_or(Hash::Sha256, Verifier::hash);
        let (verifier, principal) = self.verifier(name, hash);
        principal.filter(|_| verifier.accepts(password))
    }

    /// What the password of a user is held against, and who the user is; for a name that nobody
    /// has a made-up one, which nothing fits.
    pub(crate) fn verifier(&self, name: &str, hash: Hash) -> (Verifier, Option<Principal>) {
        let contents = Arc::clone(&self.contents.read());
        let own = contents.users.get(name).and_then(|user| user.verifier(hash));
        match own {
            Some(verifier) => (verifier.clone(), Some(self.principal(name))),
            None => (contents.decoy.verifier(hash, name), None),
        }
    }

    fn principal(&self, name: &str) -> Principal {
        match self.kind {
            Listeners::Own => Principal::Server,
            Listeners::Unlocked(_) | Listeners::Users(..) => Principal::user(name),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{Login, Mechanism, Refusal, Role, Step};

    fn with_ann() -> (tempfile::TempDir, UsersFile) {
        let dir = tempfile::tempdir().unwrap();
        let file = UsersFile::new(dir.path().join("users.toml"));
        put(&file, "ann", b"secret of ann", Some(Role::Admin));
        (dir, file)
    }

    fn put(file: &UsersFile, name: &str, password: &[u8], role: Option<Role>) {
        let verifiers =
            Hash::ALL.map(|hash| Verifier::new(hash, &Password::new(password))).to_vec();
        let (name, grants, tokens) = (name.to_owned(), Vec::new(), Vec::new());
        let user = User { name, role, grants, verifiers, tokens };
        file.change(|users| {
            users.put(user);
            Ok(())
        })
        .unwrap();
    }

    fn plain(access: &Access, message: &[u8]) -> Result<Principal, Refusal> {
        match Login::begin(Mechanism::Plain).step(access, message)? {
            Step::LoggedIn(principal, _) => Ok(principal),
            Step::Asked(_) => panic!("PLAIN asks nothing"),
        }
    }

    fn asked(access: &Access, name: &str) -> String {
        let first = format!("n,,n={name},r=abc");
        match Login::begin(Mechanism::Scram(Hash::Sha256)).step(access, first.as_bytes()).unwrap() {
            Step::Asked(asked) => String::from_utf8(asked).unwrap(),
            Step::LoggedIn(..) => panic!("SCRAM asks first"),
        }
    }

    #[test]
    fn users_log_in_and_changes_count_at_once() {
        let (_dir, file) = with_ann();
        let access = Access::of_users(file.clone()).unwrap();
        assert_eq!(access.everybody(), None);
        assert_eq!(plain(&access, b"\0ann\0secret of ann"), Ok(Principal::user("ann")));
        assert_eq!(plain(&access, b"\0ann\0secret of bob"), Err(Refusal::Credentials));
        assert_eq!(plain(&access, b"\0bob\0secret of ann"), Err(Refusal::Credentials));
        let (ann, topic) = (Principal::user("ann"), Resource::Topic("a"));
        assert!(access.allow(&ann, Operation::Read, topic));

        put(&file, "ann", b"another one", None);
        assert!(access.refresh().unwrap() && !access.refresh().unwrap());
        assert_eq!(plain(&access, b"\0ann\0secret of ann"), Err(Refusal::Credentials));
        assert_eq!(plain(&access, b"\0ann\0another one"), Ok(ann.clone()));
        assert!(!access.allow(&ann, Operation::Read, topic));
    }

    #[test]
    fn a_file_that_cannot_be_read_leaves_the_users_as_they_were_and_is_told_once() {
        let (_dir, file) = with_ann();
        let access = Access::of_users(file.clone()).unwrap();
        let good = std::fs::read(file.path()).unwrap();
        std::fs::write(file.path(), "nonsense").unwrap();
        assert!(access.refresh().is_err() && !access.refresh().unwrap());
        assert!(plain(&access, b"\0ann\0secret of ann").is_ok());
        std::fs::write(file.path(), good).unwrap();
        assert!(access.refresh().unwrap());
        std::fs::remove_file(file.path()).unwrap();
        assert!(access.refresh().is_err() && !access.refresh().unwrap());
        assert!(plain(&access, b"\0ann\0secret of ann").is_ok());
    }

    /// A mode that was mended changes no byte of the file, and no time of writing.
    #[test]
    fn a_file_that_may_be_read_again_is_read_again() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, file) = with_ann();
        let access = Access::of_users(file.clone()).unwrap();
        let mode = |mode| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        put(&file, "ann", b"another one", None);
        mode(0o644);
        assert!(access.refresh().is_err());
        mode(0o600);
        assert!(access.refresh().unwrap());
        assert!(plain(&access, b"\0ann\0another one").is_ok());
    }

    #[test]
    fn what_the_system_did_not_let_read_is_tried_again() {
        let (dir, file) = with_ann();
        let access = Access::of_users(file.clone()).unwrap();
        let Listeners::Users(_, seen) = &access.kind else { panic!("it has users") };
        put(&file, "ann", b"another one", None);
        // As after a read for which no descriptor was free.
        *seen.lock() = Seen { stamp: file.stamp(), unread: Some(AccessError::FILE) };
        assert!(access.refresh().unwrap() && !access.refresh().unwrap());
        assert!(plain(&access, b"\0ann\0another one").is_ok());
        let nothing = UsersFile::new(dir.path().join("nothing"));
        assert_eq!(nothing.read().unwrap_err().code(), AccessError::FILE);
    }

    #[test]
    fn a_token_is_its_users_until_it_is_taken_away() {
        let (_dir, file) = with_ann();
        let (token, new) = crate::Token::mint("ci").unwrap();
        let with = |tokens: Vec<crate::Token>| {
            file.change(|users| {
                let mut ann = users.get("ann").cloned().unwrap();
                ann.tokens = tokens;
                users.put(ann);
                Ok(())
            })
            .unwrap();
        };
        with(vec![token]);
        let access = Access::of_users(file.clone()).unwrap();
        assert_eq!(access.bearer(new.reveal()), Some(Principal::user("ann")));
        assert_eq!(access.bearer("hwt_"), None);
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains(new.reveal()));
        with(Vec::new());
        assert!(access.refresh().unwrap());
        assert_eq!(access.bearer(new.reveal()), None);
    }

    #[test]
    fn who_was_removed_is_gone_and_the_server_never_is() {
        let (_dir, file) = with_ann();
        let access = Access::of_users(file.clone()).unwrap();
        let ann = Principal::user("ann");
        assert!(!access.is_gone(&ann));
        file.change(|users| {
            users.remove("ann");
            Ok(())
        })
        .unwrap();
        access.refresh().unwrap();
        assert!(access.is_gone(&ann));
        let (private, _) = Access::private();
        assert!(!private.is_gone(&Principal::Server) && !access.is_gone(&Principal::Anonymous));
    }

    /// Salt and iterations of a name are the same at each try, there or not, over restarts too.
    #[test]
    fn who_is_not_there_cannot_be_told_from_who_is() {
        let (_dir, file) = with_ann();
        let first = Access::of_users(file.clone()).unwrap();
        let second = Access::of_users(file).unwrap();
        let salted = |asked: String| asked.split_once(",s=").unwrap().1.to_owned();
        for name in ["ann", "bob"] {
            let (one, two) = (salted(asked(&first, name)), salted(asked(&second, name)));
            assert_eq!(one, two, "{name}");
            assert_eq!(one.len(), salted(asked(&first, "ann")).len(), "{name}");
        }
        assert_ne!(salted(asked(&first, "bob")), salted(asked(&first, "carl")));
    }

    #[test]
    fn the_own_login_is_the_server_and_no_other_is() {
        let (access, own) = Access::private();
        let message = format!("\0{}\0{}", own.name(), own.secret());
        assert_eq!(plain(&access, message.as_bytes()), Ok(Principal::Server));
        let (other, _) = Access::private();
        assert_eq!(plain(&other, message.as_bytes()), Err(Refusal::Credentials));
        assert!(!format!("{own:?} {access:?}").contains(own.secret()));
    }
}
