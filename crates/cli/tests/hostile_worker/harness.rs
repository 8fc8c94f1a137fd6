//! Lists and runs tests by the options that runners give: `--list`, `--exact`, `--skip`, names.
#![expect(clippy::print_stdout, reason = "a runner reads names and verdicts from it")]

use std::panic::catch_unwind;
use std::process::ExitCode;

/// A test by name.
pub(crate) type Test = (&'static str, fn());

#[derive(Default)]
struct Options {
    lists: bool,
    is_exact: bool,
    wants_ignored: bool,
    names: Vec<String>,
    skipped: Vec<String>,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => options.lists = true,
                "--exact" => options.is_exact = true,
                "--ignored" => options.wants_ignored = true,
                "--skip" => options.skipped.extend(arguments.next()),
                "--format" | "--test-threads" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                name => options.names.push(name.to_owned()),
            }
        }
        options
    }

    fn wants(&self, name: &str) -> bool {
        let fits =
            |wanted: &String| if self.is_exact { name == wanted } else { name.contains(wanted.as_str()) };
        // No test here is ever ignored.
        !self.wants_ignored
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skipped.iter().any(fits)
    }
}

/// Does what the arguments ask for. The tests run one after the other: some count what belongs to the whole process.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let options = Options::read(std::env::args().skip(1));
    let wanted = tests.iter().filter(|(name, _)| options.wants(name));
    if options.lists {
        wanted.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in wanted {
        let is_good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if is_good { "ok" } else { "FAILED" });
        *(if is_good { &mut passed } else { &mut failed }) += 1;
    }
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed",
        if failed == 0 { "ok" } else { "FAILED" }
    );
    ExitCode::from(u8::from(failed > 0))
}
