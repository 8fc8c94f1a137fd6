//! Why a memory change could not be written: stable codes, and whether a person's word is spent by them.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $finality:ident;)*) => {
        /// A reason of a failed materialization.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The reason of a stable code.
            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// Whether it resolves the decision: a final one is never tried again.
            pub const fn finality(self) -> Finality {
                match self { $(Self::$name => Finality::$finality,)* }
            }
        }
    };
}

/// What a failure does to its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// It resolves it.
    Final,
    /// It is recorded once, and the decision is tried again.
    Retried,
}

reasons! {
    /// The document is not the one that the change was made for.
    StaleBase = "stale-base", Final;
    /// The document or its base version is not there.
    BaseMissing = "base-missing", Final;
    /// The root is no folder.
    RootNotDirectory = "root-not-directory", Final;
    /// A part of the root's path is a link.
    RootSymlink = "root-symlink", Final;
    /// The document is a folder, a pipe or a device.
    NotRegularFile = "not-regular-file", Final;
    /// The document is a link.
    Symlink = "symlink", Final;
    /// Its path leads out of the root.
    OutsideRoot = "outside-root", Final;
    /// The old or the new document has no frontmatter.
    FrontmatterMissing = "frontmatter-missing", Final;
    /// Its frontmatter is none.
    FrontmatterInvalid = "frontmatter-invalid", Final;
    /// The new document has another id.
    FrontmatterIdChanged = "frontmatter-id-changed", Final;
    /// The document is not UTF-8.
    InvalidUtf8 = "invalid-utf8", Final;
    /// The new document is over the configured size.
    TooLarge = "too-large", Final;
    /// It could not be written.
    WriteFailed = "write-failed", Retried;
    /// It was written and could not be scanned.
    ScanFailed = "scan-failed", Retried;
    /// What was scanned is not what was written.
    ReceiptMismatch = "receipt-mismatch", Retried;
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_reasons_spend_a_decision_and_three_do_not() {
        let retried: Vec<_> = Reason::ALL.iter().filter(|r| r.finality() == Finality::Retried).collect();
        assert_eq!(retried, [&Reason::WriteFailed, &Reason::ScanFailed, &Reason::ReceiptMismatch]);
        assert_eq!(Reason::ALL.len(), 15);
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::from_code("tired"), None);
    }
}
