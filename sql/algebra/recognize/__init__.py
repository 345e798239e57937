"""match_recognize: patterns over neighbouring rows of a partition.

`program` turns a row pattern into places and the order in which they follow each other; `attempts` walks the
rows of one partition through it; `recognizer` has the partitions, their time, and the rows that matches
become.
"""

from sql.algebra.recognize.recognizer import Recognizer

__all__ = ["Recognizer"]
