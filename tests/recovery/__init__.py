"""What a crash leaves, told as stories: input, crash, resume. One file each; `story.py` gives the format."""
