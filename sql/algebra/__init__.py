"""The operators: state machines driven by events and time."""
