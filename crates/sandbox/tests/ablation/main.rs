//! Tries every cell of the table of layers, and holds the reference page against the table.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
mod table;

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use common::try_act;
use table::{Cell, LAYERS, Layer, ROWS, Row, Without, page};
use thought_sandbox::{ExitKind, Stage, Tier};

/// What became of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Worked,
    Failed(i32),
    Killed,
}

/// Steps that every start needs, whatever is looked at.
const ALWAYS: &[Stage] = &[Stage::Order, Stage::ParentLink, Stage::Descriptors];

/// The argument of a worker with these steps alone.
fn alone(stages: &[&str]) -> &'static str {
    let is_kept = |stage: &Stage| ALWAYS.contains(stage) || stages.contains(&stage.name());
    let left_out: Vec<&str> =
        Stage::ALL.iter().filter(|stage| !is_kept(stage)).map(|stage| stage.name()).collect();
    format!("__without={}", left_out.join(",")).leak()
}

/// Things outside the jail to reach for.
struct Outside {
    tcp: TcpListener,
    udp: UdpSocket,
    path: std::path::PathBuf,
    _pathname: UnixListener,
    _abstract: UnixListener,
}

impl Outside {
    fn new() -> Self {
        let pid = std::process::id();
        let path = std::path::PathBuf::from(format!("/tmp/jail-probe-{pid}"));
        let name = SocketAddr::from_abstract_name(format!("jail-probe-{pid}")).unwrap();
        // Where the kernel asks for a say, a worker may trace its parent: what stops it must be a layer.
        // SAFETY: the option reads an integer. Where it is unknown, nothing asks.
        let _unknown = unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _pathname: UnixListener::bind(&path).unwrap(),
            _abstract: UnixListener::bind_addr(&name).unwrap(),
            path,
        }
    }

    fn command(&self, act: &str) -> String {
        let number = match act {
            "tcp-connect" => u32::from(self.tcp.local_addr().unwrap().port()),
            "udp-send" => u32::from(self.udp.local_addr().unwrap().port()),
            "allocate" => 1 << 31,
            _ => std::process::id(),
        };
        format!("{act} {number}")
    }

    fn outcome(&self, act: &str, stages: &[&str], tier: Tier) -> Outcome {
        match try_act(tier, alone(stages), &self.command(act)) {
            (Some(0), _) => Outcome::Worked,
            (Some(errno), _) => Outcome::Failed(errno),
            (None, ExitKind::Signal(31)) => Outcome::Killed,
            // It became another program, which did what it does.
            (None, ExitKind::Clean | ExitKind::Code(_)) if act == "exec" => Outcome::Worked,
            (None, end) => panic!("{act}: {end:?}"),
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
        for folder in ["/tmp", "/dev/shm"] {
            let _never_made =
                std::fs::remove_file(format!("{folder}/jail-probe-file-{}", std::process::id()));
        }
    }
}

fn number(errno: &str) -> i32 {
    match errno {
        "EPERM" => libc::EPERM,
        "ENOENT" => libc::ENOENT,
        "ESRCH" => libc::ESRCH,
        "EAGAIN" => libc::EAGAIN,
        "ENOMEM" => libc::ENOMEM,
        "EACCES" => libc::EACCES,
        "EMFILE" => libc::EMFILE,
        "EROFS" => libc::EROFS,
        "ENODATA" => libc::ENODATA,
        "ENETUNREACH" => libc::ENETUNREACH,
        "ECONNREFUSED" => libc::ECONNREFUSED,
        other => panic!("the table names {other}"),
    }
}

#[test]
fn every_cell_of_the_table_is_what_happens() {
    if rustix::process::geteuid().is_root() {
        // The layers are looked at as an account without privileges, for root's own could do harm here.
        let (code, text) = common::as_nobody(&["--exact", "every_cell_of_the_table_is_what_happens"]);
        assert!(code == Some(0) && text.contains("1 passed"), "as nobody:\n{text}");
        return;
    }
    let outside = Outside::new();
    let abi = common::launch(Tier::Full, "__probe").evidence().landlock_abi;
    let mut wrong = Vec::new();
    for row in ROWS {
        let without = outside.outcome(row.act, &[], Tier::LandlockSeccomp);
        let is_right = match row.without {
            Without::Works => without == Outcome::Worked,
            Without::MayNot(errno) => without == Outcome::Failed(number(errno)),
            Without::Depends => without != Outcome::Killed,
        };
        if !is_right {
            wrong.push(format!("{}: without a layer: {without:?}", row.act));
        }
        for (layer, cell) in LAYERS.iter().zip(row.cells) {
            let tier = if layer.is_full_tier { Tier::Full } else { Tier::LandlockSeccomp };
            let found = outside.outcome(row.act, layer.stages, tier);
            if found != expected(row, layer, cell, (without, abi)) {
                wrong.push(format!("{}: {} alone: {found:?}, the table says {cell:?}", row.act, layer.name));
            }
        }
    }
    assert!(wrong.is_empty(), "Landlock ABI {abi}:\n{}", wrong.join("\n"));
}

fn expected(row: &Row, layer: &Layer, cell: Cell, (without, abi): (Outcome, u32)) -> Outcome {
    match cell {
        Cell::Nothing => without,
        // What this machine does not have at all, a limit can't stop.
        Cell::Fails(_)
            if row.without == Without::Depends && without != Outcome::Worked && layer.name == "limits" =>
        {
            without
        }
        Cell::Fails(errno) => Outcome::Failed(number(errno)),
        Cell::FailsSince(errno, since) if abi >= since => Outcome::Failed(number(errno)),
        Cell::FailsSince(..) => without,
        Cell::Kills => Outcome::Killed,
    }
}

#[test]
fn the_reference_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/jail.md");
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == page(),
        "not current; cargo run -p thought-sandbox --example ablation_table > docs/reference/jail.md"
    );
}

#[test]
fn every_act_of_the_table_is_stopped_by_some_layer_and_has_one_row() {
    let mut acts: Vec<&str> = ROWS.iter().map(|row| row.act).collect();
    acts.sort_unstable();
    acts.dedup();
    assert_eq!(acts.len(), ROWS.len());
    for row in ROWS {
        assert!(row.cells.iter().any(|cell| *cell != Cell::Nothing), "{}", row.act);
    }
    for name in LAYERS.iter().flat_map(|layer| layer.stages) {
        assert!(Stage::ALL.iter().any(|stage| stage.name() == *name), "{name}");
    }
}
