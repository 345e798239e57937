"""Rule files as text with positions: YAML and JSON become one kind of document, in which each
value knows its place."""
