//! What must hold whatever the bytes are, one module for each thing that reads what somebody else wrote.
//!
//! The fuzz targets call these functions, and so does a test of the product, which includes this file: with the corpora
//! and seeded changes of them, on any toolchain. Nothing here may be random, slow or outside of memory.

pub mod answers;
pub mod arguments;
pub mod configuration;
pub mod declarations;
pub mod focus;
pub mod frames;
pub mod frontmatter;
pub mod packets;
pub mod results;
pub mod reviews;
pub mod spool;
pub mod updates;

/// What a target made of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is what the target reads, and everything that must hold of such a thing was tried.
    Taken,
    /// It is not, and was refused as it must be.
    Refused,
}

/// A target: reads one input, and panics where something that must hold does not.
pub type Target = fn(&[u8]) -> Seen;

/// A word that stands in inputs for what is private, and that no text of the product holds.
pub const PLANTED: &str = "qzprivatewordzq";

/// Demands that what is told of an input does not quote it: nothing of it was private, or nothing private is told.
pub(crate) fn is_dark(told: &dyn std::fmt::Debug) {
    assert!(!format!("{told:?}").contains(PLANTED), "what is told of an input quotes it");
}

/// As [`is_dark`], of an error: its form for logs, its sentence, and those of its causes.
pub(crate) fn is_dark_error(error: &(dyn std::error::Error + 'static)) {
    is_dark(&error);
    let mut cause = Some(error);
    while let Some(error) = cause {
        assert!(!error.to_string().contains(PLANTED), "an error quotes its input");
        cause = error.source();
    }
}

/// Every target by name: that of its corpus and of its file in `fuzz_targets`.
pub const TARGETS: [(&str, Target); 12] = [
    ("answers", answers::read),
    ("arguments", arguments::read),
    ("configuration", configuration::read),
    ("declarations", declarations::read),
    ("focus", focus::read),
    ("frames", frames::read),
    ("frontmatter", frontmatter::read),
    ("packets", packets::read),
    ("results", results::read),
    ("reviews", reviews::read),
    ("spool", spool::read),
    ("updates", updates::read),
];
