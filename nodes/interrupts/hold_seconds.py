"""How long an interrupt asks the guard to hold a moving robot, which then goes on by itself.

The guard holds for `LONGEST_HOLD_NS` of `nodes/guard/soft_hold.py` at the most, whatever is asked.
"""

HOLD_S = 1.2
"""For words that nobody understood, s, unless a second judge ends it sooner."""
ALARM_HOLD_S = 1.5
"""For a word of alarm that was spotted in the sound, s: until the recogniser has the words."""
