//! Configurations as Kafka Connect has them: flat maps of texts, checked against definitions that
//! are their reference, too. What is configured (a connector, a converter, a transform) brings its
//! own keys.
//!
//! ```
//! use highwater_config::{ConfigDef, ConfigKey, Importance, KeyType};
//!
//! let port = KeyType::Int { min: 1, max: 65_535 };
//! let key = ConfigKey::new("port", port, Some("5432"), Importance::High, "Where it listens.");
//! let definition = ConfigDef::new(vec![key]);
//! let given = [("prot".to_owned(), "5433".to_owned())].into();
//! let problems = definition.parse(&given, &[]).unwrap_err();
//! assert_eq!(problems[0].message, "is not known; did you mean port?");
//! ```

#![forbid(unsafe_code)]

mod config;

pub use config::{Config, ConfigDef, ConfigKey, Importance, KeyType, Problem, nearest, patterns};
