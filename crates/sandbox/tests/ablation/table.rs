//! What each layer stops alone, as data: the reference page is written from it, and the test beside it measures it.

use std::fmt::Write;

/// One layer, or a few that only come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    /// The head of its column.
    pub(crate) name: &'static str,
    /// The launch steps that make it.
    pub(crate) stages: &'static [&'static str],
    /// Whether the steps are those of the full tier alone.
    pub(crate) is_full_tier: bool,
}

/// The columns.
pub(crate) const LAYERS: &[Layer] = &[
    Layer {
        name: "namespaces and empty root",
        stages: &["namespaces", "id-maps", "inner-process", "empty-root", "capabilities"],
        is_full_tier: true,
    },
    Layer { name: "Landlock", stages: &["landlock"], is_full_tier: false },
    Layer { name: "limits", stages: &["resource-limits"], is_full_tier: false },
    Layer { name: "seccomp", stages: &["seccomp"], is_full_tier: false },
];

/// What a layer does to an act when every other layer is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nothing: the act comes out as it does without any layer.
    Nothing,
    /// It fails with this error.
    Fails(&'static str),
    /// As [`Cell::Fails`], from this Landlock ABI on; below it, nothing.
    FailsSince(&'static str, u32),
    /// The process is killed.
    Kills,
}
use Cell::{Fails, FailsSince, Kills, Nothing};

/// How an act comes out for an ordinary account without any layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    /// It works.
    Works,
    /// It fails, for an account without privileges may not.
    MayNot(&'static str),
    /// The machine decides: a module, a setting, a processor.
    Depends,
}
use Without::{Depends, MayNot, Works};

/// One act.
pub(crate) struct Row {
    /// What it is, for a reader.
    pub(crate) title: &'static str,
    /// Its command to the test program.
    pub(crate) act: &'static str,
    pub(crate) without: Without,
    /// In the order of [`LAYERS`].
    pub(crate) cells: [Cell; 4],
}

const fn row(title: &'static str, act: &'static str, without: Without, cells: [Cell; 4]) -> Row {
    Row { title, act, without, cells }
}

const NO_FILE: Cell = Fails("ENOENT");
const NO_ACCESS: Cell = Fails("EACCES");
const NO_ROOM: Cell = Fails("EMFILE");
const NOBODY_THERE: Cell = Fails("ESRCH");
const MAY_NOT: Cell = Fails("EPERM");

/// The table.
pub(crate) const ROWS: &[Row] = &[
    row("open `/etc/passwd`", "open-passwd", Works, [NO_FILE, NO_ACCESS, NO_ROOM, Kills]),
    row("list `/`", "list-root", Works, [Fails("ENODATA"), NO_ACCESS, NO_ROOM, Kills]),
    row("read the parent's environment", "environ-of", Works, [NO_FILE, NO_ACCESS, NO_ROOM, Kills]),
    row("open the parent's memory", "memory-file-of", Works, [NO_FILE, NO_ACCESS, NO_ROOM, Kills]),
    row("write to `/tmp`", "write-tmp", Works, [NO_FILE, NO_ACCESS, NO_ROOM, Kills]),
    row("write to `/dev/shm`", "write-shm", Works, [NO_FILE, NO_ACCESS, NO_ROOM, Kills]),
    row(
        "write to the working folder",
        "write-here",
        MayNot("EACCES"),
        [Fails("EROFS"), Nothing, NO_ROOM, Kills],
    ),
    row("write to `/`", "write-root", MayNot("EACCES"), [Fails("EROFS"), Nothing, NO_ROOM, Kills]),
    row(
        "connect by TCP",
        "tcp-connect",
        Works,
        [Fails("ENETUNREACH"), FailsSince("EACCES", 4), NO_ROOM, Kills],
    ),
    row("send by UDP", "udp-send", Works, [Fails("ENETUNREACH"), Nothing, NO_ROOM, Kills]),
    row("connect to a pathname socket", "unix-pathname", Works, [NO_FILE, Nothing, NO_ROOM, Kills]),
    row(
        "connect to an abstract socket",
        "unix-abstract",
        Works,
        [Fails("ECONNREFUSED"), FailsSince("EPERM", 6), NO_ROOM, Kills],
    ),
    row("make a netlink socket", "netlink", Works, [Nothing, Nothing, NO_ROOM, Kills]),
    row("make a vsock socket", "vsock", Depends, [Nothing, Nothing, NO_ROOM, Kills]),
    row("fork", "fork", Works, [Nothing, Nothing, Fails("EAGAIN"), Kills]),
    row("execute a program", "exec", Works, [NO_FILE, NO_ACCESS, Nothing, Kills]),
    row("trace the parent", "trace", Works, [NOBODY_THERE, MAY_NOT, Nothing, Kills]),
    row("read the parent's memory", "read-memory-of", Works, [NOBODY_THERE, MAY_NOT, Nothing, Kills]),
    row("signal the parent", "signal", Works, [NOBODY_THERE, FailsSince("EPERM", 6), Nothing, Kills]),
    row("memory file (memfd)", "memfd", Works, [Nothing, Nothing, NO_ROOM, Kills]),
    row("io_uring", "io-uring", Depends, [Nothing, Nothing, Fails("ENOMEM"), Kills]),
    row("userfaultfd", "userfaultfd", Depends, [Nothing, Nothing, NO_ROOM, Kills]),
    row("bpf", "bpf", Depends, [Nothing, Nothing, Nothing, Kills]),
    row("add a key", "keyring", Depends, [Nothing, Nothing, Nothing, Kills]),
    row("System V shared memory", "shared-memory", Works, [Nothing, Nothing, Nothing, Kills]),
    row("make a user namespace", "user-namespace", Works, [Nothing, Nothing, Nothing, Kills]),
    row("mount", "mount", MayNot("EPERM"), [Nothing, Nothing, Nothing, Kills]),
    row("map executable memory", "map-executable", Works, [Nothing, Nothing, Nothing, Kills]),
    row("make memory executable", "protect-executable", Works, [Nothing, Nothing, Nothing, Kills]),
    row("have 2 GiB", "allocate", Works, [Nothing, Nothing, Fails("ENOMEM"), Nothing]),
    row("call by the x32 table", "x32", Depends, [Nothing, Nothing, Nothing, Kills]),
];

const HEAD: &str = "# What the jail stops\n
A worker that tries a forbidden act in the product is killed by the first layer that it meets, the list of system calls,
in both tiers. This page says what would become of the act if one layer stood alone, so that a hole in one can be judged
by what the others still stop. `—` means that the layer changes nothing; `kills` that the process ends with `SIGSYS`.\n
It is written from the table in `crates/sandbox/tests/ablation/table.rs` by
`cargo run -p thought-sandbox --example ablation_table`, and each of its cells is tried by the test beside that table,
as an account without privileges.\n
";

const FOOT: &str = "
Other things that a worker lacks, whoever stops them:\n
- inherited descriptors: every one but the channel and standard output and error is closed before the first layer;
- the environment: the launcher clears it, and a worker that finds a variable refuses to start;
- processor time: the limit kills it, and so does the launcher when an exchange lasts too long;
- descendants: none can be made, so nobody holds its channel when it is dead.\n
What follows for the two tiers: with `mode = \"full\"` every column holds. With `mode = \"landlock+seccomp\"` the first
column is missing, and then the list of system calls is all that stands before UDP, pathname sockets and, below the
Landlock ABI that a cell names, TCP, abstract sockets and signals.
";

/// The page.
pub(crate) fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut line = |cells: &[String]| {
        // Writing into a String does not fail.
        let _infallible = writeln!(page, "| {} |", cells.join(" | "));
    };
    let mut head = vec!["act".to_owned(), "no layer".to_owned()];
    head.extend(LAYERS.iter().map(|layer| format!("{} alone", layer.name)));
    line(&head);
    line(&vec!["---".to_owned(); head.len()]);
    for row in ROWS {
        let without = match row.without {
            Works => "works".to_owned(),
            MayNot(errno) => format!("{errno}, without privileges"),
            Depends => "the machine decides".to_owned(),
        };
        let mut cells = vec![row.title.to_owned(), without];
        cells.extend(row.cells.iter().map(|cell| match cell {
            Nothing => "—".to_owned(),
            Fails(errno) => (*errno).to_owned(),
            FailsSince(errno, abi) => format!("{errno} (ABI {abi})"),
            Kills => "kills".to_owned(),
        }));
        line(&cells);
    }
    page.push_str(FOOT);
    page
}
