//! The canonical bytes of a declaration, there and back.

use serde_json::Value;
use thought_protocol::canonical;

use super::Result;
use super::error::{DeclarationError, Problem};
use crate::yaml::{Node, NodeValue, Position, Resolved, Scalar, Style};

/// The canonical JSON of a tree as written.
pub(super) fn canonical_bytes(root: &Node) -> Result<Vec<u8>> {
    canonical::to_vec(&value_of(root)).map_err(|error| DeclarationError {
        line: Some(root.line()),
        field: String::new(),
        problem: match error {
            canonical::CanonicalError::Serialize(_) | canonical::CanonicalError::Number => {
                Problem::NotCanonical
            }
        },
        hint: None,
    })
}

/// The tree as JSON. Fields that were read are strings, integers, booleans, lists and mappings alone.
fn value_of(node: &Node) -> Value {
    match &node.value {
        NodeValue::Scalar(scalar) => match scalar.resolve() {
            Resolved::Null => Value::Null,
            Resolved::Bool(value) => Value::Bool(value),
            Resolved::Int(value) => Value::from(value),
            Resolved::OtherNumber => Value::String(scalar.text.clone()),
            Resolved::Str(text) => Value::String(text.to_owned()),
        },
        NodeValue::Sequence(items) => Value::Array(items.iter().map(value_of).collect()),
        NodeValue::Mapping(pairs) => Value::Object(
            pairs
                .iter()
                .map(|(key, value)| (key.as_str().unwrap_or_default().to_owned(), value_of(value)))
                .collect(),
        ),
    }
}

/// JSON as a tree, so that stored bytes are read by the same rules as a file.
pub(super) fn node_of(value: &Value) -> Node {
    let scalar = |text: String, style| NodeValue::Scalar(Scalar { text, style });
    let value = match value {
        Value::Null => scalar(String::new(), Style::Plain),
        Value::Bool(value) => scalar(value.to_string(), Style::Plain),
        Value::Number(number) => scalar(number.to_string(), Style::Plain),
        Value::String(text) => scalar(text.clone(), Style::Quoted),
        Value::Array(items) => NodeValue::Sequence(items.iter().map(node_of).collect()),
        Value::Object(members) => {
            let pair = |(key, value)| (node_of(&Value::String(String::clone(key))), node_of(value));
            NodeValue::Mapping(members.iter().map(pair).collect())
        }
    };
    Node { value, position: Position { line: 1, column: 1 } }
}
