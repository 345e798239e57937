"""How results are written: the formats of payloads, and their compression."""
