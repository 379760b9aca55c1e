//! Any commits, of several groups at once, killed at any moment: what was answered is there, and nothing
//! older comes back.

use std::collections::BTreeMap;

use highwater_protocol::ErrorCode;

use crate::rig::{Rig, commit};

const GROUPS: [&str; 3] = ["a", "b", "c"];

/// A small generator: the same numbers for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn lives() -> u64 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answered_commit_is_lost() {
    let mut numbers = Numbers(20_261_130);
    let mut rig = Rig::start().await;
    // What was sent last, and what was answered last; both rise.
    let mut sent: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    let mut answered: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    for _ in 0..lives() {
        let mut waiting = Vec::new();
        for _ in 0..numbers.below(60) {
            let group = GROUPS[usize::try_from(numbers.below(3)).unwrap()];
            let partition = i32::try_from(numbers.below(3)).unwrap();
            let offset = sent.get(&(group, partition)).map_or(1, |offset| offset + 1);
            sent.insert((group, partition), offset);
            let answer = rig.groups().commit(9, commit(group, partition, offset));
            waiting.push(((group, partition), offset, answer));
            if numbers.below(3) == 0 {
                tokio::task::yield_now().await;
            }
        }
        // Some are waited for; the kill meets the others wherever they are.
        let patience = usize::try_from(numbers.below(60)).unwrap();
        for (key, offset, answer) in waiting.into_iter().take(patience) {
            let answer = answer.answer().await.expect("the coordinator runs");
            assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
            answered.insert(key, offset);
        }
        rig = rig.kill().await;
        for (group, partition) in sent.keys().copied() {
            let found = rig.offset(group, partition).committed_offset;
            let least = answered.get(&(group, partition)).copied().unwrap_or(-1);
            let most = sent[&(group, partition)];
            assert!(
                (least..=most).contains(&found),
                "{group}-{partition}: {found}, not {least} to {most}"
            );
            answered.insert((group, partition), found.max(least));
        }
    }
}
