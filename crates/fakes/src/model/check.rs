//! What both vendors' request checks share: reading members of JSON and recognizing images.

use serde_json::{Map, Value};

use crate::encoding::base64_decode;
use crate::limits::{IMAGE_BYTES_MAX, NAME_CHARS_MAX};

/// A request that is refused: HTTP status, the vendor's type and code, and the vendor's words.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) code: Option<&'static str>,
    pub(super) param: Option<String>,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { status: 400, kind: "invalid_request_error", code: None, param: None, message: message.into() }
    }

    pub(super) fn of(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, ..Self::invalid(message) }
    }

    pub(super) fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn with_param(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }
}

pub(super) type Checked<T = ()> = Result<T, Refusal>;

/// The first member that is not among those known.
pub(super) fn unknown_member<'a>(object: &'a Map<String, Value>, known: &[&str]) -> Option<&'a str> {
    object.keys().map(String::as_str).find(|name| !known.contains(name))
}

pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// `^[a-zA-Z0-9_-]{1,64}$`, the rule for tool names and Anthropic's tool ids.
pub(super) fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Whether a base64 image is one, of the type that it says, and within bounds; else why not.
pub(super) fn check_image(media_type: &str, base64: &str) -> Result<(), String> {
    if !["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&media_type) {
        return Err("media type must be image/jpeg, image/png, image/gif or image/webp".to_owned());
    }
    let Some(bytes) = base64_decode(base64) else { return Err("invalid base64 data".to_owned()) };
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(format!("image exceeds 5 MB maximum: {} bytes > {IMAGE_BYTES_MAX} bytes", bytes.len()));
    }
    match image_type(&bytes) {
        None => Err("Could not process image".to_owned()),
        Some(actual) if actual != media_type => Err(format!(
            "The image was specified using the {media_type} media type, but the image appears to be a {actual} image"
        )),
        Some(_) => Ok(()),
    }
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
