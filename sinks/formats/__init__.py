"""The formats of payloads and of files, and their compression."""
