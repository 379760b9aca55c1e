//! A simulated database that lives in a folder: it goes on by the clock, and a process that asks it may be killed.
//!
//! What a simulation is after n actions depends on its settings and on n alone, so all that the folder must hold
//! is the settings and a number. The number is written before anybody can see what it leads to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highwater_oracle::Session;
use parking_lot::Mutex;
use serde_json::Value;

use crate::fault::FaultPlan;
use crate::quirk::Quirk;
use crate::settings::SimulationSettings;
use crate::simulation::Simulation;

/// The settings of a database in a folder.
const SETTINGS: &str = "simulation.json";

/// How many actions were done.
const ACTIONS: &str = "actions";

/// How often the database goes on.
const TICK: Duration = Duration::from_millis(20);

/// What the settings of a folder say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderSettings {
    /// What is simulated.
    pub simulation: SimulationSettings,
    /// When the first action was done, in milliseconds since 1970.
    pub began_ms: u64,
    /// Actions a second.
    pub rate: u64,
    /// Actions after which the database rests.
    pub actions: u64,
    /// One call in so many fails; 0 for none.
    pub faults: u64,
}

impl FolderSettings {
    /// Reads them.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what it should be.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(SETTINGS))?;
        let read: Value = serde_json::from_str(&text)?;
        let number = |name: &str| read[name].as_u64().unwrap_or_default();
        let small = |name: &str| u32::try_from(number(name)).unwrap_or_default();
        let names = read["quirks"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let quirk = |name| {
            let unknown = || io::Error::other(format!("{SETTINGS}: no quirk is named {name}"));
            Quirk::named(name).ok_or_else(unknown)
        };
        let simulation = SimulationSettings {
            threads: small("threads").max(1),
            pdbs: small("pdbs"),
            quirks: names.map(quirk).collect::<io::Result<_>>()?,
            ..SimulationSettings::seeded(number("seed"))
        };
        let began_ms = number("began_ms");
        let (rate, actions) = (number("actions_per_second"), number("actions"));
        Ok(Self { simulation, began_ms, rate, actions, faults: number("faults_one_in") })
    }

    /// How many actions are due now.
    fn due(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let passed = now_ms.saturating_sub(self.began_ms);
        (passed.saturating_mul(self.rate) / 1_000).min(self.actions)
    }
}

/// How many actions the database of a folder has done.
///
/// # Errors
/// When the number cannot be read.
pub fn actions_of(folder: &Path) -> io::Result<u64> {
    match std::fs::read_to_string(folder.join(ACTIONS)) {
        // One who was killed behind making it wrote nothing.
        Ok(text) if text.is_empty() => Ok(0),
        Ok(text) => text.trim().parse().map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// The number of actions, as the folder keeps it.
struct Counter {
    file: File,
    written: u64,
}

impl Counter {
    /// What is in the page cache outlives the process. A number has always the same width.
    fn reach(&mut self, actions: u64) -> io::Result<()> {
        if actions <= self.written {
            return Ok(());
        }
        self.written = actions;
        self.file.write_all_at(format!("{actions:020}\n").as_bytes(), 0)
    }
}

/// A database of a folder that goes on in this process.
#[derive(Clone)]
pub struct RunningDatabase {
    simulation: Simulation,
    counter: Arc<Mutex<Counter>>,
}

impl RunningDatabase {
    /// Takes the database up where the folder says, and lets it go on.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let settings = FolderSettings::read(folder)?;
        let written = actions_of(folder)?;
        let counter = folder.join(ACTIONS);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(counter)?;
        let simulation = Simulation::at(settings.simulation.clone(), written);
        if settings.faults > 0 {
            let seed = settings.simulation.seed.wrapping_add(written);
            simulation.plan_faults(Some(FaultPlan::recoverable(seed, settings.faults)));
        }
        let database =
            Self { simulation, counter: Arc::new(Mutex::new(Counter { file, written })) };
        let going = database.clone();
        std::thread::Builder::new().name("simulation".to_owned()).spawn(move || {
            while going.go_on(&settings).is_ok_and(|is_at_rest| !is_at_rest) {
                std::thread::sleep(TICK);
            }
        })?;
        Ok(database)
    }

    /// Does what is due, and says whether that was all.
    fn go_on(&self, settings: &FolderSettings) -> io::Result<bool> {
        let now = self.simulation.actions();
        if now >= settings.actions && !self.has_commit_now() {
            return Ok(true);
        }
        // A little at a time, so that sessions are not kept waiting after a pause.
        let due = settings.due().min(now + 200);
        let next = if now >= settings.actions { now + 1 } else { due };
        self.counter.lock().reach(next)?;
        self.simulation.run_to(next);
        Ok(false)
    }

    /// Whether a commit has the current SCN. No step reads that far, since redo of it may still come; a real
    /// database takes another SCN when it is asked for the current one.
    fn has_commit_now(&self) -> bool {
        let now = self.simulation.scn();
        let histories = self.simulation.history().into_iter();
        histories.flat_map(|history| history.transactions).any(|it| it.commit.scn == now)
    }

    /// A session with it.
    #[expect(clippy::expect_used, reason = "what cannot be remembered must not be shown")]
    pub fn session(&self) -> Box<dyn Session> {
        let counter = Arc::clone(&self.counter);
        let session = self.simulation.session().between_rows(move |simulation, _| {
            counter
                .lock()
                .reach(simulation.actions())
                .expect("the folder of a simulation is there");
        });
        Box::new(session)
    }
}
