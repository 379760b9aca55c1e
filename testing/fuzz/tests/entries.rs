//! Every entry on its corpus, and on seeded mutations of it. `FUZZ_SEED` chooses the mutations (1),
//! and `FUZZ_SECONDS` how long they go on in all (10).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::path::PathBuf;
use std::time::Duration;

use highwater_fuzz::trial::{Memory, Trial};
use highwater_fuzz::{corpus, entries};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MEMORY: Memory = Memory {
    reset: || {
        ALLOCATOR.reset_peak_usage();
        ALLOCATOR.current_usage()
    },
    peak: || ALLOCATOR.peak_usage(),
};

/// What any input may take: buffers of a fixed size that are made whatever comes.
fn room(name: &str) -> usize {
    match name {
        // An LZ4 frame says the size of its blocks, up to 4 MiB, and has two of them.
        "compression" | "record-batches" | "kafka-frames" => 24 << 20,
        // The regular expressions of a list have a ceiling each.
        "include-list" | "postgres-config" | "subject-rules" | "server-settings"
        | "transform-chain" => 64 << 20,
        // As many values as the schema has parts, of which a short text makes many.
        "avro" => 32 << 20,
        _ => 1 << 20,
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// One test, so that nothing else of this program takes memory meanwhile.
#[test]
fn no_input_harms() {
    a_fault_is_seen();
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let time = Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(10));
    println!("FUZZ_SEED={seed}");
    let entries = entries();
    let share = time / u32::try_from(entries.len()).unwrap();
    let mut faults = Vec::new();
    for entry in entries {
        let failures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
        let trial = Trial { entry, memory: MEMORY, room: room(entry.name), failures };
        let inputs = match corpus::read(entry.name) {
            Ok(inputs) => inputs,
            Err(error) => {
                faults.push(format!("{}: no corpus: {error}", entry.name));
                continue;
            }
        };
        for (path, input) in &inputs {
            faults.extend(trial.run(input).err().map(|fault| format!("{path}: {fault}")));
        }
        let inputs: Vec<_> = inputs.into_iter().map(|(_, input)| input).collect();
        match trial.mutate(seed, &inputs, share) {
            Ok(runs) => println!("{}: {} inputs, {runs} mutations", entry.name, inputs.len()),
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "FUZZ_SEED={seed}\n{}", faults.join("\n"));
}

/// The same seed says the same, so that a fault that was seen can be seen again.
#[test]
fn mutations_come_back_with_their_seed() {
    use highwater_fuzz::chance::Chance;
    let corpus = vec![b"a seed that is long enough".to_vec(), vec![0; 9]];
    let inputs = |seed| {
        let mut chance = Chance::new(seed);
        (0..100).map(|_| chance.mutated(&corpus)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
}

/// The harness sees a panic and a length that is believed, and says where the input is.
fn a_fault_is_seen() {
    use highwater_fuzz::Entry;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz-of-itself");
    let trial = |run| Trial {
        entry: Entry { name: "itself", run },
        memory: MEMORY,
        room: 8 << 20,
        failures: folder.clone(),
    };
    // Nobody needs to read of the panic that is wanted.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let fault = trial(|input| assert!(input.len() < 3)).run(b"four").unwrap_err();
    std::panic::set_hook(hook);
    assert!(fault.contains("panicked") && fault.contains("itself-"), "{fault}");
    let fault = trial(|_| drop(std::hint::black_box(vec![1_u8; 64 << 20]))).run(b"").unwrap_err();
    assert!(fault.contains("bytes, "), "{fault}");
    assert!(trial(|_| {}).run(b"").is_ok());
    std::fs::remove_dir_all(folder).unwrap();
}
