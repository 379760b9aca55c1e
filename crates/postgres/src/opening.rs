//! A start: look at everything, decide, and only then change anything at the server.
//!
//! The order is publication, intent, slot, position: a slot that is made before its publication
//! can never be read (the publication is looked up as of the log's time, case P23), and a slot
//! that is made before its intent is stored belongs to nobody after a crash (rule P3).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{
    ConnectorError, ErrorKind, SourceOffset, Start, TableDescription, TaskStore,
};
use tokio::time::timeout;

use crate::catalog::Catalog;
use crate::debezium_offset::is_debeziums;
use crate::engine::Output;
use crate::envelope::Envelope;
use crate::error::{begin_again, code, drop_statement, sqlstate, unreadable};
use crate::lsn::Lsn;
use crate::membership::{Gap, Membership};
use crate::name::{TableName, quoted};
use crate::offset::{State, StoredOffset};
use crate::preflight::{self, Capacity, Found, Plan, Publication, Published, Table};
use crate::publication_change::{self, Capture};
use crate::relation::captured;
use crate::session::{QueryError, Session, TextRow};
use crate::settings::{Settings, SnapshotMode};
use crate::snapshot::{Exported, Maker, Snapshot, progress_of};
use crate::start_decision::{Action, Server, Situation, Slot, decide};
use crate::stream::{Behind, Stream};
use crate::tables::Tables;
use crate::timeline;
use crate::topic_names::TopicNames;
use crate::watch::Watch;

/// How often and how long a slot is waited for that somebody reads: our own walsender of a
/// moment ago, mostly.
const ACTIVE_TRIES: u32 = 20;
const ACTIVE_PAUSE: Duration = Duration::from_millis(250);

/// What a start leads to.
pub(crate) enum Opened {
    /// Tables are read first.
    Snapshot(Box<Snapshot>),
    /// Changes are read.
    Stream(Box<Stream>),
}

/// Both connections, and who is at their other end.
pub(crate) struct Connections {
    pub(crate) session: Session,
    pub(crate) catalog: Catalog,
    pub(crate) server: Server,
}

impl Connections {
    /// Connects twice and asks who is there.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, ConnectorError> {
        let mut session = Session::connect(&settings.login).await?;
        let server = identify(&mut session).await?;
        let catalog = Catalog::connect(&settings.login).await?;
        Ok(Self { session, catalog, server })
    }
}

/// Starts.
///
/// # Errors
/// Refusals of rule P3 and of the preflight; failures of the server.
pub(crate) async fn open(
    settings: &Arc<Settings>,
    start: Start,
    store: &dyn TaskStore,
) -> Result<Opened, ConnectorError> {
    let stored = start.offset.as_ref().map(|offset| read(offset, settings)).transpose()?;
    let Connections { session, catalog, server } = Connections::open(settings).await?;
    let capacity = catalog.capacity().await?;
    preflight::check_primary(&capacity)?;
    let slot = released(&catalog, &settings.slot).await?;
    let mut action = decide(&Situation {
        slot_name: &settings.slot,
        stored: stored.as_ref(),
        slot: slot.as_ref(),
        server: &server,
        adopt: settings.adopt,
    })?;
    busy(&settings.slot, slot.as_ref())?;
    let known = &start.tables;
    let (names, publication) =
        publish(settings, &catalog, &capacity, known, &mut action, store).await?;
    let capture = Capture::of(&publication, &names);
    let membership = capture.membership.clone();
    let watch = Watch::spawn(Arc::clone(settings), capture);
    let mut opening = Opening { settings, store, session, catalog, server, membership };
    let (offset, exported) = match action {
        Action::Begin => opening.begin(false, &names).await?,
        Action::DropAndBegin => opening.begin(true, &names).await?,
        Action::Adopt(lsn) => (opening.stored(opening.offset(State::Streaming, lsn)).await?, None),
        Action::Resume(offset) => (opening.looked(*offset).await?, None),
    };
    let mut maker = maker(settings, start, &opening.server);
    for table in &names {
        maker.output.names.topic(table)?;
    }
    opening.go_on(offset, exported, maker, &publication.tables, watch).await
}

struct Opening<'a> {
    settings: &'a Arc<Settings>,
    store: &'a dyn TaskStore,
    session: Session,
    catalog: Catalog,
    server: Server,
    membership: Membership,
}

/// Name and point of an exported snapshot.
type Export = (String, Lsn);

impl Opening<'_> {
    fn offset(&self, state: State, lsn: Lsn) -> StoredOffset {
        StoredOffset {
            state,
            slot: Some(self.settings.slot.clone()),
            system_id: Some(self.server.system_id.clone()),
            timeline: Some(self.server.timeline),
            database: Some(self.server.database.clone()),
            publication: Some(self.membership.clone()),
            lsn,
            partial: None,
            snapshot: Vec::new(),
            rest: serde_json::Map::new(),
        }
    }

    async fn stored(&self, offset: StoredOffset) -> Result<StoredOffset, ConnectorError> {
        self.store.store(&offset.write()).await?;
        Ok(offset)
    }

    /// The offset with what the publication is now: what becomes of it later is compared with that,
    /// also when nothing else is stored until then.
    async fn looked(&self, mut offset: StoredOffset) -> Result<StoredOffset, ConnectorError> {
        if offset.publication.as_ref() == Some(&self.membership) {
            return Ok(offset);
        }
        offset.publication = Some(self.membership.clone());
        self.stored(offset).await
    }

    async fn begin(
        &mut self,
        drop_first: bool,
        captured: &[TableName],
    ) -> Result<(StoredOffset, Option<Export>), ConnectorError> {
        let slot = &self.settings.slot;
        if drop_first {
            drop_slot(&self.catalog, slot).await?;
        }
        self.stored(self.offset(State::Intent, Lsn::default())).await?;
        let snapshot = self.settings.snapshot == SnapshotMode::Initial;
        let (name, point) = self.create_slot(slot, false, snapshot).await?;
        let state = if snapshot { State::Snapshot } else { State::Streaming };
        let mut offset = self.offset(state, point);
        if snapshot {
            offset.snapshot = progress_of(captured);
        }
        let offset = self.stored(offset).await?;
        Ok((offset, snapshot.then_some((name, point))))
    }

    /// Makes a slot; gives the name of the exported snapshot, if one was asked for, and the
    /// slot's consistent point.
    async fn create_slot(
        &mut self,
        name: &str,
        temporary: bool,
        export: bool,
    ) -> Result<Export, ConnectorError> {
        let bound = self.settings.slot_timeout;
        // The server waits for each open transaction as for a lock.
        let limit = format!("SET lock_timeout = {}", bound.as_millis());
        self.session.query(&limit).await?;
        let temporary = if temporary { " TEMPORARY" } else { "" };
        let export = if export { "EXPORT_SNAPSHOT" } else { "NOEXPORT_SNAPSHOT" };
        let sql = format!(
            "CREATE_REPLICATION_SLOT {}{temporary} LOGICAL pgoutput {export}",
            quoted(name)
        );
        tracing::info!(slot = name, "making the slot; open transactions have to end first");
        match timeout(bound * 2 + Duration::from_secs(30), self.session.query_unbounded(&sql)).await
        {
            Ok(Ok(rows)) => created(&rows),
            Ok(Err(QueryError::Refused(error)))
                if error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE =>
            {
                Err(self.waits(name).await)
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(self.waits(name).await),
        }
    }

    async fn waits(&self, slot: &str) -> ConnectorError {
        let open = self.catalog.open_transactions().await.unwrap_or_default();
        ConnectorError::again(
            code::SLOT_WAITS,
            ErrorKind::Source,
            format!(
                "slot {slot} could not be made within {} s, because of {}",
                self.settings.slot_timeout.as_secs(),
                if open.is_empty() { "open transactions".to_owned() } else { open.join(", ") }
            ),
        )
    }

    async fn go_on(
        mut self,
        offset: StoredOffset,
        exported: Option<Export>,
        maker: Maker,
        published: &[Published],
        watch: Watch,
    ) -> Result<Opened, ConnectorError> {
        if offset.state != State::Snapshot {
            let settings = Arc::clone(self.settings);
            let stream =
                Stream::start(settings, self.session, maker, &offset, Behind::Stored, watch)
                    .await?;
            return Ok(Opened::Stream(Box::new(stream)));
        }
        let ((name, point), temporary) = match exported {
            Some(exported) => (exported, None),
            None => {
                let slot = format!("hw_{:016x}", rand::random::<u64>());
                (self.create_slot(&slot, true, true).await?, Some(slot))
            }
        };
        let exported = Exported { holder: self.session, name, temporary, point };
        let snapshot =
            Snapshot::open(exported, self.catalog, maker, offset, published, watch).await?;
        Ok(Opened::Snapshot(Box::new(snapshot)))
    }
}

/// Drops a slot.
pub(crate) async fn drop_slot(catalog: &Catalog, slot: &str) -> Result<(), ConnectorError> {
    catalog.statement("dropping the slot", &drop_statement(slot)).await
}

/// Reads a stored offset.
///
/// # Errors
/// When it is none of ours, or Debezium's and nobody said in which forms its records are.
pub(crate) fn read(
    offset: &SourceOffset,
    settings: &Settings,
) -> Result<StoredOffset, ConnectorError> {
    if is_debeziums(offset) && settings.forms.is_none() {
        return Err(forms_unstated(offset));
    }
    StoredOffset::read(offset).map_err(|error| {
        ConnectorError::stop(
            code::OFFSET,
            ErrorKind::Position,
            format!("the stored offset cannot be read: {error}"),
            begin_again(None),
        )
    })
}

/// Other keys than Debezium's would go to other partitions, past what compaction has to join.
pub(crate) fn forms_unstated(offset: &SourceOffset) -> ConnectorError {
    ConnectorError::stop(
        code::FORMS,
        ErrorKind::Configuration,
        format!(
            "the offset {offset} is Debezium's, and the configuration does not state the \
             forms of the keys and values that Debezium wrote"
        ),
        "set topic.routing=table, key.converter, value.converter, decimal.handling.mode, \
         time.precision.mode and binary.handling.mode to what the Debezium connector had; to begin \
         with other forms instead, delete the offset",
    )
    .keeping(
        "the stored offset and everything already in the log; nothing was read from the source",
    )
}

fn maker(settings: &Settings, start: Start, server: &Server) -> Maker {
    Maker {
        output: Output {
            names: TopicNames::new(&settings.routing),
            tombstones: settings.tombstones,
            forms: settings.forms,
            schema: Arc::from(highwater_connector::schema_topic(&settings.prefix)),
            generation: start.generation,
            record_limit: settings.record_limit,
        },
        envelope: Envelope::new(
            &settings.prefix,
            &server.database,
            &settings.placeholder,
            settings.forms.is_some(),
        ),
        tables: Tables::new(start.tables),
    }
}

/// The slot, after waiting a moment for somebody who is about to let go of it.
pub(crate) async fn released(
    catalog: &Catalog,
    name: &str,
) -> Result<Option<Slot>, ConnectorError> {
    let mut slot = catalog.slot(name).await?;
    for _ in 0..ACTIVE_TRIES {
        if slot.as_ref().is_none_or(|slot| slot.active_pid.is_none()) {
            break;
        }
        tokio::time::sleep(ACTIVE_PAUSE).await;
        slot = catalog.slot(name).await?;
    }
    Ok(slot)
}

fn busy(name: &str, slot: Option<&Slot>) -> Result<(), ConnectorError> {
    match slot.and_then(|slot| slot.active_pid) {
        None => Ok(()),
        Some(pid) => Err(ConnectorError::again(
            code::SLOT_ACTIVE,
            ErrorKind::Source,
            format!(
                "slot {name} is read by process {pid} of the server; two readers cannot share one"
            ),
        )),
    }
}

/// Checks, makes or widens the publication; gives the captured tables and the publication.
///
/// A table that joins a running capture is read in a snapshot of its own: its rows from before are
/// in no log that the slot still gives. That it waits is stored before it is published, so that a
/// crash in between does not forget it.
async fn publish(
    settings: &Settings,
    catalog: &Catalog,
    capacity: &Capacity,
    known: &[TableDescription],
    action: &mut Action,
    store: &dyn TaskStore,
) -> Result<(Vec<TableName>, Publication), ConnectorError> {
    let tables = catalog.tables().await?;
    let found = catalog.publication(&settings.publication).await?;
    let (first, new_slots) = match action {
        Action::Begin => (true, 1),
        Action::DropAndBegin => (true, 0),
        Action::Adopt(_) => (false, 0),
        Action::Resume(offset) => (false, i64::from(offset.state == State::Snapshot)),
    };
    let publication = found.as_ref();
    let plan = preflight::check(
        settings,
        &Found { capacity, tables: &tables, publication, new_slots, first },
    )?;
    if let (Some(publication), Action::Resume(offset)) = (publication, &mut *action) {
        let mut joining = interrupted(settings, publication, &tables, offset)?;
        missed(settings, publication, &tables, known, &plan, offset)?;
        if let (Plan::Add(added), SnapshotMode::Initial) = (&plan, settings.snapshot) {
            joining.extend(added.iter().cloned());
        }
        if !joining.is_empty() {
            offset.join(&joining);
            store.store(&offset.write()).await?;
        }
    }
    let publication = match (plan.statement(settings), found) {
        (None, Some(found)) => found,
        (statement, _) => carry_out(settings, catalog, statement, &plan).await?,
    };
    if let Action::Resume(offset) = action {
        offset.expand(|table| published_partitions(table, &publication, &tables));
    }
    let names = captured_names(settings, &publication, &tables);
    Ok((names, publication))
}

/// Tables that were not in the publication all the time since the offset was stored, or not as a
/// whole, and are read anew.
fn interrupted(
    settings: &Settings,
    publication: &Publication,
    tables: &[Table],
    offset: &StoredOffset,
) -> Result<Vec<TableName>, ConnectorError> {
    let now = Membership::of(publication, &captured_names(settings, publication, tables));
    match offset.publication.as_ref().and_then(|before| before.gap(&now)) {
        None => Ok(Vec::new()),
        Some(Gap::Tables(tables)) if settings.reads_anew() => Ok(tables),
        Some(gap) => Err(publication_change::gap_error(settings, &gap)),
    }
}

/// A table that was captured before and was taken out of the publication while nobody looked: what
/// it changed since is nowhere, unless it is read anew.
fn missed(
    settings: &Settings,
    publication: &Publication,
    tables: &[Table],
    known: &[TableDescription],
    plan: &Plan,
    offset: &StoredOffset,
) -> Result<(), ConnectorError> {
    let read_anew = |name: &TableName| {
        settings.snapshot == SnapshotMode::Initial
            && matches!(plan, Plan::Add(joining) if joining.contains(name))
    };
    let known: HashSet<&str> = known.iter().map(|known| known.table.as_str()).collect();
    let described = |table: &&Table| {
        let published = offset.publication.as_ref().is_some_and(|before| before.has(&table.name));
        (published || known.contains(table.name.to_string().as_str()))
            && captured(&settings.filter, &table.name, &names_above(table, tables))
    };
    let described = tables.iter().filter(described);
    let mut taken = publication_change::taken_out(described, publication, tables);
    taken.retain(|name| !read_anew(name));
    if taken.is_empty() {
        return Ok(());
    }
    Err(publication_change::taken_error(settings, &taken))
}

async fn carry_out(
    settings: &Settings,
    catalog: &Catalog,
    statement: Option<String>,
    plan: &Plan,
) -> Result<Publication, ConnectorError> {
    if let Some(statement) = statement {
        tracing::info!(?plan, statement, "changing the publication");
        catalog.statement(&statement, &statement).await?;
    }
    catalog.publication(&settings.publication).await?.ok_or_else(|| {
        ConnectorError::again(
            code::PUBLICATION,
            ErrorKind::Source,
            format!("publication {} went away while the task started", settings.publication),
        )
    })
}

/// The published partitions of a table that is not published under its own name.
fn published_partitions(
    table: &TableName,
    publication: &Publication,
    tables: &[Table],
) -> Vec<TableName> {
    let Some(root) = tables.iter().find(|other| other.name == *table) else { return Vec::new() };
    if publication.tables.iter().any(|published| published.name == *table) {
        return Vec::new();
    }
    let below = |published: &&Published| {
        let part = tables.iter().find(|other| other.oid == published.oid);
        part.is_some_and(|part| part.ancestors.contains(&root.oid))
    };
    publication.tables.iter().filter(below).map(|published| published.name.clone()).collect()
}

/// Names of the partitioned tables above one.
fn names_above(table: &Table, tables: &[Table]) -> Vec<TableName> {
    let above = tables.iter().filter(|other| table.ancestors.contains(&other.oid));
    above.map(|other| other.name.clone()).collect()
}

fn captured_names(
    settings: &Settings,
    publication: &Publication,
    tables: &[Table],
) -> Vec<TableName> {
    let above = |published: &Published| {
        let table = tables.iter().find(|table| table.oid == published.oid);
        table.map(|table| names_above(table, tables)).unwrap_or_default()
    };
    publication
        .tables
        .iter()
        .filter(|table| captured(&settings.filter, &table.name, &above(table)))
        .map(|table| table.name.clone())
        .collect()
}

/// `IDENTIFY_SYSTEM`, and the history of the timeline that it names.
async fn identify(session: &mut Session) -> Result<Server, ConnectorError> {
    let rows = session.query("IDENTIFY_SYSTEM").await?;
    let mut fields = rows.into_iter().next().unwrap_or_default().into_iter().flatten();
    let mut next = || fields.next().ok_or_else(|| unreadable("IDENTIFY_SYSTEM says too little"));
    let (system_id, timeline, wal_end, database) = (next()?, next()?, next()?, next()?);
    let timeline = timeline.parse().map_err(|_| unreadable("the timeline is no number"))?;
    let wal_end =
        wal_end.parse().map_err(|error: crate::lsn::LsnError| unreadable(error.to_string()))?;
    let history = if timeline > 1 { history(session, timeline).await? } else { Vec::new() };
    Ok(Server { system_id, timeline, wal_end, database, history })
}

async fn history(
    session: &mut Session,
    timeline: u32,
) -> Result<Vec<timeline::Switch>, ConnectorError> {
    match session.query(&format!("TIMELINE_HISTORY {timeline}")).await {
        Ok(rows) => {
            let file = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten();
            Ok(timeline::parse(&file.unwrap_or_default()))
        }
        // The file is gone: a position on another timeline is then refused.
        Err(QueryError::Refused(error)) if error.sqlstate == sqlstate::UNDEFINED_FILE => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// `slot_name`, `consistent_point`, `snapshot_name`, `output_plugin`.
fn created(rows: &[TextRow]) -> Result<Export, ConnectorError> {
    let row = rows.first().map(Vec::as_slice).unwrap_or_default();
    let point = row.get(1).and_then(Option::as_deref).and_then(|point| point.parse().ok());
    let point = point.ok_or_else(|| unreadable("the server does not say where the slot stands"))?;
    Ok((row.get(2).cloned().flatten().unwrap_or_default(), point))
}
