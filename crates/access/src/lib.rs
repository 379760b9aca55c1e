//! Who may come in, and who may do what: one store of users and one check, for every part of the
//! server (rule A1).
//!
//! A [`Principal`] is who somebody is. [`Access`] is what a listener asks: it takes a [`Login`] step
//! by step, and says of an [`Operation`] on a [`Resource`] whether it is allowed. Users lie in a
//! [`UsersFile`], with a [`Role`] (what one may see and steer) and [`Grant`]s (whose records one may
//! read and write), [`Verifier`]s in place of their passwords, and [`Token`]s without what is shown of them.
//!
//! Nothing here does I/O but the users file, and nothing prints a secret.
//!
//! ```
//! use highwater_access::{Operation, Principal, Resource, User, Users};
//!
//! let ann = User {
//!     name: "ann".to_owned(),
//!     role: None,
//!     grants: vec!["read topic shop.*".parse()?],
//!     verifiers: Vec::new(),
//!     tokens: Vec::new(),
//! };
//! let users = Users::new([ann]);
//! let ann = Principal::user("ann");
//! assert!(users.allow(&ann, Operation::Read, Resource::Topic("shop.orders")));
//! assert!(!users.allow(&ann, Operation::Write, Resource::Topic("shop.orders")));
//! # Ok::<(), highwater_access::AccessError>(())
//! ```

mod access;
mod attempts;
mod authorization;
mod certificate;
mod decoy;
mod error;
pub mod fuzz;
mod grant;
mod login;
mod mechanism;
mod operation;
mod password;
mod plain;
mod principal;
mod random;
mod refusal;
mod resource;
mod role;
mod scram;
mod token;
mod user;
mod users_file;
mod verifier;

pub use access::{Access, OwnLogin};
pub use attempts::Attempts;
pub use authorization::Authorization;
pub use certificate::{Certificate, SubjectRules};
pub use error::AccessError;
pub use grant::Grant;
pub use login::{Login, Step};
pub use mechanism::{Hash, Mechanism};
pub use operation::Operation;
pub use password::Password;
pub use principal::Principal;
pub use refusal::Refusal;
pub use resource::{Kind, Resource, is_internal};
pub use role::Role;
pub use token::{NewToken, Token};
pub use user::{User, Users};
pub use users_file::{Contents, UsersFile, check_name};
pub use verifier::Verifier;
