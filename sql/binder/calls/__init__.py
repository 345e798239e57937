"""Binding calls: `call_binder` finds out which kind of function a name is, one module binds each kind."""
