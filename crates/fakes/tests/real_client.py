"""python-telegram-bot talks to the Bot API of the fakes: argv[1] is its base address, argv[2] the token.

The pushes and the scripted failures are made by the test that runs this; see real_clients.rs.
"""

import asyncio
import sys

from telegram import Bot, BotCommand, BotCommandScopeChat, MessageEntity, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter

SUPERGROUP = -1_001_234_567_890


async def refused(kind, coroutine):
    try:
        await coroutine
    except kind as error:
        assert type(error) is kind, repr(error)
        return error
    raise AssertionError(f"{kind.__name__} was expected")


async def main(base, token):
    def of(token):
        return Bot(token, base_url=f"{base}/bot", base_file_url=f"{base}/file/bot")

    async with of(token) as bot:
        me = await bot.get_me()
        assert (me.id, me.is_bot, me.username) == (123456, True, "thought_stream_bot"), me

        updates = await bot.get_updates(offset=0, limit=100, timeout=1, allowed_updates=["message", "edited_message"])
        text, edited, reply, photo, second, topic, general = updates
        assert text.message.text == "/focus 🙂" and text.message.chat.type == "private"
        assert text.message.parse_entities() == {text.message.entities[0]: "/focus"}
        assert edited.message is None and edited.edited_message.text == "/focus on the ferry"
        assert edited.edited_message.edit_date > edited.edited_message.date
        assert reply.message.reply_to_message.message_id == text.message.message_id
        assert photo.message.caption == "a caption" and second.message.caption is None
        assert photo.message.media_group_id == second.message.media_group_id == "album-1"
        size = second.message.photo[-1]
        assert (size.width, size.height, size.file_size) == (1280, 960, 20)
        file = await bot.get_file(size.file_id)
        assert file.file_unique_id == size.file_unique_id
        assert bytes(await file.download_as_bytearray()) == b"\x02" * 20
        assert topic.message.chat.is_forum and topic.message.is_topic_message
        assert topic.message.message_thread_id == 9 and general.message.message_thread_id is None
        assert await bot.get_updates(timeout=0) == updates, "nothing was acknowledged"
        assert await bot.get_updates(offset=general.update_id, timeout=0) == (general,)
        assert await bot.get_updates(offset=general.update_id + 1, timeout=1) == ()

        # As they were scripted.
        await refused(Forbidden, bot.send_message(7, "hi"))
        limited = await refused(RetryAfter, bot.send_message(7, "hi"))
        assert float(getattr(limited.retry_after, "total_seconds", lambda: limited.retry_after)()) == 31
        migrated = await refused(ChatMigrated, bot.send_message(7, "hi"))
        assert migrated.new_chat_id == SUPERGROUP
        await refused(NetworkError, bot.send_message(7, "hi"))

        sent = await bot.send_message(
            SUPERGROUP,
            "🙂 hi שלו",
            entities=[MessageEntity("bold", 0, 2), MessageEntity("text_link", 3, 2, url="https://example.org/")],
            message_thread_id=9,
            reply_parameters=ReplyParameters(topic.message.message_id, quote="a topic"),
        )
        assert list(sent.parse_entities().values()) == ["🙂", "hi"], sent
        assert sent.reply_to_message.message_id == topic.message.message_id and sent.message_thread_id == 9
        await refused(BadRequest, bot.send_message(7, "hi", entities=[MessageEntity("bold", 0, 3)]))
        assert await bot.send_chat_action(7, "typing")

        scope, menu = BotCommandScopeChat(7), (BotCommand("focus", "What it looks at"),)
        assert await bot.set_my_commands(menu, scope=scope, language_code="de")
        assert await bot.get_my_commands(scope=scope, language_code="de") == menu
        assert await bot.delete_my_commands(scope=scope, language_code="de")
        assert await bot.get_my_commands(scope=scope, language_code="de") == ()

        url = "https://example.org/telegram"
        kinds = ["message", "edited_message"]
        assert await bot.set_webhook(url, max_connections=1, secret_token="s3cret_-", allowed_updates=kinds)
        info = await bot.get_webhook_info()
        assert (info.url, info.max_connections, list(info.allowed_updates)) == (url, 1, kinds), info
        await refused(Conflict, bot.get_updates(timeout=0))
        assert await bot.delete_webhook(drop_pending_updates=True)
        assert (await bot.get_webhook_info()).url == ""

        await refused(BadRequest, bot.send_message(8, "hi"))
    await refused(InvalidToken, of("123456:wrong").initialize())
    print("talked")


asyncio.run(main(*sys.argv[1:]))
