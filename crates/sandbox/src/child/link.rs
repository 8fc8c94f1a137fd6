//! The ties between a starting worker and its launcher: the channel, the reports, life and death.
//!
//! A pid namespace begins with the next child, so in the full tier the process that was started makes
//! the worker as its own *sibling*: the launcher is the parent of both, and can wait for and kill the
//! worker itself. The outer process says the worker's id on the channel, and ends; the worker reports
//! only afterwards, so the launcher knows whom it hears.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};

use super::Sealing;
use crate::record::Record;
use crate::sys::{self, Errno};

const NAME: &std::ffi::CStr = c"thought-worker";

/// Whether the first descriptor is a launcher's channel.
pub(super) fn is_channel() -> Result<(), Errno> {
    match sys::channel_socket()? {
        (libc::AF_UNIX, libc::SOCK_STREAM) => Ok(()),
        _ => Err(libc::EPROTOTYPE),
    }
}

/// Writes one record, whole.
pub(super) fn report(record: Record) -> Result<(), Errno> {
    let bytes = record.encode();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match sys::write_channel(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(libc::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The kernel kills this process when the launcher's thread ends. A launcher that ended before that was
/// set has closed its end of the channel.
pub(super) fn die_with_parent(_: &mut Sealing) -> Result<(), Errno> {
    bind_to_parent()
}

/// Also called where the kernel forgets the tie: after a change of user, and in a new process.
pub(super) fn bind_to_parent() -> Result<(), Errno> {
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0)?;
    if sys::is_channel_hung_up()? { Err(libc::ESRCH) } else { Ok(()) }
}

/// Keeps the channel, and standard output and error, which both lead to the launcher's counter. The own
/// session keeps a terminal's signals away.
pub(super) fn shed_inheritance(_: &mut Sealing) -> Result<(), Errno> {
    sys::close_from(3)?;
    rustix::process::setsid().map_err(rustix::io::Errno::raw_os_error)?;
    rustix::process::chdir("/").map_err(rustix::io::Errno::raw_os_error)?;
    sys::set_process_name(NAME)
}

/// The worker's end of the wait for the outer process.
pub(super) struct Handoff(OwnedFd);

impl Handoff {
    /// Returns when the launcher has been told of this process.
    pub(super) fn wait(self) -> Result<(), Errno> {
        let mut byte = [0];
        match File::from(self.0).read(&mut byte) {
            Ok(1) => Ok(()),
            // The outer process died first: nobody knows this one.
            Ok(_) => Err(libc::ECHILD),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

/// Goes on as the first process of the new pid namespace; the outer process never returns from here.
pub(super) fn go_inside(sealing: &mut Sealing) -> Result<(), Errno> {
    let (wait_end, tell_end) = pipe_with(PipeFlags::CLOEXEC).map_err(rustix::io::Errno::raw_os_error)?;
    let pid = sys::fork_sibling()?;
    if pid != 0 {
        let told = report(Record::Forked { pid }).is_ok();
        // If this fails, the worker sees the end of the pipe and refuses.
        let passed = told && rustix::io::write(&tell_end, &[1]).is_ok();
        sys::exit_now(if passed { 0 } else { crate::EXIT_REFUSED });
    }
    drop(tell_end);
    sealing.handoff = Some(Handoff(wait_end));
    bind_to_parent()
}

/// Waits, if there is an outer process, so that no descriptor and no unheard sibling is left. Done as
/// late as the limits allow, for by then there is nothing to wait for.
pub(super) fn finish_handoff(sealing: &mut Sealing) -> Result<(), Errno> {
    sealing.handoff.take().map_or(Ok(()), Handoff::wait)
}
