//! The real binary where no namespace can be made: what it writes, what it says, and that it does not go on without.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Goes to where no namespace can be made, and becomes the program that follows.
const INSIDE: &str = "__inside";
const NOBODY: u32 = 65_534;

/// When this process was started to go inside: it does, and never comes back.
pub(crate) fn started_inside(arguments: &[OsString]) -> Option<ExitCode> {
    let [first, program, rest @ ..] = arguments else { return None };
    if first != INSIDE {
        return None;
    }
    go_inside().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the process becomes the binary under test")]
    let error = Command::new(program).args(rest).exec();
    panic!("become the binary: {error}");
}

/// A user namespace in which no further one may be made: what a container's profile leaves.
fn go_inside() -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of shared tables of descriptors, which this is not"
    )]
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    std::fs::write("/proc/sys/user/max_user_namespaces", "0")
}

struct Inside {
    _folder: TempDir,
    home: PathBuf,
}

impl Inside {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let home = folder.path().join("home");
        Self { _folder: folder, home }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test starts itself, to become the binary under test"
        )]
        let mut command = Command::new("/proc/self/exe");
        command.arg(INSIDE).arg(env!("CARGO_BIN_EXE_thought")).arg("--home").arg(&self.home).args(arguments);
        command.env_clear().env("HOME", &self.home).stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            // Root can't map itself from inside; what is shown does not depend on who shows it.
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn configuration(&self) -> PathBuf {
        self.home.join("thought.toml")
    }

    /// A home made inside, but told to use every layer.
    fn with_the_full_tier() -> Self {
        let inside = Self::new();
        let made = inside.run(&["init", "--provider", "ollama"]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let lesser = std::fs::read_to_string(inside.configuration()).unwrap();
        let full = lesser.replace("mode = \"landlock+seccomp\"", "mode = \"full\"");
        assert_ne!(lesser, full);
        std::fs::write(inside.configuration(), full).unwrap();
        inside
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn init_writes_the_lesser_tier() {
    let inside = Inside::new();
    let made = inside.run(&["init", "--provider", "ollama"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let told = text(&made.stdout);
    assert!(told.contains("landlock+seccomp only") && told.contains("namespaces"), "{told}");
    let written = std::fs::read_to_string(inside.configuration()).unwrap();
    let table = written.split("\n[sandbox]\n").nth(1).unwrap();
    let (comment, mode) = table.split_once('\n').unwrap();
    assert!(
        comment.starts_with("# \"full\" is refused here: ")
            && comment.contains("user namespaces are denied here"),
        "{comment}"
    );
    assert!(mode.starts_with("mode = \"landlock+seccomp\"\n"), "{mode}");
    let asked = inside.run(&["doctor", "--json"]);
    let checks = checks(&asked);
    let jail = find(&checks, "jail");
    assert_eq!(jail["state"], "ok", "{jail}");
    assert!(
        jail["hint"].as_str().unwrap().contains("namespaces are left out"),
        "what is missing is said: {jail}"
    );
    assert_ne!(asked.status.code(), Some(8), "this machine can do it, in the tier that was chosen");
    assert!(
        checks.iter().all(|check| check["name"] != "  namespaces"),
        "what is not in the tier is not claimed"
    );
}

fn checks(output: &Output) -> Vec<Value> {
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    report["checks"].as_array().unwrap().clone()
}

fn find<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

pub(crate) fn doctor_names_the_layer() {
    let inside = Inside::with_the_full_tier();
    let asked = inside.run(&["doctor", "--json"]);
    assert_eq!(asked.status.code(), Some(8), "{}", text(&asked.stderr));
    let checks = checks(&asked);
    let jail = find(&checks, "jail");
    assert_eq!(jail["state"], "fail");
    assert!(jail["text"].as_str().unwrap().contains("namespaces"), "{jail}");
    let hint = jail["hint"].as_str().unwrap();
    assert!(hint.contains("user namespaces are denied") && hint.contains("landlock+seccomp"), "{hint}");
    assert_eq!(hint.matches(". ").count(), 0, "one sentence: {hint}");
    let states = [
        ("  parent-link", "ok"),
        ("  descriptors", "ok"),
        ("  namespaces", "fail"),
        ("  id-maps", "warn"),
        ("  empty-root", "warn"),
        ("  landlock", "warn"),
        ("  seccomp", "warn"),
    ];
    for (layer, state) in states {
        assert_eq!(find(&checks, layer)["state"], state, "{layer}");
    }
    assert!(find(&checks, "  namespaces")["hint"].as_str().is_some());
    assert!(find(&checks, "  descriptors")["text"].as_str().unwrap().contains("no inherited descriptor"));

    let printed = inside.run(&["doctor"]);
    assert_eq!(printed.status.code(), Some(8));
    let lines = text(&printed.stdout);
    assert!(lines.lines().any(|line| line.contains("fail") && line.contains("namespaces")), "{lines}");
    assert!(text(&printed.stderr).contains("failed: jail, namespaces"), "{}", text(&printed.stderr));
}

pub(crate) fn serve_never_falls_back() {
    let inside = Inside::with_the_full_tier();
    let refused = inside.run(&["serve", "--json"]);
    assert_eq!(refused.status.code(), Some(8), "{}", text(&refused.stderr));
    assert!(refused.stdout.is_empty(), "it never said that it is ready: {}", text(&refused.stdout));
    let last = text(&refused.stderr);
    let error: Value = last
        .lines()
        .rev()
        .find_map(|line| {
            serde_json::from_str::<Value>(line).ok().filter(|value| value.get("error").is_some())
        })
        .unwrap_or_else(|| panic!("{last}"));
    assert_eq!(error["error"]["code"], "sandbox-unavailable");
    assert!(error["error"]["message"].as_str().unwrap().contains("namespaces"), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("doctor"), "{error}");
    let unchanged = std::fs::read_to_string(inside.configuration()).unwrap();
    assert!(unchanged.contains("mode = \"full\""), "nothing changes the configuration but a person");

    let lesser = unchanged.replace("mode = \"full\"", "mode = \"landlock+seccomp\"");
    std::fs::write(inside.configuration(), lesser).unwrap();
    assert_eq!(ready_line(&inside)["sandbox"], "landlock+seccomp", "chosen by a person, and told");

    for nothing in ["none", "off", "landlock", ""] {
        let text_of = unchanged.replace("mode = \"full\"", &format!("mode = \"{nothing}\""));
        std::fs::write(inside.configuration(), text_of).unwrap();
        let refused = inside.run(&["serve", "--json"]);
        assert_eq!(refused.status.code(), Some(3), "{nothing:?}: {}", text(&refused.stderr));
    }
}

/// What `serve` says once it is ready; then it is ended.
fn ready_line(inside: &Inside) -> Value {
    let mut serve =
        inside.command(&["serve", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = rustix::process::Pid::from_child(&serve);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(serve.wait().unwrap().code(), Some(0), "a stop is no failure");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}
