//! The parameters of a call, from query, form or JSON, as Telegram reads them: everything may come as text.

use serde_json::{Map, Value};

use crate::encoding::form_pairs;
use crate::http::Request;

/// What a call was given; later places (the body) win over earlier ones (the query).
pub(crate) struct Params(pub(crate) Map<String, Value>);

impl Params {
    /// Reads them, or says in Telegram's words why not.
    pub(crate) fn read(request: &Request) -> Result<Self, String> {
        let mut params = Map::new();
        add_form(&mut params, &request.query)?;
        let content_type = request.header("content-type").unwrap_or("");
        let kind = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        if request.body.is_empty() {
            return Ok(Self(params));
        }
        match kind.as_str() {
            "application/json" => match serde_json::from_slice(&request.body) {
                Ok(Value::Object(members)) => params.extend(members),
                Ok(_) | Err(_) => return Err("Bad Request: can't parse JSON object".to_owned()),
            },
            "application/x-www-form-urlencoded" => match str::from_utf8(&request.body) {
                Ok(form) => add_form(&mut params, form)?,
                Err(_) => return Err("Bad Request: strings must be encoded in UTF-8".to_owned()),
            },
            _ => return Err("Bad Request: unsupported content type".to_owned()),
        }
        params.retain(|_, value| !value.is_null());
        Ok(Self(params))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(_) | Value::Object(_) | Value::Null => None,
            plain => Some(plain.to_string()),
        }
    }

    /// An integer; `Err` when something else stands there.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        let number = match self.0.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_i64(),
        };
        number.map(Some).ok_or_else(|| format!("Bad Request: parameter \"{name}\" must be an integer"))
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "1"),
            Some(Value::Number(number)) => number.as_i64() == Some(1),
            _ => false,
        }
    }

    /// An array or object, given as such or as JSON text.
    pub(crate) fn structure(&self, name: &str) -> Result<Option<Value>, String> {
        let value = match self.0.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(value) => value,
                Err(_) => return Err(format!("Bad Request: can't parse {name} JSON object")),
            },
            Some(value) => value.clone(),
        };
        match value {
            Value::Array(_) | Value::Object(_) => Ok(Some(value)),
            _ => Err(format!("Bad Request: object expected as {name}")),
        }
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<Vec<Value>>, String> {
        match self.structure(name)? {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(format!("Bad Request: expected an Array of {name}")),
        }
    }
}

fn add_form(params: &mut Map<String, Value>, form: &str) -> Result<(), String> {
    let pairs = form_pairs(form).ok_or("Bad Request: strings must be encoded in UTF-8")?;
    params.extend(pairs.into_iter().map(|(name, value)| (name, Value::String(value))));
    Ok(())
}
