"""The text of joins: `driven` by one stream beside relations, and `passing`, of which nobody keeps the rows."""
