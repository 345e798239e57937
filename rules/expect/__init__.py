"""The checks that a rule states about its own rows (`expect:`): their model, and their evaluation.

A check withholds nothing at the gateway: rows go to all actions, and what breaks a check is counted.
The row that goes to the cloud says which checks it breaks, and the fleet job does what each check says.
"""
