//! The system calls of a sealed worker, as data. What is not here kills the process.
//!
//! The numbers are those of the target (x86-64 or aarch64); the calls are the same. A rule is here only
//! if the worker's own path needs it, and says which part. Never here: anything that opens, connects,
//! signals, traces, makes a process, a thread or a namespace, or maps executable memory.

use std::ffi::c_long;

/// One test of an argument: `argument & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentTest {
    /// Which argument, from 0.
    pub index: u8,
    /// The bits looked at.
    pub mask: u64,
    /// What they must be.
    pub value: u64,
}

/// One permitted call; it is permitted if every test holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The call by name.
    pub name: &'static str,
    /// Its number on this target.
    pub number: c_long,
    /// What its arguments must be.
    pub tests: &'static [ArgumentTest],
}

const fn call(name: &'static str, number: c_long, tests: &'static [ArgumentTest]) -> Rule {
    Rule { name, number, tests }
}

const fn exactly(index: u8, value: u64) -> ArgumentTest {
    ArgumentTest { index, mask: u32::MAX as u64, value }
}

const PRIVATE_ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;

const WAKE_PRIVATE: u64 = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;

/// The list.
pub const ALLOWED: &[Rule] = &[
    // `SealedChannel::read`: the packet and the raw answer come in.
    call("read", libc::SYS_read, &[exactly(0, 0)]),
    // `SealedChannel::write`: the sealed report, the request bytes and the result go out.
    call("write", libc::SYS_write, &[exactly(0, 0)]),
    // The runtime's last words on exhausted memory or stack, into the launcher's counter; a worker that
    // floods it blocks.
    call("write", libc::SYS_write, &[exactly(0, 2)]),
    // The allocator's blocks of 128 KiB and more. Fresh private memory only, never executable.
    call(
        "mmap",
        libc::SYS_mmap,
        &[
            ArgumentTest { index: 2, mask: libc::PROT_EXEC as u64, value: 0 },
            ArgumentTest { index: 3, mask: PRIVATE_ANONYMOUS, value: PRIVATE_ANONYMOUS },
        ],
    ),
    // The allocator gives such a block back; the runtime frees its signal stack at the end.
    call("munmap", libc::SYS_munmap, &[]),
    // The allocator grows such a block: a buffer that a frame is read into.
    call("mremap", libc::SYS_mremap, &[]),
    // The allocator's heap for everything smaller.
    call("brk", libc::SYS_brk, &[]),
    // The seed of a hash map.
    call("getrandom", libc::SYS_getrandom, &[]),
    // The unwinder's one-time set-up wakes whoever waits for it; nobody does, and waiting is not permitted.
    call("futex", libc::SYS_futex, &[exactly(1, WAKE_PRIVATE)]),
    // The runtime takes down its signal stack when `main` returns.
    call("sigaltstack", libc::SYS_sigaltstack, &[]),
    // The end.
    call("exit_group", libc::SYS_exit_group, &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_stands_twice() {
        for (index, rule) in ALLOWED.iter().enumerate() {
            assert!(!ALLOWED[..index].contains(rule), "{}", rule.name);
        }
    }

    #[test]
    fn nothing_on_the_list_reaches_out() {
        let forbidden = [
            libc::SYS_openat,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_sendmsg,
            libc::SYS_recvmsg,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_kill,
            libc::SYS_tgkill,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_mount,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_memfd_create,
            libc::SYS_add_key,
            libc::SYS_keyctl,
            libc::SYS_shmget,
            libc::SYS_mprotect,
            libc::SYS_prctl,
            libc::SYS_ioctl,
            libc::SYS_dup,
            libc::SYS_dup3,
        ];
        for rule in ALLOWED {
            assert!(!forbidden.contains(&rule.number), "{}", rule.name);
        }
    }
}
