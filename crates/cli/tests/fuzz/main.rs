//! The fuzz targets on any toolchain: their corpora, and seeded changes of them, through the same functions.
//!
//! What is run is counted, never timed, and the same on every machine. An input that breaks a target is told as
//! hexadecimal digits; written to a file of that target's corpus, it is the first that the next run tries.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]
#![expect(clippy::print_stdout, reason = "how much was tried is told")]

mod change;
#[path = "../../../../fuzz/src/lib.rs"]
pub mod targets;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use change::Changes;
use targets::{PLANTED, Seen, TARGETS, Target};

/// Where the changes of every target begin.
const SEED: u64 = 0x7468_6f75_6768_7400;
/// Changed inputs of each target.
const CHANGES: usize = 10_000;
/// Changed inputs of each target that must be taken, and as many that must be refused: a change that never gets past the
/// first check would try nothing.
const EACH_WAY_MIN: usize = 100;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Names in a folder, without what stands behind a dot.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(fuzz().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The inputs of a corpus, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(fuzz().join("corpus").join(name)).unwrap();
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// What a target makes of one input; where it breaks on it, how to try that again.
fn try_one(name: &str, target: Target, input: &[u8]) -> Result<Seen, String> {
    catch_unwind(AssertUnwindSafe(|| target(input))).map_err(|_panicked| {
        let hexadecimal = input.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        format!("the target {name} broke; again: echo {hexadecimal} | xxd -r -p > fuzz/corpus/{name}/broke")
    })
}

/// Runs a target on its corpus and on seeded changes of it.
fn hold(name: &str, target: Target) -> Result<(), String> {
    let seeds = corpus(name);
    let mut changes = Changes::seeded(SEED);
    let (mut taken, mut refused) = (0_usize, 0_usize);
    let mut good = Vec::new();
    for input in &seeds {
        if try_one(name, target, input)? == Seen::Taken {
            good.push(input.clone());
        }
    }
    for number in 0..CHANGES {
        // Every other change is one of something that was taken: what is refused early leads nowhere.
        let of = if number % 2 == 0 && !good.is_empty() { &good } else { &seeds };
        let input = changes.next(of);
        match try_one(name, target, &input)
            .map_err(|broke| format!("change {number} of seed {SEED:#x}: {broke}"))?
        {
            Seen::Taken => taken += 1,
            Seen::Refused => refused += 1,
        }
    }
    println!("{name}: {} inputs, {taken} changes taken, {refused} refused, seed {SEED:#x}", seeds.len());
    if taken.min(refused) < EACH_WAY_MIN {
        return Err(format!("the changes of {name} go one way: {taken} were taken, {refused} were refused"));
    }
    Ok(())
}

/// One test for each target, so that they run side by side.
macro_rules! targets_hold {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                hold(stringify!($name), targets::$name::read).unwrap();
            }
        )*

        #[test]
        fn every_target_has_a_test_a_file_and_a_corpus() {
            let known: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(BTreeSet::from([$(stringify!($name).to_owned()),*]), known);
            assert_eq!(names("fuzz_targets"), known);
            assert_eq!(names("corpus"), known);
            for name in &known {
                assert!(!corpus(name).is_empty(), "{name}");
            }
        }
    };
}

targets_hold! {
    answers arguments configuration declarations focus frames frontmatter packets results reviews spool updates
}

#[test]
fn a_target_that_breaks_is_found_and_its_input_is_told() {
    let picky: Target = |data| {
        assert!(!data.windows(2).any(|pair| pair == b"}}"), "a pair of brackets");
        if data.len() % 2 == 0 { Seen::Taken } else { Seen::Refused }
    };
    let told = hold("results", picky).unwrap_err();
    let digits = told.split("echo ").nth(1).unwrap().split(' ').next().unwrap();
    let input: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    assert!(try_one("results", picky, &input).is_err(), "what is told breaks it again");
    assert_eq!(hold("results", picky), Err(told), "the same changes again");
}

#[test]
fn a_target_that_goes_one_way_is_found() {
    assert!(hold("results", |_| Seen::Refused).unwrap_err().contains("one way"));
    assert!(hold("results", |_| Seen::Taken).unwrap_err().contains("one way"));
}

#[test]
fn a_target_that_quotes_is_found() {
    #[derive(Debug, thiserror::Error)]
    #[error("read a thing")]
    struct Outer(#[source] std::io::Error);
    let quoting: Target = |data| {
        let text = String::from_utf8_lossy(data).into_owned();
        targets::is_dark_error(&Outer(std::io::Error::other(text)));
        Seen::Refused
    };
    assert_eq!(try_one("results", quoting, b"somebody's words"), Ok(Seen::Refused));
    assert!(try_one("results", quoting, format!("and {PLANTED}").as_bytes()).is_err());
    assert!(hold("results", quoting).unwrap_err().contains("broke"), "the changes plant it");
}
