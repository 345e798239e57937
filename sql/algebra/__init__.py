"""The operators: state objects that time and events drive, some with statements of a
compiled loop beside them."""
