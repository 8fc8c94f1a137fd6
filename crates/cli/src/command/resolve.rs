//! Ids on the command line may be shortened to any unique beginning of 8 or more characters behind the underscore.

use std::str::FromStr;

use thought_protocol::id::{ID_KEY_LENGTH, ID_SHORT_LENGTH_MIN};
use thought_protocol::limits::AMBIGUOUS_CANDIDATES_MAX;
use thought_store::handle::Reader;

use crate::exit::{Exit, Failure};

/// The whole id behind a written one.
///
/// # Errors
/// [`Failure`]: not an id of this kind (2), not there (5), ambiguous with the candidates (3).
pub async fn resolve<T: FromStr>(
    reader: &Reader,
    text: &str,
    prefix: &str,
    what: &str,
) -> Result<T, Failure> {
    let usage = || {
        let message = format!("{text} is no {what} id");
        let hint = format!(
            "it reads {prefix}_ and {ID_KEY_LENGTH} characters, or at least {ID_SHORT_LENGTH_MIN} of them"
        );
        Failure::new(Exit::Usage, "not-an-id", message).hint(hint)
    };
    let text = text.trim_end_matches('…');
    let Some(key) = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')) else {
        return Err(usage());
    };
    let is_key = key.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    if !is_key || !(ID_SHORT_LENGTH_MIN..=ID_KEY_LENGTH).contains(&key.len()) {
        return Err(usage());
    }
    let most = u32::try_from(AMBIGUOUS_CANDIDATES_MAX).unwrap_or(8);
    let found = reader.ids_with_prefix(text.to_owned(), most).await?;
    match found.as_slice() {
        [] => Err(Failure::not_found(what, text)),
        [one] => one.parse().map_err(|_error| usage()),
        many => {
            let failure = Failure::refused("ambiguous-id", format!("{text} begins more than one id"));
            Err(failure.hint(format!("one of: {}", many.join(" "))))
        }
    }
}

/// An id as lists show it: enough of it to be written again.
pub fn short(id: &str) -> String {
    let end = id.find('_').map_or(id.len(), |at| (at + 1 + 12).min(id.len()));
    if end == id.len() { id.to_owned() } else { format!("{}…", &id[..end]) }
}
