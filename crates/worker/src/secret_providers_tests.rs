use std::fs;
use std::os::unix::fs::symlink;

use highwater_connector::KeyType;
use tempfile::TempDir;

use super::*;

const SECRET: &str = "s3cret-of-the-database";

fn environment(name: &str) -> Option<OsString> {
    match name {
        "PGPASSWORD" | "HOME" => Some(SECRET.into()),
        _ => None,
    }
}

/// Providers below a folder, with the variables PGPASSWORD and NONE.
fn providers() -> (TempDir, SecretProviders) {
    let dir = tempfile::tempdir().unwrap();
    let paths = AllowedPaths::new("the.paths", [dir.path().to_owned()]);
    let names = ["PGPASSWORD", "NONE"].map(str::to_owned);
    (dir, SecretProviders::new(paths, "the.names", names).with_environment(environment))
}

fn resolve(providers: &SecretProviders, value: &str) -> Result<String, String> {
    let given = Properties::from([("key".to_owned(), value.to_owned())]);
    match providers.resolve(&given) {
        Ok(mut resolved) => Ok(resolved.properties.remove("key").unwrap()),
        Err(mut problems) => {
            let problem = problems.remove(0);
            assert_eq!((problem.key.as_str(), problems.len()), ("key", 0));
            assert!(
                problem.message.starts_with(&format!("refers to {value}, which")),
                "{}",
                problem.message
            );
            assert!(!problem.message.contains(SECRET), "{}", problem.message);
            Err(problem.message)
        }
    }
}

#[test]
fn each_provider_says_what_it_knows() {
    let (dir, providers) = providers();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("db.properties"), format!("user=ann\npassword: {SECRET}\nlong=a\\\n b\n"))
        .unwrap();
    fs::write(at("whole"), format!("{SECRET}\r\n")).unwrap();
    fs::write(at("two"), "one\ntwo").unwrap();
    let file = at("db.properties");
    for (value, expected) in [
        (format!("${{file:{file}:password}}"), SECRET),
        (format!("${{file:{file}:long}}"), "ab"),
        (format!("${{file:{file}:user}}@x:${{file:{file}:user}}"), "ann@x:ann"),
        (format!("${{file:{}}}", at("whole")), SECRET),
        (format!("${{file:{}}}", at("two")), "one\ntwo"),
        (format!("${{dir:{}:two}}", dir.path().display()), "one\ntwo"),
        ("${env:PGPASSWORD}".to_owned(), SECRET),
        ("plain".to_owned(), "plain"),
        ("${vault:a:b}".to_owned(), "${vault:a:b}"),
        ("${env:PGPASSWORD".to_owned(), "${env:PGPASSWORD"),
    ] {
        assert_eq!(resolve(&providers, &value).unwrap(), expected, "{value}");
    }
    // As with Kafka Connect nothing of a file of a folder is cut off.
    let dir = format!("${{dir:{}:whole}}", dir.path().display());
    assert_eq!(resolve(&providers, &dir).unwrap(), format!("{SECRET}\r\n"));
}

#[test]
fn what_is_not_allowed_or_not_there_is_refused_and_not_told() {
    let (dir, providers) = providers();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("key"), SECRET).unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    symlink(outside.path().join("key"), at("link")).unwrap();
    symlink(outside.path(), at("folder")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(at("pipe")).unwrap();
    fs::write(at("no-text"), [0xff, 0xfe]).unwrap();
    fs::write(at("large"), vec![b'a'; usize::try_from(MAX_FILE).unwrap() + 1]).unwrap();
    fs::write(at("odd"), format!("a=1\nb={SECRET}\\uzz\n")).unwrap();
    fs::write(at("db.properties"), format!("password={SECRET}\n")).unwrap();
    let (dir, outside) = (dir.path().display(), outside.path().display());
    for (value, why) in [
        ("${env:HOME}".to_owned(), "the server's setting the.names does not name HOME"),
        ("${env:NONE}".to_owned(), "no such variable"),
        ("${env:/etc:PGPASSWORD}".to_owned(), "no path"),
        (format!("${{file:{outside}/key}}"), "the.paths"),
        (format!("${{dir:{outside}:key}}"), "the.paths"),
        ("${file:/etc/passwd:root}".to_owned(), "the.paths"),
        ("${file:/dev/zero}".to_owned(), "the.paths"),
        (format!("${{file:{dir}/link}}"), "which leads to"),
        (format!("${{dir:{dir}/folder:key}}"), "which leads to"),
        (format!("${{dir:{dir}:../key}}"), "no name of a file"),
        (format!("${{dir:{dir}:..}}"), "no name of a file"),
        (format!("${{dir:{dir}:}}"), "no name of a file"),
        (format!("${{dir:{dir}:folder/key}}"), "no name of a file"),
        (format!("${{file:{dir}/pipe}}"), "no regular file"),
        (format!("${{file:{dir}/none:a}}"), "No such file"),
        (format!("${{file:{dir}/db.properties:user}}"), "has no key user"),
        (format!("${{file:{dir}/no-text}}"), "no UTF-8"),
        (format!("${{file:{dir}/large}}"), "more than 1048576 bytes"),
        (format!("${{file:{dir}/odd:b}}"), "line 2"),
    ] {
        let error = resolve(&providers, &value).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn all_that_lead_nowhere_are_named_at_once() {
    let (_dir, providers) = providers();
    let given = [("a", "${env:A}"), ("b", "${env:PGPASSWORD}"), ("c", "${env:C}")];
    let given = given.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let problems = providers.resolve(&given).err().unwrap();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["a", "c"]);
}

#[test]
fn what_becomes_a_part_of_keys_is_no_reference() {
    let (_dir, providers) = providers();
    for key in NAMES {
        let given = Properties::from([(key.to_owned(), "a,${env:PGPASSWORD}".to_owned())]);
        let problems = providers.resolve(&given).err().unwrap();
        assert_eq!((problems.len(), problems[0].key.as_str()), (1, key));
        assert!(problems[0].message.ends_with("write it out"), "{}", problems[0].message);
    }
}

#[test]
fn what_was_found_is_taken_out_of_texts() {
    let (_dir, providers) = providers();
    let given = Properties::from([("port".to_owned(), "1${env:PGPASSWORD}".to_owned())]);
    let Resolved { properties, scrub } = providers.resolve(&given).unwrap();
    let message = KeyType::Boolean.check(&properties["port"]).unwrap_err();
    assert!(message.contains(SECRET) && !scrub.text(&message).contains(SECRET), "{message}");
}

#[test]
fn no_value_is_printed_for_debugging() {
    let (_dir, providers) = providers();
    assert!(!format!("{providers:?}").contains(SECRET));
}
