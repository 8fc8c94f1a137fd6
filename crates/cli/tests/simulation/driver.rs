//! One seed: a world, its steps, what goes wrong in each, and what must hold after each.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use thought_authority::materialize;
use thought_cli::command::verify;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::TelegramMessage;
use thought_protocol::Sha256Hex;
use thought_runtime::port;
use thought_store::row::{DeliveryState, Existence};
use thought_store::{NoImages, Reads, Store};
use tokio::runtime::Runtime;

use crate::chaos::Fault;
use crate::dice::Dice;
use crate::engine::now;
use crate::invariants::{self, Checker, Held};
use crate::steps::{self, Done, Numbers};
use crate::world::{CHATS, DECLARATIONS, Life, STRANGER, World, source};

/// Steps of one seed.
const STEPS: u64 = 40;
/// Rounds in which everything must come to its end once nothing goes wrong any more.
const ROUNDS_MAX: u32 = 12;

/// Counted over all seeds: faults that fired, steps that succeeded, events that were written.
pub(crate) type Counts = BTreeMap<String, u64>;

/// What a seed came to: its counts, and its steps before everything came to its end.
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    pub(crate) steps: Vec<String>,
}

pub(crate) struct Driver {
    pub(crate) world: World,
    life: Option<Life>,
    runtime: Option<Runtime>,
    dice: Dice,
    pub(crate) checker: Checker,
    numbers: Numbers,
    said: u64,
    steps: Vec<String>,
    /// What is drawn next whatever the throw says.
    next: Option<&'static str>,
}

/// Carries out a seed.
///
/// # Errors
/// What does not hold, after the steps that led there.
pub(crate) fn seed(seed: u64) -> Result<Seen, String> {
    let mut dice = Dice::new(seed);
    // Some worlds are kind, so that long ways are gone; some are not.
    let faults_percent = dice.pick(&[0, 10, 25, 45]);
    let mut driver = Driver::new(dice, faults_percent);
    let outcome = driver.drive();
    let steps = driver.steps.join(", ");
    outcome.map_err(|what| format!("seed {seed}: {what}; steps: {steps}"))
}

fn draw_fault(dice: &mut Dice, step: &str) -> Option<Fault> {
    if !dice.percent(if step == "project" { 80 } else { 45 }) {
        return None;
    }
    let nth = u32::try_from(dice.below(5) + 1).unwrap();
    if matches!(step, "project" | "follow") && dice.percent(90) {
        let points = materialize::CRASH_POINTS;
        return Some(match dice.below(12) {
            0 => Fault::FileFails("no-space"),
            1 => Fault::FileFails("io"),
            2..6 => Fault::NoExchange,
            6..9 => Fault::SavedMeanwhile(dice.pick(&points)),
            _ => Fault::Point(dice.pick(&points)),
        });
    }
    if step.starts_with("activate") && dice.percent(40) {
        return Some(Fault::Point(dice.pick(&thought_runtime::changeover::CRASH_POINTS)));
    }
    Some(match dice.below(7) {
        0 => Fault::CrashBefore(nth),
        1 => Fault::CrashAfter(nth),
        2 => Fault::CommitFails(nth),
        3 => Fault::NoSpace(nth),
        4 => Fault::ToldFailed(nth),
        5 => Fault::ReadFails(nth * 3),
        _ => Fault::Point(dice.pick(&port::CRASH_POINTS)),
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

impl Driver {
    pub(crate) fn new(mut dice: Dice, faults_percent: u64) -> Self {
        Self {
            world: World::new(&mut dice, faults_percent),
            life: None,
            runtime: None,
            dice,
            checker: Checker::default(),
            numbers: Numbers::default(),
            said: 0,
            steps: Vec::new(),
            next: None,
        }
    }

    fn drive(&mut self) -> Result<Seen, String> {
        let begun = self.step("begin", None, &mut self.dice.clone());
        begun?.map_err(|error| format!("begin: {error}"))?;
        for _ in 0..STEPS {
            self.one()?;
        }
        let steps = self.steps.clone();
        self.heal()?;
        let mut counts = self.world.chaos.counts();
        for (event_type, count) in &self.checker.seen {
            counts.insert(format!("event {}", event_type.as_str()), *count);
        }
        Ok(Seen { counts, steps })
    }

    /// One step: the world's own, or a process's with what goes wrong in it.
    /// Its throws are its own: what a step finds in its world moves none of the steps after it.
    fn one(&mut self) -> Held {
        let mut dice = self.dice.apart();
        let drawn = if self.next.is_some() { 99 } else { dice.below(100) };
        match drawn {
            0..20 => self.speak(&mut dice),
            20..26 => self.save(&mut dice),
            26..29 => {
                let hours = dice.pick(&[-10_i64, -3, 1, 10]);
                self.steps.push(format!("clock {hours} h"));
                self.world.calendar.jump_ms(hours * 3_600_000);
                self.world.chaos.count(if hours < 0 { "clock-back" } else { "clock-ahead" });
            }
            29..32 => {
                self.steps.push("killed".to_owned());
                self.world.chaos.count("killed-at-rest");
                self.die();
            }
            _ => {
                let name = self.draw_name(&mut dice);
                let fault = draw_fault(&mut dice, name);
                if let Ok(()) = self.step(name, fault, &mut dice)? {
                    self.world.chaos.count(&format!("step {name}"));
                }
            }
        }
        self.check()
    }

    fn draw_name(&mut self, dice: &mut Dice) -> &'static str {
        // What moves messages on is drawn more often.
        let often = ["ingress", "consume", "dispatch", "everything", "everything", "decide", "decide"];
        let drawn = if dice.percent(60) { dice.pick(&often) } else { dice.pick(&steps::NAMES) };
        let name = self.next.take().unwrap_or(drawn);
        // What was decided is often written by a command, before `serve` comes to it; and a run is given up while it is open.
        self.next = match name {
            "decide" if dice.percent(80) => Some("project"),
            "consume" if dice.percent(35) => Some("abandon-run"),
            _ => None,
        };
        name
    }

    /// Somebody writes.
    pub(crate) fn speak(&mut self, dice: &mut Dice) {
        self.said += 1;
        let (said, chat) = (self.said, dice.pick(&CHATS));
        let arrived: Vec<i64> = self.world.channel.numbers_in(chat);
        let (chat, text, reply) = match dice.below(12) {
            0 => (STRANGER, format!("kanari-s{said} from a stranger"), None),
            1 => (chat, "/help".to_owned(), None),
            2 | 3 if !arrived.is_empty() => {
                (chat, format!("/correct kanari-c{said} better"), Some(dice.pick(&arrived)))
            }
            4 => (chat, format!("/correct kanari-c{said} better"), None),
            _ => (chat, format!("kanari-m{said} hello"), None),
        };
        self.steps.push(format!("say {said} in {chat}"));
        self.world.channel.push(chat, &text, reply);
    }

    /// A person saves a document.
    fn save(&mut self, dice: &mut Dice) {
        let number = self.said * 1_000 + self.steps.len() as u64;
        let before = std::fs::read_to_string(self.world.document("memory.md"));
        let whole = format!("---\nid: memory\n---\nkanari-f{number} written anew\n");
        match (dice.below(4), before) {
            (0 | 1, Ok(before)) => {
                self.world.write("memory.md", &format!("{before}\nkanari-f{number} more\n"))
            }
            (2, Ok(_)) => {
                // As editors do it.
                self.world.write("memory.md.new", &whole);
                let (from, to) = (self.world.document("memory.md.new"), self.world.document("memory.md"));
                std::fs::rename(from, to).unwrap();
            }
            (3, Ok(_)) if dice.percent(30) => {
                std::fs::remove_file(self.world.document("memory.md")).unwrap();
            }
            _ => self.world.write("memory.md", &whole),
        }
        self.steps.push("save".to_owned());
        self.world.chaos.count("saved-by-a-person");
    }

    /// Lets the process do something; when it died of it, the next one begins.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        fault: Option<Fault>,
        dice: &mut Dice,
    ) -> Result<Done, String> {
        self.steps
            .push(fault.as_ref().map_or_else(|| name.to_owned(), |fault| format!("{name} with {fault:?}")));
        let runtime = self.runtime.get_or_insert_with(runtime);
        let life = self.life.get_or_insert_with(|| self.world.live());
        self.world.chaos.arm(fault);
        let (chaos, numbers) = (&self.world.chaos, &self.numbers);
        let inside = runtime.enter();
        let in_time = async {
            let step = async {
                match name {
                    "begin" => steps::begin(life, numbers).await,
                    _ => steps::carry_out(life, name, dice, numbers).await,
                }
            };
            tokio::select! {
                biased;
                () = chaos.died() => None,
                done = step => Some(done),
            }
        };
        drop(inside);
        // A named point ends whoever passes it by unwinding, also where that is no task of its own.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(in_time)));
        let done = done.unwrap_or(None);
        self.world.chaos.arm(None);
        if self.world.chaos.is_dead() {
            self.die();
            self.learn_versions();
            return Ok(Err("died".to_owned()));
        }
        self.learn_versions();
        match done {
            Some(Err(error)) if error.starts_with('!') => Err(format!("{name}: {error}")),
            Some(done) => Ok(done),
            None => Err(format!("{name}: ended without an end")),
        }
    }

    /// The process is gone with all that it had in mind.
    fn die(&mut self) {
        self.world.provider.look_at(None);
        if let (Some(runtime), life) = (self.runtime.take(), self.life.take()) {
            drop(runtime);
            drop(life);
        }
        self.world.chaos.revive();
    }

    pub(crate) fn living(&mut self) -> &Life {
        self.life.get_or_insert_with(|| self.world.live())
    }

    /// Which versions are active: a change that died may have come about.
    fn learn_versions(&mut self) {
        let engine = self.living().engine.clone();
        for (which, declaration) in DECLARATIONS.iter().enumerate() {
            let row = now(engine.declaration((*declaration).to_owned())).unwrap();
            let version = row.map_or(0, |row| u64::from(row.version));
            self.numbers.versions[which].store(version, Ordering::SeqCst);
        }
    }

    pub(crate) fn check(&mut self) -> Held {
        let engine = self.living().engine.clone();
        self.checker.check(&engine)?;
        self.world.provider.broken().map_or(Ok(()), Err)?;
        self.once()
    }

    /// Nothing that may have arrived was sent again by itself.
    pub(crate) fn once(&self) -> Held {
        let mut times: BTreeMap<String, u64> = BTreeMap::new();
        for (_, text) in self.world.channel.arrived() {
            if let Some(at) = text.find("kanari-a") {
                let marker = text[at..].split(' ').next().unwrap_or_default().to_owned();
                *times.entry(marker).or_default() += 1;
            }
        }
        let doubled: u64 = times.values().map(|count| count - 1).sum();
        if doubled <= self.numbers.resent.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err("a message was sent twice on a guess".to_owned())
        }
    }

    /// Nothing goes wrong any more: everything comes to its end.
    fn heal(&mut self) -> Held {
        self.world.channel.calm();
        self.world.provider.calm();
        if !self.world.document("memory.md").exists() {
            self.world.write("memory.md", "---\nid: memory\n---\nkanari-f back again\n");
        }
        let mut dice = self.dice.apart();
        for round in 0.. {
            for name in ["scan", "everything", "project"] {
                let _done = self.step(name, None, &mut dice)?;
                self.check()?;
            }
            if self.is_quiet() {
                break;
            }
            if round == ROUNDS_MAX {
                return Err("it never came to rest".to_owned());
            }
        }
        self.finally()
    }

    fn is_quiet(&mut self) -> bool {
        let is_empty = self.world.channel.is_empty();
        let engine = self.living().engine.clone();
        let open = DECLARATIONS.iter().any(|id| !now(engine.open_runs((*id).to_owned())).unwrap().is_empty());
        let sending = vec![DeliveryState::Sending];
        let spooled = now(engine.spool_counts(source())).unwrap();
        is_empty
            && !open
            && spooled.pending == 0
            && now(engine.unfinished_deliveries(source(), sending, 10)).unwrap().is_empty()
    }

    /// The audit of the store, every context and every chain again, and what must hold of the whole.
    fn finally(&mut self) -> Held {
        let calendar = self.world.calendar.clone();
        let requests = self.world.provider.requests();
        let said = self.said;
        let engine = self.living().engine.clone();
        invariants::whole(&engine, requests)?;
        let messages = invariants::events(&engine, EventType::TelegramMessage);
        let mut texts: Vec<String> =
            messages.iter().filter_map(|event| event.payload::<TelegramMessage>().ok()?.text).collect();
        texts.sort();
        let before = texts.len();
        texts.dedup();
        if texts.len() != before {
            return Err("a message became two events".to_owned());
        }
        if before as u64 > said {
            return Err("messages came from nowhere".to_owned());
        }
        let reader = Store::new(engine.clone(), calendar).reader();
        let runtime = runtime();
        let verified = runtime.block_on(verify::verify(&reader, &NoImages));
        let verified = verified.map_err(|failure| format!("verify: {}", failure.message))?;
        if let Some(found) = verified.audit.findings.first() {
            return Err(format!("verify: {} {} {}", found.table, found.row, found.fault));
        }
        for row in now(engine.documents(SourceName::context())).unwrap() {
            let file = std::fs::read(self.world.document(&row.path));
            match (row.existence, file) {
                (Existence::Present, Ok(bytes)) if Sha256Hex::of(&bytes) == row.sha256 => {}
                (Existence::Present, _) => return Err(format!("{} holds other bytes", row.path)),
                _ => {}
            }
        }
        invariants::dark(&self.world.database())
    }
}
