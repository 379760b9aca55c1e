use proptest::prelude::*;

use super::*;
use crate::config_records;
use crate::connector_files::Stamp;
use crate::pipeline::Properties;
use crate::target_state::TargetState;

fn properties(name: &str, version: u8) -> Properties {
    [("name", name.to_owned()), ("connector.class", "Fake".to_owned()), ("v", version.to_string())]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
}

fn wants(name: &str, version: u8) -> Found {
    let (properties, target) = (properties(name, version), TargetState::Started);
    Found::Read(Ok(Declaration { name: name.to_owned(), properties, target }))
}

fn look(files: &[(&str, Found)]) -> Look {
    let entry =
        |(name, found): &(&str, Found)| ((*name).to_owned(), (Stamp::default(), found.clone()));
    Look { files: files.iter().map(entry).collect() }
}

/// Does what is to be done, as a worker does.
fn apply(state: &mut ConfigState, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Put(declaration, mark) => {
                let Declaration { name, properties, target } = declaration;
                state.apply_written(&[config_records::put_mark("c", &name, Some(&mark))]);
                state.apply_written(&config_records::put_connector(
                    "c",
                    &name,
                    &properties,
                    target,
                    &[],
                ));
            }
            Change::Delete(name) => {
                state.apply_written(&config_records::delete("c", &name, state.tasks(&name)));
                state.apply_written(&[config_records::put_mark("c", &name, None)]);
            }
            Change::Release(name) => {
                state.apply_written(&[config_records::put_mark("c", &name, None)])
            }
        }
    }
}

fn made_by_hand(name: &str) -> ConfigState {
    let mut state = ConfigState::default();
    let target = TargetState::Started;
    state.apply_written(&config_records::put_connector(
        "c",
        name,
        &properties(name, 0),
        target,
        &[],
    ));
    state
}

/// Looks one after the other, with what each leads to.
fn follow(state: &mut ConfigState, looks: &[Look]) {
    let mut before = None;
    for look in looks {
        let changes = changes(state, before, look);
        apply(state, changes);
        before = Some(look);
    }
}

fn versions(state: &ConfigState) -> Vec<(&str, &str)> {
    state.names().map(|name| (name, state.properties(name).unwrap()["v"].as_str())).collect()
}

#[test]
fn connectors_are_made_changed_and_deleted_with_their_files() {
    let mut state = ConfigState::default();
    let both = look(&[("a", wants("a", 1)), ("b", wants("b", 1))]);
    follow(&mut state, std::slice::from_ref(&both));
    assert_eq!(versions(&state), [("a", "1"), ("b", "1")]);
    assert_eq!(changes(&state, None, &both), []);
    let changed = look(&[("a", wants("a", 2))]);
    follow(&mut state, &[both.clone(), changed.clone()]);
    assert_eq!(versions(&state), [("a", "2"), ("b", "1")], "one look is not enough to lose b");
    follow(&mut state, &[changed.clone(), changed]);
    assert_eq!(versions(&state), [("a", "2")]);
    assert_eq!(state.marks().len(), 1);
}

#[test]
fn a_folder_without_files_deletes_nothing() {
    let mut state = ConfigState::default();
    follow(&mut state, &[look(&[("a", wants("a", 1))])]);
    follow(&mut state, &[look(&[]), look(&[]), look(&[])]);
    assert_eq!(versions(&state), [("a", "1")]);
}

#[test]
fn a_connector_that_is_deleted_by_hand_is_let_go_though_the_folder_is_empty() {
    let mut state = ConfigState::default();
    follow(&mut state, &[look(&[("a", wants("a", 1))])]);
    let deleted = config_records::delete("c", "a", state.tasks("a"));
    state.apply_written(&deleted);
    follow(&mut state, &[look(&[])]);
    assert_eq!(state.mark("a"), None);
}

#[test]
fn what_others_made_is_changed_and_let_go() {
    let mut state = made_by_hand("a");
    let file = ("x", wants("x", 1));
    follow(&mut state, &[look(&[("a", wants("a", 7)), file.clone()])]);
    assert_eq!(versions(&state), [("a", "7"), ("x", "1")]);
    assert!(!state.mark("a").unwrap().made);
    let gone = look(&[file]);
    follow(&mut state, &[gone.clone(), gone]);
    assert_eq!(versions(&state), [("a", "7"), ("x", "1")]);
    assert_eq!(state.mark("a"), None);
}

#[test]
fn a_file_that_is_bad_now_keeps_its_connector() {
    let mut state = ConfigState::default();
    follow(&mut state, &[look(&[("a", wants("a", 1)), ("b", wants("b", 1))])]);
    let bad = look(&[("a", Found::Read(Err("odd".to_owned()))), ("b", Found::Unsettled)]);
    follow(&mut state, &[bad.clone(), bad.clone(), bad]);
    assert_eq!(versions(&state), [("a", "1"), ("b", "1")]);
    // Two that want one are both wrong, and it stays.
    let twice = look(&[("a", wants("a", 2)), ("b", wants("a", 3))]);
    follow(&mut state, &[twice.clone(), twice]);
    assert_eq!(versions(&state), [("a", "1")], "b is wanted by no file any more");
}

#[test]
fn a_file_under_another_name_takes_its_connector_along() {
    let mut state = ConfigState::default();
    follow(&mut state, &[look(&[("old", wants("a", 1))])]);
    let renamed = look(&[("new", wants("a", 1))]);
    follow(&mut state, &[renamed.clone(), renamed]);
    assert_eq!(versions(&state), [("a", "1")]);
    assert_eq!(*state.mark("a").unwrap(), Mark { file: "new".to_owned(), made: true });
}

#[test]
fn a_start_that_died_in_between_goes_on() {
    // The mark was written, and the connector was not.
    let mut state = ConfigState::default();
    let mark = Mark { file: "a".to_owned(), made: true };
    state.apply_written(&[config_records::put_mark("c", "a", Some(&mark))]);
    follow(&mut state.clone(), &[look(&[("a", wants("a", 1))])]);
    let other = look(&[("b", wants("b", 1))]);
    follow(&mut state, &[other.clone(), other]);
    assert_eq!((state.mark("a"), versions(&state)), (None, vec![("b", "1")]));
}

fn any_look() -> impl Strategy<Value = Look> {
    let found = prop_oneof![
        4 => (0..3_u8, 0..3_u8).prop_map(|(name, version)| wants(&format!("c{name}"), version)),
        1 => Just(Found::Unsettled),
        1 => Just(Found::Read(Err("odd".to_owned()))),
    ];
    let files = prop::collection::btree_map("f[0-3]", found, 0..4);
    files.prop_map(|files| Look {
        files: files.into_iter().map(|(name, found)| (name, (Stamp::default(), found))).collect(),
    })
}

proptest! {
    /// Whatever the folder went through: once it rests, the connectors are what its files say, and what
    /// others made is there still.
    #[test]
    fn connectors_end_as_the_files_say(looks in prop::collection::vec(any_look(), 0..12)) {
        let mut state = made_by_hand("c0");
        let resting = look(&[("f1", wants("c1", 9)), ("f2", wants("other", 9))]);
        let rest = [resting.clone(), resting.clone(), resting.clone()];
        let mut all = looks;
        all.extend(rest);
        for at in 0..all.len() {
            let before = at.checked_sub(1).map(|before| &all[before]);
            let changes = changes(&state, before, &all[at]);
            apply(&mut state, changes);
        }
        let names: Vec<_> = state.names().collect();
        prop_assert_eq!(names, ["c0", "c1", "other"]);
        prop_assert_eq!(&state.properties("c1").unwrap()["v"], "9");
        prop_assert_eq!(changes(&state, Some(&resting), &resting), []);
    }
}
