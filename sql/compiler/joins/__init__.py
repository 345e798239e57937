"""The text of joins: `driven` by one stream beside relations, and `passing`, whose rows are not kept."""
