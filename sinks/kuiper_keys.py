"""eKuiper's properties of actions that are not settings here: those without effect, those that something else
replaces, and the values that its tools write where a property is not set."""

from __future__ import annotations

from collections.abc import Mapping

from rules.base import is_among

_ONE_QUEUE = "results are sent in order through one queue"
_ONE_WORKER = "each sink has one worker, which keeps the order"

WITHOUT_EFFECT = {
    "resendAlterQueue": _ONE_QUEUE,
    "resendPriority": _ONE_QUEUE,
    "concurrency": _ONE_WORKER,
    "runAsync": _ONE_WORKER,
    "cacheLength": "bufferLength bounds the results that wait",
    "cacheSaveInterval": "with enableCache each result is in the file at once",
    "compressionProps": "a method compresses with its usual level",
}
"""Properties without effect, because their purpose is fulfilled in another way, which the text describes."""

REPLACED = {
    "resendDestination": "use a second action; what is refused goes to the dead letters",
    "encryption": "use TLS on the connection",
    "encProps": "use TLS on the connection",
}
"""Properties that cannot be honoured, and what to write instead."""

UNSET: Mapping[str, tuple[object, ...]] = {
    "batchSize": (0,),
    "bufferPageSize": (256,),
    "checkInterval": ("",),
    "cleanCacheAtStop": (False,),
    "compression": ("",),
    "compressionProps": ({},),
    "concurrency": (1,),
    "connectionSelector": ("",),
    "dataField": ("",),
    "dataTemplate": ("",),
    "delimiter": ("",),
    "enableCache": (False,),
    "encProps": ({},),
    "encryption": ("",),
    "excludeFields": ([], ""),
    "field": ("",),
    "fields": ([], ""),
    "format": ("", "json"),
    "formData": ({},),
    "fileFieldName": ("",),
    "hasHeader": (False,),
    "key": ("",),
    "keyField": ("",),
    "lingerInterval": (0, "", "0s"),
    "maxDiskCache": (1_024_000,),
    "memoryCacheThreshold": (1024,),
    "properties": ({},),
    "resendAlterQueue": (False,),
    "resendDestination": ("",),
    "resendIndicatorField": ("",),
    "resendInterval": (0, "", "0s"),
    "resendPriority": (0,),
    "responseType": ("code",),
    "rollingHook": ("",),
    "rollingHookProps": ({},),
    "rollingInterval": ("",),
    "rowkindField": ("",),
    "runAsync": (False,),
    "schemaId": ("",),
}
"""The values that eKuiper's tools write where a property is not set; a property with one counts as absent."""


def is_unset(key: object, value: object) -> bool:
    """True if a property has a value that says that it is not set."""
    return isinstance(key, str) and is_among(value, UNSET.get(key, ()))
