//! What is wrong with a declaration, where, and what would be right.

use std::fmt;

use crate::yaml::YamlErrorKind;

/// A refused declaration. A declaration is configuration: the error may name its keys, not its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationError {
    /// The line of the file, from 1; absent when stored bytes were read.
    pub line: Option<usize>,
    /// The dotted path of the field, such as `subscriptions[0].replay`; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub problem: Problem,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
}

/// What can be wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not strict YAML.
    #[error("{0}")]
    Yaml(YamlErrorKind),
    /// The file is longer than a declaration may be.
    #[error("longer than {max} bytes")]
    TooLong {
        /// The bound, bytes.
        max: usize,
    },
    /// No declaration has this key.
    #[error("unknown key")]
    UnknownKey,
    /// The field must be written and is not.
    #[error("missing")]
    Missing,
    /// A value of another kind.
    #[error("must be {expected}")]
    WrongType {
        /// The demanded kind.
        expected: &'static str,
    },
    /// A number outside its bounds.
    #[error("must be {min} to {max}")]
    OutOfRange {
        /// Lowest.
        min: u32,
        /// Highest.
        max: u32,
    },
    /// A list with too few or too many entries.
    #[error("must have {min} to {max} entries")]
    Count {
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// Text that has not the demanded form.
    #[error("must be {expected}")]
    Form {
        /// The demanded form.
        expected: &'static str,
    },
    /// A name that is not among those known.
    #[error("unknown value")]
    UnknownValue,
    /// The same entry twice.
    #[error("written twice")]
    Repeated,
    /// A known runner that is not built in.
    #[error("this build has no such runner")]
    NoSuchRunner,
    /// Well formed, and not allowed here.
    #[error("{why}")]
    Refused {
        /// The rule, in fixed words.
        why: &'static str,
    },
    /// Stored bytes that are not the canonical form of a declaration.
    #[error("not the canonical bytes of a declaration")]
    NotCanonical,
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("read a declaration: ")?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for DeclarationError {}

/// The known name that a reader most likely meant, by edit distance; none when nothing is near.
pub fn nearest_name<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if written.is_empty() || written.chars().count() > LONGEST {
        return None;
    }
    let lower = written.to_lowercase();
    let (distance, name) = known
        .iter()
        .map(|name| (edit_distance(&lower, &name.to_lowercase()), *name))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).clamp(1, 3)).then_some(name)
}

/// Levenshtein's distance, with two neighbours swapped counting as one step.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let change = above[column] + usize::from(a != b);
            let mut least = change.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[right.len()]
}
