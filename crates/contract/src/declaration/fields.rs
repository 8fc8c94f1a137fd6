//! Reading typed fields out of a tree, strictly: every key is known, every value of its kind and within its bounds.

use std::ops::RangeInclusive;

use super::error::{DeclarationError, Problem, nearest_name};
use crate::yaml::{Node, NodeValue};

type Result<T> = std::result::Result<T, DeclarationError>;

/// Most characters of a written key that an error repeats.
const KEY_SHOWN_CHARACTERS_MAX: usize = 64;

/// A value and the way to it.
#[derive(Clone)]
pub(super) struct Field<'n> {
    node: &'n Node,
    path: String,
}

/// A mapping whose keys are all known.
pub(super) struct Fields<'n> {
    place: Field<'n>,
    pairs: &'n [(Node, Node)],
}

impl<'n> Field<'n> {
    pub(super) fn root(node: &'n Node) -> Self {
        Self { node, path: String::new() }
    }

    /// The refusal of this field.
    pub(super) fn refuse(&self, problem: Problem, hint: Option<String>) -> DeclarationError {
        DeclarationError { line: Some(self.node.line()), field: self.path.clone(), problem, hint }
    }

    fn wrong_type(&self, expected: &'static str) -> DeclarationError {
        self.refuse(Problem::WrongType { expected }, None)
    }

    /// The value as a mapping that has none but these keys.
    pub(super) fn fields(self, known: &[&str]) -> Result<Fields<'n>> {
        let NodeValue::Mapping(pairs) = &self.node.value else {
            return Err(self.wrong_type("a mapping"));
        };
        for (key, _) in pairs {
            let written = key.as_str().unwrap_or_default();
            if !known.contains(&written) {
                let hint = nearest_name(written, known).map(|name| format!("did you mean {name}?"));
                let place = Self { node: key, path: self.below(&shown(written)) };
                return Err(place.refuse(Problem::UnknownKey, hint));
            }
        }
        Ok(Fields { place: self, pairs })
    }

    fn below(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn text(&self) -> Result<&'n str> {
        self.node.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        self.node.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    pub(super) fn number(&self, range: &RangeInclusive<u32>) -> Result<u32> {
        let written = self.node.as_int().ok_or_else(|| self.wrong_type("an integer"))?;
        match u32::try_from(written) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.refuse(Problem::OutOfRange { min: *range.start(), max: *range.end() }, None)),
        }
    }

    /// The entries of a list that has as many as it may.
    pub(super) fn list(&self, range: &RangeInclusive<usize>) -> Result<Vec<Self>> {
        let items = self.node.as_sequence().ok_or_else(|| self.wrong_type("a list"))?;
        if !range.contains(&items.len()) {
            return Err(self.refuse(Problem::Count { min: *range.start(), max: *range.end() }, None));
        }
        let place = |(index, node)| Self { node, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// A string that must be one of a few names.
    pub(super) fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T> {
        let written = self.text()?;
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == written) {
            return Ok(*value);
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let hint = match nearest_name(written, &names) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("known: {}", names.join(", ")),
        };
        Err(self.refuse(Problem::UnknownValue, Some(hint)))
    }

    /// A string that passes a test.
    pub(super) fn form(&self, expected: &'static str, fits: impl FnOnce(&str) -> bool) -> Result<&'n str> {
        let written = self.text()?;
        if fits(written) { Ok(written) } else { Err(self.refuse(Problem::Form { expected }, None)) }
    }

    /// The values of a list, no two the same.
    pub(super) fn distinct<T: PartialEq>(
        &self,
        range: &RangeInclusive<usize>,
        read: impl Fn(Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut values = Vec::new();
        for field in self.list(range)? {
            let place = field.clone();
            let value = read(field)?;
            if values.contains(&value) {
                return Err(place.refuse(Problem::Repeated, None));
            }
            values.push(value);
        }
        Ok(values)
    }
}

impl<'n> Fields<'n> {
    pub(super) fn get(&self, name: &str) -> Option<Field<'n>> {
        let (_, node) = self.pairs.iter().find(|(key, _)| key.as_str() == Some(name))?;
        Some(Field { node, path: self.place.below(name) })
    }

    pub(super) fn require(&self, name: &str) -> Result<Field<'n>> {
        self.get(name).ok_or_else(|| DeclarationError {
            line: Some(self.place.node.line()),
            field: self.place.below(name),
            problem: Problem::Missing,
            hint: None,
        })
    }

    /// A number, or what stands for it when it is not written.
    pub(super) fn number_or(&self, name: &str, range: &RangeInclusive<u32>, absent: u32) -> Result<u32> {
        self.get(name).map_or(Ok(absent), |field| field.number(range))
    }
}

/// A key as an error may show it: short, on one line.
fn shown(key: &str) -> String {
    key.chars().filter(|character| !character.is_control()).take(KEY_SHOWN_CHARACTERS_MAX).collect()
}
