//! Somebody at a terminal: sees what is printed, presses keys, and leaves.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thought_testkit::WAIT_MAX;
use thought_testkit::home::Home;
use thought_testkit::run::{Running, argument};

use crate::THOUGHT;

/// Between two looks at the screen.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A person before `thought review`.
pub(crate) struct Person {
    child: Running,
    keyboard: Option<ChildStdin>,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How much of the screen was waited for already.
    read: usize,
}

/// What a session left.
pub(crate) struct Left {
    /// Everything that stood on the screen.
    pub(crate) screen: String,
    /// Exit code.
    pub(crate) code: String,
    /// The terminal's mode afterwards.
    pub(crate) mode: String,
}

impl Person {
    /// Sits down before `thought review` in a window of 40 rows and 100 columns.
    pub(crate) fn at(home: &Home, arguments: &[&str]) -> Self {
        let command = format!(
            "trap : INT; stty rows 40 cols 100; '{THOUGHT}' --home '{}' review {}; echo \"ended $?.\"; stty -a",
            argument(&home.path),
            arguments.join(" ")
        );
        #[expect(clippy::disallowed_methods, reason = "a terminal for the binary under test")]
        let mut script = Command::new("/usr/bin/script");
        script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
        script.env_clear().env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh").envs(&home.binary.env);
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = script.spawn().unwrap();
        let keyboard = child.stdin.take();
        let mut stdout = child.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shared = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0_u8; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut bytes) {
                shared.lock().unwrap().extend_from_slice(&bytes[..length]);
            }
        });
        Self { child: Running(child), keyboard, screen, read: 0 }
    }

    /// The same, and says yes to seeing content.
    pub(crate) fn consenting(home: &Home, arguments: &[&str]) -> Self {
        let mut person = Self::at(home, arguments);
        person.sees("[y/N]");
        person.types("y\n");
        person
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// Waits until this stands behind what was seen so far, and gives what stood in between.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
        let began = Instant::now();
        let (between, read) = loop {
            let screen = self.screen();
            if let Some(at) = screen[self.read..].find(text) {
                break (screen[self.read..self.read + at].to_owned(), self.read + at + text.len());
            }
            assert!(
                began.elapsed() < WAIT_MAX,
                "waited in vain for {text:?} behind {:?}",
                &screen[self.read..]
            );
            std::thread::sleep(LOOK_EVERY);
        };
        self.read = read;
        between
    }

    /// Types, whatever stands there.
    pub(crate) fn types(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits until keys are offered, and presses one.
    #[track_caller]
    pub(crate) fn presses(&mut self, key: &str) -> String {
        let shown = self.sees("[q]uit  [?]\r\n");
        self.types(key);
        shown
    }

    /// Presses one, and waits for what it says.
    #[track_caller]
    pub(crate) fn presses_and_sees(&mut self, key: &str, text: &str) -> String {
        let shown = self.presses(key);
        format!("{shown}{}", self.sees(text))
    }

    /// Waits for the end of it.
    #[track_caller]
    pub(crate) fn leaves(mut self) -> Left {
        self.sees("ended ");
        let code = self.sees(".\r\n");
        let mode = self.sees("iexten");
        drop(self.keyboard.take());
        self.child.wait_for_end("the end of the terminal");
        let screen = self.screen();
        let screen = screen.split("ended ").next().unwrap().to_owned();
        Left { screen, code, mode }
    }

    /// Quits, and waits for the end of it.
    #[track_caller]
    pub(crate) fn quits(mut self) -> Left {
        self.presses("q");
        let left = self.leaves();
        assert_eq!(left.code, "0", "{}", left.screen);
        left
    }
}
