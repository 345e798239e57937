"""match_recognize: patterns over neighbouring rows of a partition.

`automaton` turns a row pattern into places and the order in which they follow each other.
Rows that come one by one and stay go through `recognizer`; those that leave a window,
or whose matches wait for the end of an interval, through `held`, with the `attempts` of each partition.
What a row does to a reading is compiled from the conditions (`sql.compiler.recognize_text`).
"""

from sql.algebra.recognize.held import HeldRecognizer
from sql.algebra.recognize.recognizer import Recognizer

__all__ = ["HeldRecognizer", "Recognizer"]
