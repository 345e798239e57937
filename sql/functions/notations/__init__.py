"""The notations that arguments are written in: JSON paths, regular expressions, patterns of times."""
