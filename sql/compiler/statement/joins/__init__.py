"""The text of joins: `driven` by one stream beside relations, and `passing_text`, whose rows are not kept."""
