//! A hostile worker for tests: it seals itself as the real one does, then tries whatever it is told.
//!
//! A command is one line, a name and numbers; the answer is four bytes, a number. It must never be
//! shipped: it is a test program, and the product's binary holds none of it.

#[cfg(target_os = "linux")]
mod acts;
#[cfg(target_os = "linux")]
mod serve;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    serve::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
