//! An update as the Bot API sent it, sifted under several policies: it is kept, counted or ignored, once. What is kept of a
//! readable one means the same under every policy and cannot be reduced further; what is kept of another stays unreadable. What is told of either does not quote it.

use std::sync::LazyLock;

use thought_telegram::admit::{Policy, admit};
use thought_telegram::client::RawUpdate;
use thought_telegram::ids::{ChatId, UpdateId, UserId};
use thought_telegram::ingress::{Sifted, sift};
use thought_telegram::wire::{BotIdentity, parse_update};

use super::{Seen, is_dark, is_dark_error};

/// A person and a group that are heard, the person alone, and nobody.
pub(crate) static POLICIES: LazyLock<[Policy; 3]> = LazyLock::new(|| {
    let of = |chats: &[i64], users: &[i64], name: &str| Policy {
        allowed_chats: chats.iter().copied().map(ChatId).collect(),
        allowed_users: users.iter().copied().map(UserId).collect(),
        bot: BotIdentity { id: UserId(1), username: name.to_owned() },
    };
    [of(&[4242, -7], &[4242], "stream_bot"), of(&[4242], &[], "other_bot"), of(&[], &[], "stream_bot")]
});

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let update = match parse_update(data) {
        Ok(update) => Some(update),
        Err(error) => {
            is_dark_error(&error);
            None
        }
    };
    is_dark(&update);
    let mut seen = Seen::Refused;
    let update_id = update.as_ref().map_or(UpdateId(5), |update| update.update_id);
    for policy in &*POLICIES {
        let sifted = |bytes: &[u8]| sift(vec![RawUpdate { update_id, bytes: bytes.to_vec() }], policy);
        let Sifted { kept, refused, ignored } = sifted(data);
        assert_eq!(kept.len() + refused.len() + ignored, 1);
        let Some(stored) = kept.first() else { continue };
        assert_eq!(stored.update, update_id.0);
        let again = parse_update(stored.body.expose());
        let Some(update) = &update else {
            assert!(again.is_err(), "what could not be read still cannot");
            continue;
        };
        let again = again.expect("what is kept of an update is one");
        is_dark(&again);
        is_dark(&admit(update, policy));
        seen = Seen::Taken;
        for other in &*POLICIES {
            assert_eq!(admit(&again, other), admit(update, other));
        }
        let reduced_again = sifted(stored.body.expose()).kept;
        assert!(reduced_again.iter().map(|raw| &raw.body).eq([&stored.body]));
    }
    seen
}
