"""Dead letters for people: groups, rows, filters in words, and the desk that the console asks.

What a dead letter is, is in `jobs/publishing/dead_letters.py`; its way back in `replay`.
"""
