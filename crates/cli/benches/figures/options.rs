//! What is measured, where, and how often.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::table::Form;

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Jail,
    Packet,
    Settlement,
    Memory,
    Disk,
    Context,
    Word,
    Scale,
    Mail,
    Export,
}

const PARTS: [(&str, Part); 10] = [
    ("jail", Part::Jail),
    ("packet", Part::Packet),
    ("settlement", Part::Settlement),
    ("memory", Part::Memory),
    ("disk", Part::Disk),
    ("context", Part::Context),
    ("word", Part::Word),
    ("scale", Part::Scale),
    ("mail", Part::Mail),
    ("export", Part::Export),
];

const USAGE: &str = "figures [--json] [--only jail,packet,settlement,memory,disk,context,word,scale,mail,export] [--turns N] \
                     [--events N] [--memory DIR] [--disk DIR]";

/// The options of one run.
pub(crate) struct Options {
    pub(crate) form: Form,
    only: Vec<Part>,
    /// Turns that are measured, after as many as fill the context.
    pub(crate) turns: usize,
    /// Events of the full store.
    pub(crate) events: u64,
    /// A folder on a memory file system.
    pub(crate) memory: PathBuf,
    /// A folder on a disk.
    pub(crate) disk: PathBuf,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self> {
        let mut options = Self {
            form: Form::Lines,
            only: Vec::new(),
            turns: 250,
            events: 1_000_000,
            memory: PathBuf::from("/dev/shm"),
            disk: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} wants a value; {USAGE}"));
            match argument.as_str() {
                // What cargo adds by itself.
                "--bench" => {}
                "--json" => options.form = Form::Json,
                "--only" => {
                    for name in value()?.split(',') {
                        let part = PARTS.iter().find(|(known, _)| *known == name);
                        options
                            .only
                            .push(part.with_context(|| format!("no part is called {name}; {USAGE}"))?.1);
                    }
                }
                "--turns" => options.turns = value()?.parse().context("read --turns")?,
                "--events" => options.events = value()?.parse().context("read --events")?,
                "--memory" => options.memory = value()?.into(),
                "--disk" => options.disk = value()?.into(),
                other => bail!("unknown argument {other}; {USAGE}"),
            }
        }
        if options.turns == 0 {
            bail!("--turns must be at least 1");
        }
        Ok(options)
    }

    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
