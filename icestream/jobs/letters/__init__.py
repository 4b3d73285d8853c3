"""Dead letters for people: groups, rows, filters in words, and the desk that the console asks.

What a dead letter is, and its way back, are in `jobs/dead_letters.py` and `jobs/replay.py`.
"""
