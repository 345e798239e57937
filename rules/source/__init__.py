"""Rule files as text with positions: YAML and JSON become one kind of document, with the position of each
value."""
