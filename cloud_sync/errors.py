"""What can go wrong between a rule's result and the cloud, each with what to do about it in its text."""

from __future__ import annotations


class SpoolError(Exception):
    """The spool cannot do what was asked; nothing was changed."""


class SpoolFull(SpoolError):
    """No room under the cap or on the disk. What was offered is not taken: keep it and
    offer it again later."""


class SpoolBusy(SpoolError):
    """Another process writes to this spool."""


class SpoolVersion(SpoolError):
    """The file is a spool of a version that this program does not know, or no spool at all."""


class SpoolCorrupt(SpoolError):
    """The database structure is damaged; `repair` saves every row that can still be read."""


class TargetError(Exception):
    """The upload target did not do what was asked. Tried again later; nothing is lost."""


class BadTarget(ValueError):
    """The target's URL cannot be used; no attempt will ever succeed."""
