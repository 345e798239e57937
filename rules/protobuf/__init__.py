"""Messages of Protocol Buffers: schema files beside the rules, and rows as messages (extra
penstock[protobuf])."""

from rules.protobuf.files import load_schemas, message_type
from rules.protobuf.values import columns_of, message_of

__all__ = ["columns_of", "load_schemas", "message_of", "message_type"]
