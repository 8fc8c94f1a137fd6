//! The launch steps by name, in the order in which a worker takes them.

use std::fmt;

use crate::Tier;

/// One step between the start of a worker and its first read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Its order is readable, its environment empty, and its first descriptor the launcher's channel.
    Order,
    /// It dies with its launcher, which is still alive.
    ParentLink,
    /// Every descriptor but the three standard ones is closed; own session; root as working folder.
    Descriptors,
    /// Started by root, it becomes nobody.
    Identity,
    /// New user, mount, pid, net, ipc, uts and cgroup namespaces.
    Namespaces,
    /// One user and one group are mapped into the user namespace.
    IdMaps,
    /// The process that goes on is the first of the new pid namespace; the outer one ends.
    InnerProcess,
    /// An empty read-only file system is the root, and the old one is gone.
    EmptyRoot,
    /// Bounding, ambient, inheritable, permitted and effective capabilities are empty.
    Capabilities,
    /// No program can give back a privilege.
    NoNewPrivileges,
    /// Address space, processor time, files, processes, file size, core: soft = hard.
    ResourceLimits,
    /// A Landlock ruleset without a rule, of the highest ABI of the kernel.
    Landlock,
    /// No core dump, no tracer.
    Undumpable,
    /// The list of permitted system calls; anything else kills.
    Seccomp,
}

impl Stage {
    /// Every step, in order.
    pub const ALL: &'static [Self] = &[
        Self::Order,
        Self::ParentLink,
        Self::Descriptors,
        Self::Identity,
        Self::Namespaces,
        Self::IdMaps,
        Self::InnerProcess,
        Self::EmptyRoot,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::ResourceLimits,
        Self::Landlock,
        Self::Undumpable,
        Self::Seccomp,
    ];

    /// The name that stands in errors and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::ParentLink => "parent-link",
            Self::Descriptors => "descriptors",
            Self::Identity => "identity",
            Self::Namespaces => "namespaces",
            Self::IdMaps => "id-maps",
            Self::InnerProcess => "inner-process",
            Self::EmptyRoot => "empty-root",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::ResourceLimits => "resource-limits",
            Self::Landlock => "landlock",
            Self::Undumpable => "undumpable",
            Self::Seccomp => "seccomp",
        }
    }

    /// Whether the tier takes this step.
    #[must_use]
    pub fn is_in(self, tier: Tier) -> bool {
        tier == Tier::Full
            || !matches!(self, Self::Namespaces | Self::IdMaps | Self::InnerProcess | Self::EmptyRoot)
    }

    /// What the step is for, in a few words; the reference page of the jail says it act by act.
    #[must_use]
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Order => "an empty environment, and nothing to choose",
            Self::ParentLink => "no worker outlives its launcher",
            Self::Descriptors => "no inherited descriptor",
            Self::Identity => "never root",
            Self::Namespaces => "no other process and no network in sight",
            Self::IdMaps => "no other user or group",
            Self::InnerProcess => "no process outside by its number",
            Self::EmptyRoot => "no file to open, list or write",
            Self::Capabilities => "no privilege inside the namespaces",
            Self::NoNewPrivileges => "no privilege by a program",
            Self::ResourceLimits => "no further descriptor or process; memory and time are bounded",
            Self::Landlock => "no file, no program, no tracing; by its ABI no TCP, abstract socket or signal",
            Self::Undumpable => "no core, and no tracer",
            Self::Seccomp => {
                "any call but a dozen kills; alone stops vsock, fork, memfd, io_uring, new namespaces"
            }
        }
    }

    /// One sentence for a person: what is missing when this step is refused, and how to get it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Order => "the worker is started by the product alone, never by hand",
            Self::ParentLink => "the process that launched the worker was gone; start it again",
            Self::Descriptors => "the kernel lacks close_range; Linux 5.13 or later is needed",
            Self::Identity => {
                "root may not change its user here; run as an ordinary user, or give CAP_SETUID and CAP_SETGID"
            }
            Self::Namespaces => {
                "user namespaces are denied here (a container's profile, or a limit of zero); allow them, or set [sandbox] mode = \"landlock+seccomp\""
            }
            Self::IdMaps | Self::InnerProcess | Self::EmptyRoot => {
                "user namespaces exist but have no power here (AppArmor restricts them, or a container forbids mounts); allow userns for this binary in an AppArmor profile, or set [sandbox] mode = \"landlock+seccomp\""
            }
            Self::Capabilities => {
                "capabilities could not be dropped; an outer sandbox or AppArmor holds the namespace back, so allow userns for this binary, or set [sandbox] mode = \"landlock+seccomp\""
            }
            Self::NoNewPrivileges => "the kernel refuses no_new_privs; an outer sandbox stands in the way",
            Self::ResourceLimits => "resource limits cannot be lowered; an outer sandbox stands in the way",
            Self::Landlock => {
                "Landlock is missing; Linux 5.13 or later with landlock in the kernel's lsm list is needed"
            }
            Self::Undumpable => "the process cannot be made undumpable; an outer sandbox stands in the way",
            Self::Seccomp => {
                "seccomp filters are missing or forbidden; a kernel with CONFIG_SECCOMP_FILTER is needed"
            }
        }
    }
}

/// The codes of the status record.
#[cfg(target_os = "linux")]
impl Stage {
    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|stage| stage.code() == code)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole_ordered_and_its_codes_and_names_are_distinct() {
        for pair in Stage::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
            assert_ne!(pair[0].name(), pair[1].name());
        }
        for stage in Stage::ALL {
            assert_eq!(Stage::from_code(stage.code()), Some(*stage));
            assert!(!stage.hint().is_empty() && !stage.purpose().is_empty());
            assert_eq!(stage.hint().matches(". ").count(), 0, "one sentence: {stage}");
        }
        assert_eq!(Stage::from_code(0), None);
        assert_eq!(Stage::ALL.last(), Some(&Stage::Seccomp), "the filter comes last");
    }

    #[test]
    fn the_lesser_tier_lacks_only_what_needs_namespaces() {
        let missing: Vec<_> = Stage::ALL.iter().filter(|stage| !stage.is_in(Tier::LandlockSeccomp)).collect();
        assert_eq!(missing, [&Stage::Namespaces, &Stage::IdMaps, &Stage::InnerProcess, &Stage::EmptyRoot]);
        assert!(Stage::ALL.iter().all(|stage| stage.is_in(Tier::Full)));
    }
}
