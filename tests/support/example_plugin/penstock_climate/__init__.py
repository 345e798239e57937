"""An example of a plug-in: one of each kind."""
