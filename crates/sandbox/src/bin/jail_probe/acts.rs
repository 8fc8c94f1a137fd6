//! Everything that a worker must not be able to do, one function each, and what it may know about itself.
//!
//! A forbidden act answers 0 if it was possible, else the system's error number. The calls are made
//! without a library in between, so that a library's own detours are not what is tested.

use std::ffi::{CStr, c_long};
use std::io::Write;

/// One call, given plain numbers and addresses of live things.
fn call(number: c_long, arguments: [usize; 6]) -> Result<usize, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: every caller in this file passes addresses of live buffers with their true lengths, or null.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    } else {
        Ok(result as usize)
    }
}

fn attempt(number: c_long, arguments: &[usize]) -> Result<usize, i32> {
    let mut six = [0; 6];
    for (slot, argument) in six.iter_mut().zip(arguments) {
        *slot = *argument;
    }
    call(number, six)
}

fn tried(number: c_long, arguments: &[usize]) -> i32 {
    attempt(number, arguments).err().unwrap_or(0)
}

fn open(path: &CStr, flags: i32) -> i32 {
    tried(libc::SYS_openat, &[libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0o600])
}

fn open_of(pid: usize, file: &str) -> i32 {
    match std::ffi::CString::new(format!("/proc/{pid}/{file}")) {
        Ok(path) => open(&path, libc::O_RDONLY),
        Err(_) => -1,
    }
}

fn socket(domain: i32, kind: i32) -> i32 {
    tried(libc::SYS_socket, &[domain as usize, kind as usize, 0])
}

/// Connects a new socket to an address.
fn connect(domain: i32, kind: i32, address: &[u8]) -> i32 {
    match attempt(libc::SYS_socket, &[domain as usize, kind as usize, 0]) {
        Ok(fd) => tried(libc::SYS_connect, &[fd, address.as_ptr() as usize, address.len()]),
        Err(errno) => errno,
    }
}

/// A port of this machine itself.
fn loopback(port: usize) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&(port as u16).to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

/// A local socket by its name; an abstract name begins with a zero byte.
fn local(name: &str) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(name.as_bytes());
    address
}

/// One byte to a port: the only thing that a connection of datagrams proves.
fn send_datagram(port: usize) -> i32 {
    let address = loopback(port);
    match attempt(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_DGRAM as usize, 0]) {
        Ok(fd) => {
            let arguments = [fd, b"x".as_ptr() as usize, 1, 0, address.as_ptr() as usize, address.len()];
            tried(libc::SYS_sendto, &arguments)
        }
        Err(errno) => errno,
    }
}

/// Copies without end.
fn fork_bomb() -> i32 {
    loop {
        match attempt(libc::SYS_clone, &[libc::SIGCHLD as usize]) {
            Ok(_) => {}
            Err(errno) => return errno,
        }
    }
}

/// The names in the root folder, but for itself and its parent.
fn list_root() -> i32 {
    let folder = [libc::AT_FDCWD as usize, c"/".as_ptr() as usize, libc::O_DIRECTORY as usize];
    let mut entries = [0u8; 1024];
    let listed = attempt(libc::SYS_openat, &folder)
        .and_then(|fd| attempt(libc::SYS_getdents64, &[fd, entries.as_mut_ptr() as usize, entries.len()]));
    match listed {
        // Two records of 24 bytes: there is nothing in it.
        Ok(length) if length <= 48 => libc::ENODATA,
        Ok(_) => 0,
        Err(errno) => errno,
    }
}

fn fork() -> i32 {
    match attempt(libc::SYS_clone, &[libc::SIGCHLD as usize]) {
        // SAFETY: the copy ends at once, with nothing of the original's.
        Ok(0) => unsafe { libc::_exit(0) },
        Ok(_) => 0,
        Err(errno) => errno,
    }
}

fn create(path: &CStr) -> i32 {
    open(path, libc::O_WRONLY | libc::O_CREAT)
}

/// Makes a file of the asker's own name in a folder.
fn create_in(folder: &str, number: usize) -> i32 {
    match std::ffi::CString::new(format!("{folder}/jail-probe-file-{number}")) {
        Ok(path) => create(&path),
        Err(_) => -1,
    }
}

fn map(protection: i32) -> Result<usize, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    attempt(libc::SYS_mmap, &[0, 4096, protection as usize, flags as usize, usize::MAX, 0])
}

fn protect_executable() -> i32 {
    match map(libc::PROT_READ | libc::PROT_WRITE) {
        Ok(address) => {
            tried(libc::SYS_mprotect, &[address, 4096, (libc::PROT_READ | libc::PROT_EXEC) as usize])
        }
        Err(errno) => errno,
    }
}

fn exec() -> i32 {
    let path = c"/bin/true";
    let arguments = [path.as_ptr() as usize, 0];
    tried(
        libc::SYS_execve,
        &[path.as_ptr() as usize, arguments.as_ptr() as usize, arguments[1..].as_ptr() as usize],
    )
}

/// A call by the numbers of another table of the same processor.
#[cfg(target_arch = "x86_64")]
fn foreign_table(name: &str) -> i32 {
    const X32: c_long = 0x4000_0000;
    if name == "x32" {
        return tried(X32 | libc::SYS_getpid, &[]);
    }
    let result: i64;
    // SAFETY: number 20 of the 32-bit table is getpid; it takes and changes nothing.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20i64 => result, options(nostack));
    }
    if result < 0 { result.unsigned_abs() as i32 } else { 0 }
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_table(_: &str) -> i32 {
    // There is no second table to call by; the nearest forbidden thing is the call itself.
    tried(libc::SYS_getpid, &[])
}

fn allocate(bytes: usize) -> i32 {
    let mut room: Vec<u8> = Vec::new();
    match room.try_reserve_exact(bytes) {
        Ok(()) => 0,
        Err(_) => libc::ENOMEM,
    }
}

/// Asks for more than there is in a way that can't be refused: the runtime ends the process.
fn exhaust(bytes: usize) -> i32 {
    let room: Vec<u8> = Vec::with_capacity(bytes);
    i32::from(room.capacity() < bytes)
}

/// Seeds a hash map.
fn hash() -> i32 {
    use std::hash::BuildHasher;
    let state = std::hash::RandomState::new();
    i32::from(state.hash_one(1) != state.hash_one(1))
}

/// Writes pieces of this length until nobody listens.
fn flood(length: usize) -> i32 {
    let mut errors = std::io::stderr();
    let piece = vec![b'x'; length];
    while errors.write_all(&piece).is_ok() {}
    libc::EPIPE
}

fn spin() -> i32 {
    loop {
        std::hint::spin_loop();
    }
}

/// Bytes of the vm_readv target are read from an address that may not be mapped: `EFAULT` means that the
/// act itself was permitted.
fn read_memory_of(pid: usize) -> i32 {
    let mut byte = 0u8;
    let local = [(&raw mut byte) as usize, 1];
    let remote = [4096usize, 1];
    let arguments = [pid, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    match call(libc::SYS_process_vm_readv, arguments) {
        Err(libc::EFAULT) | Ok(_) => 0,
        Err(errno) => errno,
    }
}

fn limit(resource: u32) -> i32 {
    let mut value = [0u64; 2];
    match attempt(libc::SYS_prlimit64, &[0, resource as usize, 0, value.as_mut_ptr() as usize]) {
        Ok(_) if value[0] == value[1] => i32::try_from(value[0]).unwrap_or(i32::MAX),
        Ok(_) => -1,
        Err(errno) => -errno,
    }
}

fn control(option: i32, argument: usize) -> i32 {
    attempt(libc::SYS_prctl, &[option as usize, argument]).map_or_else(|errno| -errno, |value| value as i32)
}

/// How many capabilities are in any set, the bounding set included.
fn capabilities() -> i32 {
    let header = [0x2008_0522u32, 0];
    let mut data = [0u32; 6];
    if let Err(errno) = attempt(libc::SYS_capget, &[header.as_ptr() as usize, data.as_mut_ptr() as usize]) {
        return -errno;
    }
    let held: u32 = data.iter().map(|word| word.count_ones()).sum();
    held as i32
}

fn bounding() -> i32 {
    (0..64).filter(|capability| control(libc::PR_CAPBSET_READ, *capability) == 1).count() as i32
}

/// Runs an act by name. An unknown name answers -1.
pub(crate) fn run(name: &str, number: usize) -> i32 {
    reaching_out(name, number)
        .or_else(|| forbidden(name, number))
        .or_else(|| resource(name, number))
        .or_else(|| state(name, number))
        .unwrap_or(-1)
}

/// Files and sockets.
fn reaching_out(name: &str, pid: usize) -> Option<i32> {
    Some(match name {
        "open-passwd" => open(c"/etc/passwd", libc::O_RDONLY),
        "list-root" => list_root(),
        "environ-of" => open_of(pid, "environ"),
        "memory-file-of" => open_of(pid, "mem"),
        "tcp" => socket(libc::AF_INET, libc::SOCK_STREAM),
        "udp" => socket(libc::AF_INET, libc::SOCK_DGRAM),
        "unix" => socket(libc::AF_UNIX, libc::SOCK_STREAM),
        "netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW),
        "vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM),
        "packet" => socket(libc::AF_PACKET, libc::SOCK_RAW),
        "tcp-connect" => connect(libc::AF_INET, libc::SOCK_STREAM, &loopback(pid)),
        "udp-send" => send_datagram(pid),
        "unix-pathname" => {
            connect(libc::AF_UNIX, libc::SOCK_STREAM, &local(&format!("/tmp/jail-probe-{pid}\0")))
        }
        "unix-abstract" => connect(libc::AF_UNIX, libc::SOCK_STREAM, &local(&format!("\0jail-probe-{pid}"))),
        "socket-pair" => {
            let mut ends = [0i32; 2];
            let kind = libc::SOCK_STREAM as usize;
            tried(libc::SYS_socketpair, &[libc::AF_UNIX as usize, kind, 0, ends.as_mut_ptr() as usize])
        }
        "send-descriptor" => tried(libc::SYS_sendmsg, &[0, 0, 0]),
        "take-descriptor" => tried(libc::SYS_recvmsg, &[0, 0, 0]),
        "write-tmp" => create_in("/tmp", pid),
        "write-shm" => create_in("/dev/shm", pid),
        "write-here" => create(c"./jail-probe"),
        "write-root" => create(c"/jail-probe"),
        _ => return None,
    })
}

/// Everything else.
fn forbidden(name: &str, pid: usize) -> Option<i32> {
    Some(match name {
        "fork" => fork(),
        "fork-bomb" => fork_bomb(),
        "exec-of-descriptor" => tried(libc::SYS_execveat, &[0, c"".as_ptr() as usize, 0, 0, 0x1000]),
        "clone3" => tried(libc::SYS_clone3, &[0, 0]),
        "exec" => exec(),
        "trace" => tried(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, pid, 0, 0]),
        "read-memory-of" => read_memory_of(pid),
        "write-memory-of" => tried(libc::SYS_process_vm_writev, &[pid, 0, 0, 0, 0, 0]),
        "signal" => tried(libc::SYS_kill, &[pid, 0]),
        "signal-thread" => tried(libc::SYS_tgkill, &[pid, pid, 0]),
        "process-descriptor" => tried(libc::SYS_pidfd_open, &[pid, 0]),
        "memfd" => tried(libc::SYS_memfd_create, &[c"x".as_ptr() as usize, 0]),
        "io-uring" => {
            let mut parameters = [0u64; 15];
            tried(libc::SYS_io_uring_setup, &[1, parameters.as_mut_ptr() as usize])
        }
        "bpf" => tried(libc::SYS_bpf, &[0, 0, 0]),
        "userfaultfd" => tried(libc::SYS_userfaultfd, &[1]),
        "keyring" => {
            let (kind, what) = (c"user", c"jail-probe");
            let data = *b"x";
            let process_keyring = -2isize as usize;
            tried(
                libc::SYS_add_key,
                &[kind.as_ptr() as usize, what.as_ptr() as usize, data.as_ptr() as usize, 1, process_keyring],
            )
        }
        "keyring-control" => tried(libc::SYS_keyctl, &[0, -2isize as usize, 0]),
        "semaphores" => tried(libc::SYS_semget, &[0, 1, libc::IPC_CREAT as usize | 0o600]),
        "messages" => tried(libc::SYS_msgget, &[0, libc::IPC_CREAT as usize | 0o600]),
        "shared-memory" => tried(libc::SYS_shmget, &[0, 4096, libc::IPC_CREAT as usize | 0o600]),
        "user-namespace" => tried(libc::SYS_unshare, &[libc::CLONE_NEWUSER as usize]),
        "join-namespace" => tried(libc::SYS_setns, &[0, 0]),
        "change-root" => tried(libc::SYS_chroot, &[c"/".as_ptr() as usize]),
        "mount" => {
            let kind = c"tmpfs".as_ptr() as usize;
            tried(libc::SYS_mount, &[kind, c"/".as_ptr() as usize, kind, 0, 0])
        }
        "map-executable" => map(libc::PROT_READ | libc::PROT_EXEC).err().unwrap_or(0),
        "protect-executable" => protect_executable(),
        "pipe" => {
            let mut ends = [0i32; 2];
            tried(libc::SYS_pipe2, &[ends.as_mut_ptr() as usize, 0])
        }
        "duplicate" => tried(libc::SYS_dup, &[0]),
        "system-name" => {
            let mut name = [0u8; 1024];
            tried(libc::SYS_uname, &[name.as_mut_ptr() as usize])
        }
        "read-other" => {
            let mut byte = [0u8];
            tried(libc::SYS_read, &[9, byte.as_mut_ptr() as usize, 1])
        }
        "control" => tried(libc::SYS_ioctl, &[0, 0, 0]),
        "x32" | "i386" => foreign_table(name),
        _ => return None,
    })
}

fn resource(name: &str, number: usize) -> Option<i32> {
    Some(match name {
        "allocate" => allocate(number),
        "exhaust" => exhaust(number),
        "hash" => hash(),
        "flood" => flood(number.max(1)),
        "spin" => spin(),
        _ => return None,
    })
}

fn state(name: &str, number: usize) -> Option<i32> {
    let value = |call: c_long| attempt(call, &[]).map_or_else(|errno| -errno, |value| value as i32);
    Some(match name {
        "environment" => std::env::vars_os().count() as i32,
        "has-descriptor" => i32::from(attempt(libc::SYS_fcntl, &[number, libc::F_GETFD as usize]).is_ok()),
        "no-new-privileges" => control(libc::PR_GET_NO_NEW_PRIVS, 0),
        "dumpable" => control(libc::PR_GET_DUMPABLE, 0),
        "death-signal" => {
            let mut signal = 0i32;
            match attempt(libc::SYS_prctl, &[libc::PR_GET_PDEATHSIG as usize, (&raw mut signal) as usize]) {
                Ok(_) => signal,
                Err(errno) => -errno,
            }
        }
        "capabilities" => capabilities(),
        "bounding" => bounding(),
        "limit" => limit(number as u32),
        "user" => value(libc::SYS_getuid),
        "group" => value(libc::SYS_getgid),
        "groups" => value(libc::SYS_getgroups),
        "process" => value(libc::SYS_getpid),
        "session" => value(libc::SYS_getsid),
        _ => return None,
    })
}
