"""The errors between a rule's result and the cloud; the text of each says what to do."""

from __future__ import annotations


class SpoolError(Exception):
    """The spool cannot carry out the call; nothing was changed."""


class SpoolFull(SpoolError):
    """No room under the cap or on the disk. The offered rows were not taken: keep them and offer them again
    later."""


class SpoolBusy(SpoolError):
    """Another process writes to this spool."""


class SpoolVersion(SpoolError):
    """The file is a spool of a version that this program does not know, or no spool at all."""


class SpoolCorrupt(SpoolError):
    """The database structure is damaged; `repair` saves every row that can still be read."""


class TargetError(Exception):
    """The upload target failed. The uploader tries again later; nothing is lost."""


class TooLarge(TargetError):
    """The upload target takes no file of this size; a smaller one may fit."""


class BadTarget(ValueError):
    """The target's URL cannot be used; no attempt will ever succeed."""
