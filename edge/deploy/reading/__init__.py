"""Rule files become the state that should run, in a child process."""
