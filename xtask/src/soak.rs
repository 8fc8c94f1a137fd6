//! The long versions of three tests: the materializer's races, the channel at its worst, and the simulation; more rounds, of a seed.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Rounds of each kind of meddling; there are [`KINDS`].
const ROUNDS: u64 = 1_000;
/// Swaps of the file, of the root and of a folder on the way to it, and twice an editor that saves.
const KINDS: u64 = 5;
/// Most rounds: the store of one run holds them all.
const ROUNDS_MAX: u64 = 2_000;

/// Updates through the real binary, and messages of one burst.
const UPDATES: u64 = 10_000;
const BURST: u64 = 2_000;

/// Seeds of the simulation.
const SEEDS: u64 = 10_000;

/// Runs both: `--rounds N` of each kind of meddling, `--updates N`, `--seed N` for the pace. With `--only documents` or
/// `--only channel`, one of them; with `--only simulation`, `--seeds N` of the simulation from `--seed N` on.
///
/// # Errors
/// When a round lost a byte, a message was lost or doubled, or an argument is none.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let only =
        arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    match only.map(String::as_str) {
        None => documents(arguments).and_then(|()| channel(arguments)),
        Some("documents") => documents(arguments),
        Some("channel") => channel(arguments),
        Some("simulation") => simulation(arguments),
        Some(_) => bail!("--only is documents, channel or simulation"),
    }
}

fn channel(arguments: &[String]) -> Result<()> {
    let updates = number(arguments, "--updates")?.unwrap_or(UPDATES);
    let seed = number(arguments, "--seed")?.unwrap_or(4_242);
    let test = ["thought", "--test", "channel", "--", "--nocapture", "--test-threads=1", "soak::"];
    let asked =
        [("THOUGHT_SOAK_UPDATES", updates), ("THOUGHT_SOAK_BURST", BURST), ("THOUGHT_SOAK_SEED", seed)];
    let seconds = long(&test, &asked).with_context(|| format!("the soak of seed {seed} failed"))?;
    tell(&format!(
        "{updates} updates and a burst of {BURST} in {seconds} s, seed {seed}: none lost, none doubled"
    ));
    Ok(())
}

fn simulation(arguments: &[String]) -> Result<()> {
    let seeds = number(arguments, "--seeds")?.unwrap_or(SEEDS);
    let seed = number(arguments, "--seed")?.unwrap_or(1);
    let test = ["thought", "--test", "simulation", "--", "--nocapture", "whatever_"];
    let asked = [("THOUGHT_SIMULATION_SEEDS", seeds), ("THOUGHT_SIMULATION_SEED", seed)];
    let seconds = long(&test, &asked).with_context(|| {
        format!("a seed of the {seeds} from {seed} failed, or nothing came about of what must; both are named above")
    })?;
    tell(&format!("{seeds} seeds from {seed} in {seconds} s: what must hold held after every step"));
    Ok(())
}

fn documents(arguments: &[String]) -> Result<()> {
    let rounds = number(arguments, "--rounds")?.unwrap_or(ROUNDS);
    let seed = number(arguments, "--seed")?.unwrap_or(1);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        bail!("--rounds is from 1 to {ROUNDS_MAX}");
    }
    let test = [
        "thought-authority",
        "--test",
        "word",
        "--",
        "--nocapture",
        "--exact",
        "races::swaps_of_the_file_and_the_root_for_links_let_no_byte_outside",
        "races::swaps_of_a_folder_on_the_way_to_the_root_let_no_byte_outside",
        "races::no_save_of_an_editor_is_lost_beside_two_hundred_materializations",
    ];
    let asked = [("THOUGHT_SOAK_ROUNDS", rounds), ("THOUGHT_SOAK_SEED", seed)];
    let seconds = long(&test, &asked).with_context(|| format!("the soak of seed {seed} failed"))?;
    let count = rounds * KINDS;
    tell(&format!("{count} materializations in {seconds} s, seed {seed}: no byte outside, no save lost"));
    Ok(())
}

/// Runs the long version of a test of this package; answers the seconds that it took.
fn long(package_and_test: &[&str], asked: &[(&str, u64)]) -> Result<u64> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    #[expect(
        clippy::disallowed_methods,
        reason = "a chore starts cargo; the product starts nothing this way"
    )]
    let mut command = Command::new(cargo);
    command.args(["test", "--package"]).args(package_and_test);
    command.envs(asked.iter().map(|(name, value)| (*name, value.to_string())));
    let began = std::time::Instant::now();
    if command.status().context("start the tests")?.success() {
        Ok(began.elapsed().as_secs())
    } else {
        bail!("the tests did not pass")
    }
}

#[expect(clippy::print_stdout, reason = "the figure is what the chore is for")]
fn tell(figure: &str) {
    println!("{figure}");
}

/// The number behind a name.
fn number(arguments: &[String], name: &str) -> Result<Option<u64>> {
    let Some(at) = arguments.iter().position(|argument| argument == name) else { return Ok(None) };
    let text = arguments.get(at + 1).with_context(|| format!("{name} wants a number"))?;
    Ok(Some(text.parse().with_context(|| format!("{name} wants a number"))?))
}
