"""From payload bytes to rows: one file per format, under the name that a stream's `FORMAT` option uses."""

from edge.intake.codecs.base import BadPayload, CodecError, CodecOptions, Decoder, decoder_for
from edge.intake.codecs.rows import META, row_class

__all__ = ["META", "BadPayload", "CodecError", "CodecOptions", "Decoder", "decoder_for", "row_class"]
