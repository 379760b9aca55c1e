//! Whom a client certificate stands for: its subject, through rules.

use regex::Regex;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::AccessError;

/// What is read of a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The subject as Java prints it (RFC 2253): `CN=ann,OU=sales,O=shop`.
    pub subject: String,
    /// Seconds since 1970 at which it ends.
    pub ends: i64,
}

impl Certificate {
    /// Reads a certificate (DER); none where it cannot be read.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names: Vec<_> = certificate.subject().iter_rdn().collect();
        // The most special one comes first (RFC 2253, 2.1).
        let names: Option<Vec<String>> = names
            .into_iter()
            .rev()
            .map(|name| {
                let parts: Option<Vec<String>> = name.iter().map(attribute).collect();
                Some(parts?.join("+"))
            })
            .collect();
        let ends = certificate.validity().not_after.timestamp();
        Some(Self { subject: names?.join(","), ends })
    }
}

/// The attributes that have a name in RFC 2253, 2.3; others go by their number, as in Java.
const NAMES: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

fn attribute(attribute: &x509_parser::x509::AttributeTypeAndValue<'_>) -> Option<String> {
    let number = attribute.attr_type().to_id_string();
    let name = NAMES.into_iter().find(|(known, _)| *known == number);
    let name = name.map_or(number.as_str(), |(_, name)| name);
    Some(format!("{name}={}", escaped(attribute.as_str().ok()?)))
}

/// RFC 2253, 2.4: so that no value can pass for a part of the name.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, sign) in value.chars().enumerate() {
        let at_an_end = (at == 0 && (sign == '#' || sign == ' ')) || (at == last && sign == ' ');
        if at_an_end || matches!(sign, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=') {
            out.push('\\');
        }
        out.push(sign);
    }
    out
}

/// Rules that make a user's name of a subject, in the form of Kafka's
/// `ssl.principal.mapping.rules`: `RULE:pattern/replacement/[LU]` or `DEFAULT`, separated by
/// commas; the first one that fits counts.
#[derive(Clone, Debug)]
pub struct SubjectRules(Vec<Rule>);

#[derive(Clone, Debug)]
enum Rule {
    /// The subject is the name.
    Default,
    Replace {
        pattern: Regex,
        replacement: String,
        case: Case,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Kept,
    Lower,
    Upper,
}

/// Memory that a pattern may take once compiled, and again while it is matched, in bytes.
const PATTERN: usize = 1 << 20;

/// Rules there may be: together with [`PATTERN`] a bound on the memory of all.
const RULES: usize = 64;

impl Default for SubjectRules {
    fn default() -> Self {
        Self(vec![Rule::Default])
    }
}

impl SubjectRules {
    /// Reads the rules.
    ///
    /// # Errors
    /// When they are none.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        let mut rest = text.trim();
        let mut rules = Vec::new();
        while !rest.is_empty() {
            if rules.len() == RULES {
                return Err(wrong(rest, format!("there may be {RULES} rules, this is one more")));
            }
            let (rule, behind) = rule(rest)?;
            rules.push(rule);
            rest = behind.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if rest.is_empty() => rest,
                None => return Err(wrong(rest, "a comma must stand between rules")),
            };
        }
        Ok(if rules.is_empty() { Self::default() } else { Self(rules) })
    }

    /// The user's name; none where no rule fits, or what it makes is empty.
    pub fn user(&self, subject: &str) -> Option<String> {
        self.0.iter().find_map(|rule| rule.apply(subject)).filter(|name| !name.is_empty())
    }
}

impl Rule {
    fn apply(&self, subject: &str) -> Option<String> {
        let Self::Replace { pattern, replacement, case } = self else {
            return Some(subject.to_owned());
        };
        let mut name = String::new();
        pattern.captures(subject)?.expand(replacement, &mut name);
        Some(match case {
            Case::Kept => name,
            Case::Lower => name.to_lowercase(),
            Case::Upper => name.to_uppercase(),
        })
    }
}

fn wrong(rule: &str, why: impl Into<String>) -> AccessError {
    AccessError::SubjectRule { rule: rule.to_owned(), why: why.into() }
}

/// The rule that `text` begins with, and what is behind it.
fn rule(text: &str) -> Result<(Rule, &str), AccessError> {
    if let Some(behind) = text.strip_prefix("DEFAULT") {
        return Ok((Rule::Default, behind));
    }
    let parts = text
        .strip_prefix("RULE:")
        .ok_or_else(|| wrong(text, "a rule begins with RULE: or is DEFAULT"))?;
    let unfinished =
        || wrong(text, "it must be RULE:pattern/replacement/ with L, U or nothing behind");
    let (pattern, behind) = until_slash(parts).ok_or_else(unfinished)?;
    let (replacement, behind) = until_slash(behind).ok_or_else(unfinished)?;
    let (case, behind) = match behind.strip_prefix('L') {
        Some(behind) => (Case::Lower, behind),
        None => match behind.strip_prefix('U') {
            Some(behind) => (Case::Upper, behind),
            None => (Case::Kept, behind),
        },
    };
    // The whole subject has to fit, so that nobody gets in by what a part of it says.
    let pattern = regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(PATTERN)
        .dfa_size_limit(PATTERN)
        .build()
        .map_err(|error| wrong(text, error.to_string()))?;
    Ok((Rule::Replace { pattern, replacement: numbered(&replacement), case }, behind))
}

/// What stands before the next slash that has no backslash in front, and what is behind it.
fn until_slash(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '/' => return Some((part, &text[at + 1..])),
            '\\' => {
                let (_, next) = signs.next()?;
                if next != '/' {
                    part.push('\\');
                }
                part.push(next);
            }
            sign => part.push(sign),
        }
    }
    None
}

/// `$1` as Java means it: the number alone, whatever letters follow.
fn numbered(replacement: &str) -> String {
    let mut out = String::new();
    let mut signs = replacement.chars().peekable();
    while let Some(sign) = signs.next() {
        out.push(sign);
        if sign == '$' {
            out.push('{');
            while let Some(digit) = signs.next_if(char::is_ascii_digit) {
                out.push(digit);
            }
            out.push('}');
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn subject(parts: &[(DnType, &str)]) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Certificate::read(certificate.der()).unwrap().subject
    }

    #[test]
    fn a_subject_reads_as_java_prints_it() {
        let parts = [
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Shop, Inc."),
            (DnType::OrganizationalUnitName, "sales"),
            (DnType::CommonName, "ann"),
        ];
        assert_eq!(subject(&parts), "CN=ann,OU=sales,O=Shop\\, Inc.,C=DE");
        assert_eq!(subject(&[(DnType::CommonName, " #a=b ")]), "CN=\\ #a\\=b\\ ");
        assert_eq!(Certificate::read(b"nonsense"), None);
    }

    fn user(rules: &str, subject: &str) -> Option<String> {
        SubjectRules::parse(rules).unwrap().user(subject)
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules =
            "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^.*[Cc][Nn]=([a-z.]*).*$/$1@x/U,DEFAULT";
        assert_eq!(user(rules, "CN=Svc,OU=ServiceUsers,O=a").as_deref(), Some("svc"));
        assert_eq!(user(rules, "OU=x,CN=ann,O=a").as_deref(), Some("ANN@X"));
        assert_eq!(user(rules, "O=a").as_deref(), Some("O=a"));
        assert_eq!(user("", "CN=ann").as_deref(), Some("CN=ann"));
        assert_eq!(user("RULE:CN=ann/x/", "CN=ann,O=a"), None, "the whole subject has to fit");
        assert_eq!(user("RULE:CN=(a)n\\/n/$1b/", "CN=an/n").as_deref(), Some("ab"));
        assert_eq!(user("RULE:CN=()/$1/", "CN="), None, "nobody has an empty name");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["RULE:a", "RULE:a/b", "RULE:(/b/", "rule:a/b/", "DEFAULTx", "DEFAULT DEFAULT"]
        {
            assert!(SubjectRules::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn more_rules_than_there_may_be_are_refused() {
        let rules = |count| vec!["RULE:CN=a/a/"; count].join(",");
        assert!(SubjectRules::parse(&rules(RULES)).is_ok());
        let error = SubjectRules::parse(&rules(RULES + 1)).unwrap_err().to_string();
        assert!(error.contains("64 rules"), "{error}");
    }
}
