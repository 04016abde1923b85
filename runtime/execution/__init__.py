"""Runs the handlers of nodes in real time.

A plan of the room: `executor` runs the nodes of a process, `in_process` those of a Python program. `bound_node` is one
of them, ready to run; its handlers share a `lane`, whose `timers` tick. `runners` drive the lanes, by `straight_loop`
or on threads with `process_priorities`; `direct_call` is the common case of a message, `recorder_queue` a recorder's,
and `worker_view` what a blocking handler sees of its node.

What is told of it: `health_report`, with the budgets that `path_meter` measures; `failures` of handlers, `long_calls`
and `held_up` of what takes too long, and `log_filter`.
"""
