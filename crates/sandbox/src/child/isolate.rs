//! The layers of the full tier: namespaces, and a root with nothing in it.

use std::fs::OpenOptions;
use std::io::Write;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::process::{chdir, pivot_root};

use super::Sealing;
use crate::sys::{self, Errno};

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Where the empty file system is put before it becomes the root: a folder that is always there, and
/// that goes away with the old root.
const STAGING: &str = "/proc";

pub(super) fn enter_namespaces(sealing: &mut Sealing) -> Result<(), Errno> {
    // The namespace must belong to the user who maps it, so its ids are those from before.
    sealing.ids = (sys::effective_user(), sys::effective_group());
    sys::unshare(NAMESPACES)
}

/// Maps the own user and group to themselves, and nobody else.
pub(super) fn map_ids(sealing: &mut Sealing) -> Result<(), Errno> {
    let (user, group) = sealing.ids;
    put("/proc/self/setgroups", "deny")?;
    put("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    put("/proc/self/gid_map", &format!("{group} {group} 1"))
}

fn put(path: &str, text: &str) -> Result<(), Errno> {
    let written =
        OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// Replaces the whole file system by an empty, read-only one.
pub(super) fn empty_root(_: &mut Sealing) -> Result<(), Errno> {
    become_empty().map_err(rustix::io::Errno::raw_os_error)
}

fn become_empty() -> rustix::io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("none", STAGING, "tmpfs", flags, c"size=4k,nr_inodes=2,mode=555")?;
    chdir(STAGING)?;
    // With the same folder twice the old root is stacked on the new one, and can be taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}
