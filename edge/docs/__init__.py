"""The generated half of the manual: reference pages made from registries, models and commands."""
