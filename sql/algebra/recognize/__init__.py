"""match_recognize: patterns over neighbouring rows of a partition.

    row ──► partition of its key ──► step: every reading, and a new one ──► readings that go on
                                                                        └─► complete ones ──► skip ──► matches

`automaton` turns a row pattern into places and the order in which they follow each other. A reading is the
place of its newest row, and the rows of each variable; `step` is compiled from the conditions
(`sql.compiler.recognize_text`). `readings` keeps those of a partition. `recognizer` is for rows that come one
by one and stay; `held` for rows that leave a window, and for matches that wait for the end of an interval.
"""

from sql.algebra.recognize.held import HeldRecognizer
from sql.algebra.recognize.recognizer import Recognizer

__all__ = ["HeldRecognizer", "Recognizer"]
