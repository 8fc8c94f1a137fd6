//! The layers of both tiers, but for the list of system calls.

use std::error::Error;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetError, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Sealing, link};
use crate::limits::{FILES_SEALED, FILES_WHILE_SEALING};
use crate::sys::{self, Errno};

/// `CAP_SETPCAP`: without it the bounding set can't be touched, and no capability can be gained from it.
const CAP_SETPCAP: u32 = 8;

/// Started by root: drops groups and becomes nobody. The process stays readable to itself, which its
/// maps need, until [`become_undumpable`].
pub(super) fn become_nobody(_: &mut Sealing) -> Result<(), Errno> {
    if sys::effective_user() != 0 {
        return Ok(());
    }
    drop_bounding_set()?;
    sys::become_user(sys::NOBODY)?;
    sys::prctl(libc::PR_SET_DUMPABLE, 1, 0)?;
    // The kernel forgets the tie with a change of user.
    link::bind_to_parent()
}

/// Empties every set. The full tier has new ones, full again, since its user namespace.
pub(super) fn drop_capabilities(_: &mut Sealing) -> Result<(), Errno> {
    sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0)?;
    drop_bounding_set()?;
    sys::drop_capabilities()
}

fn drop_bounding_set() -> Result<(), Errno> {
    if sys::effective_capabilities()? & (1 << CAP_SETPCAP) == 0 {
        return Ok(());
    }
    for capability in 0..64 {
        match sys::prctl(libc::PR_CAPBSET_READ, capability, 0) {
            Ok(0) => {}
            Ok(_) => drop(sys::prctl(libc::PR_CAPBSET_DROP, capability, 0)?),
            // The kernel knows no capability from here on.
            Err(libc::EINVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(super) fn renounce_privileges(_: &mut Sealing) -> Result<(), Errno> {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    if sys::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0)? == 1 { Ok(()) } else { Err(libc::EPERM) }
}

/// Soft = hard everywhere: the first process of a namespace ignores the signal of a soft limit.
pub(super) fn limit_resources(sealing: &mut Sealing) -> Result<(), Errno> {
    let limits = sealing.order.limits;
    // Landlock lowers the last limit. A test program without Landlock must be able to look at the limits alone.
    let has_landlock = !sealing.trial.left_out.contains(&crate::Stage::Landlock);
    let files = if has_landlock { FILES_WHILE_SEALING } else { FILES_SEALED };
    let all = [
        (Resource::As, limits.address_space_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nofile, files),
        // Not relied on, for it counts per user; the list forbids new processes.
        (Resource::Nproc, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
    ];
    sealing.files_last = Some(FILES_SEALED);
    all.into_iter().try_for_each(|(resource, maximum)| limit(resource, maximum))
}

/// Lowers a limit, never raises one that is lower already.
fn limit(resource: Resource, maximum: u64) -> Result<(), Errno> {
    let value = getrlimit(resource).maximum.map_or(maximum, |inherited| inherited.min(maximum));
    let new = Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(resource, new).map_err(rustix::io::Errno::raw_os_error)?;
    if getrlimit(resource) == new { Ok(()) } else { Err(libc::EPERM) }
}

/// Landlock without a rule: everything it can forbid, is. Half of it is nothing, so it must be enforced
/// in full, at the highest ABI of the kernel.
pub(super) fn forbid_files_and_network(sealing: &mut Sealing) -> Result<(), Errno> {
    let abi = sys::landlock_abi()?;
    if abi < 1 {
        return Err(libc::ENOSYS);
    }
    let abi = ABI::from(abi);
    let status = restrict(abi).map_err(|error| errno_of(&error))?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(libc::EOPNOTSUPP);
    }
    sealing.landlock_abi = abi as i32;
    // Landlock needed one descriptor; from here on nothing needs any.
    sealing.files_last.map_or(Ok(()), |files| limit(Resource::Nofile, files))
}

fn restrict(abi: ABI) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    let (network, scopes) = (AccessNet::from_all(abi), Scope::from_all(abi));
    if !network.is_empty() {
        rules = rules.handle_access(network)?;
    }
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    rules.create()?.restrict_self()
}

/// The error number at the root of a library's error; the library wraps it several times.
fn errno_of(error: &(dyn Error + 'static)) -> Errno {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(number) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return number;
        }
        current = error.source();
    }
    libc::EOPNOTSUPP
}

pub(super) fn become_undumpable(_: &mut Sealing) -> Result<(), Errno> {
    sys::prctl(libc::PR_SET_DUMPABLE, 0, 0)?;
    if sys::prctl(libc::PR_GET_DUMPABLE, 0, 0)? == 0 { Ok(()) } else { Err(libc::EPERM) }
}
