use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const FULL: &str = r#"{"name":"shop","config":{"connector.class":"Fake","tasks.max":2}}"#;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        put(&dir, name, text);
    }
    dir
}

/// A file that has not changed for long.
fn put(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    age(&path, 60);
}

fn age(path: &Path, seconds: u64) {
    let then = SystemTime::now() - Duration::from_secs(seconds);
    File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
}

fn look(dir: &TempDir) -> Look {
    Look::at(dir.path(), &Look::default()).unwrap()
}

fn found(look: &Look, file: &str) -> Found {
    look.files[file].1.clone()
}

fn read(format: Format, text: &str) -> Result<Declaration, String> {
    format.parse(text, "stem")
}

#[test]
fn each_form_says_the_same() {
    let expected = read(Format::Json, FULL).unwrap();
    assert_eq!((expected.name.as_str(), expected.target), ("shop", TargetState::Started));
    assert_eq!(expected.properties["tasks.max"], "2");
    let flat = r#"{"name":"shop","connector.class":"Fake","tasks.max":"2"}"#;
    let inner = r#"{"config":{"name":"shop","connector.class":"Fake","tasks.max":2}}"#;
    let lines = "# the shop\nname=shop\nconnector.class = Fake\ntasks.max: 2\n";
    assert_eq!(read(Format::Json, flat).unwrap(), expected);
    assert_eq!(read(Format::Json, inner).unwrap(), expected);
    assert_eq!(read(Format::Properties, lines).unwrap(), expected);
    // Without a name the file's own counts.
    assert_eq!(read(Format::Properties, "connector.class=Fake").unwrap().name, "stem");
    let paused = r#"{"name":"a","initial_state":"paused","config":{"connector.class":"Fake"}}"#;
    assert_eq!(read(Format::Json, paused).unwrap().target, TargetState::Paused);
}

#[test]
fn what_is_wrong_is_said_and_nothing_of_it_quoted() {
    for (text, why) in [
        ("", "line 1 column 0"),
        (r#"{"config":{"database.password":"s3cret""#, "no JSON at line 1"),
        (r#"["s3cret"]"#, "no JSON object"),
        (r#"{"config":{"connector.class":"Fake","database.password":null}}"#, "is null"),
        (r#"{"config":{"connector.class":"Fake","database.password":["s3cret"]}}"#, "no text"),
        (r#"{"name":"a"}"#, "no connector.class"),
        (r#"{"name":"a","config":{"name":"b","connector.class":"Fake"}}"#, "b in its config"),
        (r#"{"name":7,"config":{"connector.class":"Fake"}}"#, "its name is no text"),
        (r#"{"initial_state":"odd","config":{"connector.class":"Fake"}}"#, "its initial_state"),
        (r#"{"more":"s3cret","config":{"connector.class":"Fake"}}"#, "it has more beside"),
    ] {
        let error = read(Format::Json, text).unwrap_err();
        assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
    }
    assert!(read(Format::Properties, "a=s3cret\\uzz").unwrap_err().starts_with("line 1"));
}

#[test]
fn other_files_are_no_connectors() {
    let names = [".hidden.json", "a.json~", ".a.json.swp", "a.txt", "README", ".json", "a.JSON"];
    let dir = folder(&names.map(|name| (name, FULL)));
    assert_eq!(look(&dir), Look::default());
    // A mounted volume has links to files elsewhere.
    let elsewhere = folder(&[("a.json", FULL)]);
    symlink(elsewhere.path().join("a.json"), dir.path().join("a.json")).unwrap();
    assert!(matches!(found(&look(&dir), "a.json"), Found::Read(Ok(_))));
    assert!(Look::at(&dir.path().join("none"), &Look::default()).is_err());
}

#[test]
fn what_stands_there_and_is_no_file_is_wrong_and_neither_gone_nor_in_the_way_of_others() {
    let dir = folder(&[("good.json", FULL)]);
    fs::create_dir(dir.path().join("folder.json")).unwrap();
    symlink("nowhere", dir.path().join("dangling.json")).unwrap();
    symlink("loop.json", dir.path().join("loop.json")).unwrap();
    fs::write(dir.path().join(OsStr::from_bytes(b"z\xff.json")), FULL).unwrap();
    let look = look(&dir);
    let wanted = look.wanted();
    assert!(wanted.connectors.contains_key("shop"));
    let wrong: Vec<_> = wanted.wrong.keys().copied().collect();
    assert_eq!(wrong, ["dangling.json", "folder.json", "loop.json", "z\u{fffd}.json"]);
}

#[test]
fn a_file_that_is_being_written_is_taken_when_it_rests() {
    let dir = folder(&[]);
    let path = dir.path().join("a.properties");
    // Half of a file of this form reads as a whole one.
    fs::write(&path, "connector.class=Fake\n").unwrap();
    let first = look(&dir);
    assert_eq!(found(&first, "a.properties"), Found::Unsettled);
    fs::write(&path, "connector.class=Fake\ntasks.max=2\n").unwrap();
    let second = Look::at(dir.path(), &first).unwrap();
    assert_eq!(found(&second, "a.properties"), Found::Unsettled);
    let third = Look::at(dir.path(), &second).unwrap();
    let Found::Read(Ok(read)) = found(&third, "a.properties") else { panic!("{third:?}") };
    assert_eq!(read.properties["tasks.max"], "2");
    // One that has rested for long is taken at once, one from the future when two looks agree.
    age(&path, 60);
    assert_eq!(found(&look(&dir), "a.properties"), Found::Read(Ok(read.clone())));
    let then = SystemTime::now() + Duration::from_secs(3600);
    File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
    let first = look(&dir);
    assert_eq!(found(&first, "a.properties"), Found::Unsettled);
    let second = Look::at(dir.path(), &first).unwrap();
    assert_eq!(found(&second, "a.properties"), Found::Read(Ok(read)));
}

#[test]
fn a_file_that_cannot_be_used_disturbs_no_other() {
    let dir = folder(&[("a.json", FULL), ("b.json", "{"), ("c.properties", "a=1")]);
    fs::write(dir.path().join("d.json"), [0xff]).unwrap();
    age(&dir.path().join("d.json"), 60);
    put(&dir, "large.json", &" ".repeat(usize::try_from(MAX_FILE).unwrap() + 1));
    let look = look(&dir);
    let Wanted { connectors: wanted, wrong } = look.wanted();
    assert_eq!(wanted.keys().copied().collect::<Vec<_>>(), ["shop"]);
    let files: Vec<_> = wrong.keys().copied().collect();
    assert_eq!(files, ["b.json", "c.properties", "d.json", "large.json"]);
}

#[test]
fn two_files_of_one_connector_are_both_wrong() {
    let dir = folder(&[("a.json", FULL), ("b.json", FULL), ("c.json", FULL)]);
    let look = look(&dir);
    let Wanted { connectors: wanted, wrong } = look.wanted();
    assert!(wanted.is_empty());
    assert_eq!(wrong.len(), 3);
    assert_eq!(wrong["b.json"], "connector shop is wanted by a.json, too");
}
