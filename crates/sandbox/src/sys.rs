//! The system calls that no safe library offers as this crate needs them. All `unsafe` is here, each
//! block with its reason; nothing here decides anything.
//!
//! Everything is called by the worker alone, single-threaded, before its seal (the channel's two calls
//! also after it).

use std::ffi::{c_int, c_long, c_ulong};

/// A system's error number.
pub(crate) type Errno = i32;

/// The descriptor of the channel.
pub(crate) const CHANNEL: c_int = 0;

/// Owner and group of nothing.
pub(crate) const NOBODY: u32 = 65_534;

fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn check(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// Reads from the channel. Only `read` itself is used: other calls are not on the list.
pub(crate) fn read_channel(buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the pointer and the length are those of one exclusively borrowed slice.
    let count = unsafe { libc::read(CHANNEL, buffer.as_mut_ptr().cast(), buffer.len()) };
    check(count as c_long).map(|count| count as usize)
}

/// Writes to the channel; `SIGPIPE` is ignored by the runtime of every Rust program.
pub(crate) fn write_channel(bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the pointer and the length are those of one borrowed slice, which the kernel only reads.
    let count = unsafe { libc::write(CHANNEL, bytes.as_ptr().cast(), bytes.len()) };
    check(count as c_long).map(|count| count as usize)
}

/// The domain and type of the socket on the channel's descriptor.
pub(crate) fn channel_socket() -> Result<(c_int, c_int), Errno> {
    let option = |name: c_int| {
        let mut value: c_int = 0;
        let mut length = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: value and length are live locals, and length is the size of value.
        let result = unsafe {
            libc::getsockopt(CHANNEL, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length)
        };
        check(c_long::from(result)).map(|_| value)
    };
    Ok((option(libc::SO_DOMAIN)?, option(libc::SO_TYPE)?))
}

/// Whether the other end of the channel is closed.
pub(crate) fn is_channel_hung_up() -> Result<bool, Errno> {
    let mut entry = libc::pollfd { fd: CHANNEL, events: 0, revents: 0 };
    // SAFETY: one live entry, and the count says one; a time-out of 0 does not wait.
    check(c_long::from(unsafe { libc::poll(&raw mut entry, 1, 0) }))?;
    Ok(entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0)
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> Result<(), Errno> {
    // SAFETY: the caller holds no owned descriptor from `first` on; it has opened none yet.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0u32) }).map(drop)
}

/// `prctl` with integer arguments only.
pub(crate) fn prctl(option: c_int, argument: c_ulong, second: c_ulong) -> Result<c_int, Errno> {
    // SAFETY: the options used by this crate read their arguments as integers; the rest is zero, as they demand.
    let result = unsafe { libc::prctl(option, argument, second, 0 as c_ulong, 0 as c_ulong) };
    check(c_long::from(result)).map(|value| value as c_int)
}

/// The name in the process list.
pub(crate) fn set_process_name(name: &std::ffi::CStr) -> Result<(), Errno> {
    // SAFETY: the option reads a string that ends with a zero byte, and `name` is one.
    let result = unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
    check(c_long::from(result)).map(drop)
}

/// The effective user.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: it takes nothing and can't fail.
    unsafe { libc::geteuid() }
}

/// The effective group.
pub(crate) fn effective_group() -> u32 {
    // SAFETY: it takes nothing and can't fail.
    unsafe { libc::getegid() }
}

/// Drops every supplementary group and becomes `id` as real, effective and saved user and group.
pub(crate) fn become_user(id: u32) -> Result<(), Errno> {
    // SAFETY: a count of zero reads no list; the ids are plain integers.
    unsafe {
        check(c_long::from(libc::setgroups(0, std::ptr::null())))?;
        check(c_long::from(libc::setresgid(id, id, id)))?;
        check(c_long::from(libc::setresuid(id, id, id)))?;
    }
    Ok(())
}

/// Moves the process into new namespaces.
pub(crate) fn unshare(flags: c_int) -> Result<(), Errno> {
    // SAFETY: the flags name namespaces only; memory and descriptors stay shared as they are.
    check(c_long::from(unsafe { libc::unshare(flags) })).map(drop)
}

/// Makes a copy of this process whose parent is the parent of this one. Gives the id of the copy, and
/// zero in the copy.
pub(crate) fn fork_sibling() -> Result<i32, Errno> {
    let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as c_ulong;
    let zero: c_ulong = 0;
    // SAFETY: without CLONE_VM the copy has its own memory and goes on on its own copy of this stack. The
    // process has one thread, so no lock is held by another that the copy would lack.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) })?;
    Ok(pid as i32)
}

/// Ends the process at once, without any clean-up.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: it does not return, and nothing is relied on afterwards.
    unsafe { libc::_exit(code) }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// The effective capabilities as a bit set.
pub(crate) fn effective_capabilities() -> Result<u64, Errno> {
    let data = capabilities()?;
    Ok(u64::from(data[0].effective) | (u64::from(data[1].effective) << 32))
}

fn capabilities() -> Result<[CapabilityData; 2], Errno> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: version 3 writes two data structures, and two are there.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    Ok(data)
}

/// Empties the effective, permitted and inheritable sets, and looks whether they are empty.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let data = [CapabilityData::default(); 2];
    // SAFETY: version 3 reads two data structures, and two are there.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) })?;
    if capabilities()? == data { Ok(()) } else { Err(libc::EPERM) }
}

/// The highest Landlock ABI of the kernel.
pub(crate) fn landlock_abi() -> Result<i32, Errno> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no attributes: pointer and size must be zero, and are.
    let abi = check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    })?;
    Ok(abi as i32)
}
