"""Groups of windows whose events leave at once or by panes: values wait in lists and are folded late."""
