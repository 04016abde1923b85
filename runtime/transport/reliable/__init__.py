"""Events that must not be lost: acknowledged, sent again, told apart from their repetitions. No sockets, no threads.

The sender's `Outbox` keeps what is not acknowledged yet, the receiver's `Inbox` puts it in order; a `Tag` travels with
each event, a `Receipt` comes back. Both get the time passed in. See docs/decisions/reliable-events.md.
"""
