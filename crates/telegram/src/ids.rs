//! The numbers Telegram names things by. All are signed and need up to 52 bits; none says anything about order.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A chat: positive for a private chat (then the user's own number), negative for a group or a channel.
    ChatId;
    /// A person or a bot.
    UserId;
    /// A message, unique within its chat alone.
    MessageId;
    /// A topic of a forum; it counts only on messages that say they belong to a topic.
    ThreadId;
    /// An update. It serves to tell a repeated one; after a quiet week the numbers restart anywhere.
    UpdateId;
}
